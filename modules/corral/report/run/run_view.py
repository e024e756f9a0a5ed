"""The forecast of a declared run on a terminal: layout, memory, speed, storage, interruptions, cost, power."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from rich.console import RenderableType
from rich.text import Text

from corral.forecast.run.checkpoint_penalty import daily_checkpoint_penalty
from corral.forecast.run.checkpointing import CheckpointForecast
from corral.forecast.run.data_reading import DataReading, Tokenizing
from corral.forecast.run.run_outlook import RunOutlook
from corral.forecast.run.transfer_charges import CROSSING
from corral.forecast.training.explanations import PARTS, layout_words, why_it_loses
from corral.forecast.training.memory import GIB
from corral.report.formatting import count, duration, durations, lacking, spread, summed, usd
from corral.report.run.network_summary import algorithm_rows, network_facts
from corral.report.tables import facts, heading, lines, table
from corral.spec.models.run import BEFORE

_BAR = 24  # columns of a full bar
_NOTEWORTHY = 0.001  # share of the time; smaller penalties of daily checkpoints are not shown
NONE_FITS = "no layout fits"
MEMORY_PARTS = ("weights", "gradients", "optimizer", "gathered", "activations", "logits", "reserve")


def run_view(run: RunOutlook) -> Iterator[RenderableType]:
    """The run, whether it fits, its speed, duration and cost, and the uncertainty of each."""
    spec, training = run.spec, run.training
    title = f"{spec.model.name} on {spec.nodes} {spec.machine.name}"
    yield heading(title, f"{spec.accelerators:,} accelerators of queue {spec.queue}")
    yield facts(_declared(run))
    yield heading("Layout", layout_words(training.layout))
    yield facts(_choice(run))
    yield heading("Memory", "of the accelerator that needs the most")
    yield table(("", ">GiB", ""), _memory(run))
    yield facts(_memory_use(run))
    if training.fits:
        yield heading("Speed", f"+-{training.certainty.off:.0%}: {training.certainty.why}")
        yield facts(_speed(run))
        yield Text()
        yield table(("part of a step", ">s", ">share", ""), _step(run))
    if run.network:
        yield heading("Network", "between the nodes; its topology is assumed")
        yield facts(network_facts(run.network))
        if run.network.gradients:
            yield Text()
            yield table(("all-reduce of the gradients", ">s", ">GB/s on the bus"), algorithm_rows(run.network))
    if run.checkpoints:
        yield heading("Checkpoints", run.checkpoints.storage)
        yield facts((*_checkpoints(run.checkpoints, fits=run.training.fits), *daily_facts(run)))
    if run.data:
        yield heading("Data", run.data.storage)
        yield facts(loading_facts(run.data))
    if run.markets:
        yield heading("Duration and cost", "from the fewest to the most interruptions expected")
        yield table(("market", ">interrupted every", ">checkpoint every", ">progress", ">days", ">USD"), _markets(run))
        yield Text()
        yield from _bills(run)
    if run.energy:
        yield heading("Power")
        yield facts(_power(run))
    if run.warnings:
        yield heading("Warnings")
        yield lines(run.warnings)
    yield heading("Assumed")
    yield lines(run.assumed)


def peak_words(run: RunOutlook) -> str:
    """The suffix that names the peak of a utilisation, if it is not that of the run's number format."""
    return "" if run.spec.precision in ("fp16", "bf16") else " of the 16-bit peak"


def _declared(run: RunOutlook) -> Iterator[tuple[str, str]]:
    spec, shape = run.spec, run.training.job.shape
    active = f", {shape.active_parameters / 1e9:,.1f} billion active" if shape.is_moe else ""
    yield "model", f"{shape.parameters / 1e9:,.1f} billion parameters{active}; {spec.precision}"
    yield "data", f"{spec.tokens / 1e9:,.0f} billion tokens, sequences of {spec.sequence_length:,}"
    tokens = spec.batch_sequences * spec.sequence_length
    yield (
        "batch",
        f"{spec.batch_sequences:,} sequences, {tokens / 1e6:,.1f} million tokens; {run.training.steps:,} steps",
    )


def _choice(run: RunOutlook) -> Iterator[tuple[str, str]]:
    choice = run.training.choice
    if choice is None:
        yield "declared", run.spec.file
        return
    if choice.best is None:
        yield "nearest", f"{NONE_FITS}; this one lacks the least"
        return
    yield "chosen", f"the fastest that fits, of {choice.examined:,}"
    for other in choice.others:
        yield "rejected", f"{layout_words(other.layout)}: {why_it_loses(other, choice.best)}"
    if choice.too_large:
        yield "rejected", f"{layout_words(choice.too_large.layout)}: {why_it_loses(choice.too_large, choice.best)}"


def _memory(run: RunOutlook) -> Iterator[tuple[str, str, str]]:
    memory, limit = run.training.memory, run.training.memory_gib
    for name in MEMORY_PARTS:
        gib = float(getattr(memory, name)) / GIB
        if gib:
            yield name, f"{gib:.1f}", _bar(gib / limit)
    yield "total", f"{memory.total_gib:.1f}", _bar(memory.total_gib / limit)


def _memory_use(run: RunOutlook) -> Iterator[tuple[str, str]]:
    training = run.training
    yield "available", f"{training.memory_gib:,.0f} GiB"
    if training.memory.host:
        yield "host", f"{training.memory.host / GIB:.1f} GiB per accelerator"
    if training.fits:
        if training.largest_micro_batch:
            most = training.largest_micro_batch
            yield "micro-batch", f"at most {most} sequence{'s' if most > 1 else ''}"
        return
    yield "missing", f"{training.missing_gib:.1f} GiB"
    if training.change:
        yield "change first", training.change


def _speed(run: RunOutlook) -> Iterator[tuple[str, str]]:
    training = run.training
    speed = training.speed
    each = speed.tokens_per_s_per_accelerator
    yield "tokens/s", f"{speed.tokens_per_s:,.0f}; {each:,.0f} per accelerator"
    utilisation = f"MFU {training.mfu:.1%}, with attention {training.mfu_with_attention:.1%}, HFU {training.hfu:.1%}"
    yield "utilisation", f"{utilisation}{peak_words(run)}"
    yield "bound by", training.bound
    if training.efficiency and training.efficiency.nodes != run.spec.nodes:
        base = training.efficiency.nodes
        nodes = "1 node" if base == 1 else f"{base} nodes"
        more = ", which must recompute more" if training.efficiency.share > 1 else ""
        yield "efficiency", f"{training.efficiency.share:.0%} of an accelerator's speed on {nodes}{more}"
    low, high = training.days_range
    yield (
        "uninterrupted",
        f"{training.days:,.1f} days ({low:,.1f} - {high:,.1f}), {count(training.accelerator_hours)} GPU-hours",
    )


def _step(run: RunOutlook) -> Iterator[tuple[str, str, str, str]]:
    parts = run.training.speed.parts
    seconds = {field.name: float(getattr(parts, field.name)) for field in fields(parts)}
    for name, value in sorted(seconds.items(), key=lambda item: -item[1]):
        if share := value / parts.total:
            yield PARTS[name], f"{value:.3g}", f"{share:.1%}", _bar(share)
    yield "total", f"{parts.total:.3g}", "", ""


def _checkpoints(checkpoints: CheckpointForecast, *, fits: bool) -> Iterator[tuple[str, str]]:
    size = checkpoints.size.size_bytes
    each = f"{checkpoints.state.bytes_per_parameter:g} bytes per parameter"
    yield "size", f"{size / 1e9:,.1f} GB ({each}), {checkpoints.retained} retained"
    write = f"{checkpoints.write.bytes_per_s / 1e9:,.2f} GB/s, limited by {checkpoints.write.limit.value}"
    yield "written in", f"{duration(checkpoints.write_s)} at {write}"
    yield "stalls the run", f"{checkpoints.policy.checkpointing.stall_s:,.1f} s each time"
    yield "read in", f"{duration(checkpoints.read_s)} at {checkpoints.read.bytes_per_s / 1e9:,.2f} GB/s"
    if checkpoints.faster:
        system = checkpoints.faster.system
        limit = "" if checkpoints.faster.meets_target else f", {duration(checkpoints.faster.write_s)} at best"
        yield "in 1 min", f"with {system.size_gib:,} GiB of {system.deployment.name}{limit}"
    rate = f"{checkpoints.loads / 1e6:,.2f} MB/s, " if fits else ""  # unknown if the run does not fit
    yield "data", f"{rate}{checkpoints.corpus / 1e12:,.2f} TB in total"


def daily_facts(run: RunOutlook) -> Iterator[tuple[str, str]]:
    """The penalty of one checkpoint a day, in the market that loses the most."""
    if not run.checkpoints or not run.markets or run.training.days < 1:
        return
    found = [daily_checkpoint_penalty(one, run.checkpoints.policy) for one in run.markets]
    worst = max(found, key=lambda one: float("inf") if one.longer is None else one.longer)
    if worst.longer is None:
        yield "once a day", f"may never finish, {worst.market.value}"
    else:
        if worst.longer < _NOTEWORTHY:
            return
        money = f", and up to {worst.usd.high:,.0f} USD more for nodes" if worst.usd else ""
        yield "once a day", f"takes up to {worst.longer:.1%} longer{money}, {worst.market.value}"


def loading_facts(data: DataReading) -> Iterator[tuple[str, str]]:
    """What the run reads, and the tokenization of text."""
    each = duration(1 / data.files_per_s)
    yield "read at", f"{data.bytes_per_s / 1e6:,.2f} MB/s, a file every {each}"
    yield "workers", f"{data.workers:,}, {data.tokens_per_s_per_worker:,.0f} tokens/s each"
    if tokens := data.tokenizing:
        yield "text", f"{tokens.text_bytes / 1e12:,.2f} TB, tokenized {_tokenized(tokens)}"


def _tokenized(tokens: Tokenizing) -> str:
    if tokens.when == BEFORE:
        return f"before the run: {tokens.hours:,.1f} h on a {tokens.server}, {usd(tokens.usd)} USD"
    return f"during training, on the nodes' processors: {tokens.servers:.2g} times those of a {tokens.server}"


def _markets(run: RunOutlook) -> Iterator[tuple[str, ...]]:
    for one in run.markets:
        best, worst = one.range.best, one.range.worst
        apart = one.interruptions
        mtbf = durations(apart.shortest_mtbf_s, apart.longest_mtbf_s)
        save = "at the end" if one.intervals_s[0] >= one.range.best.work_s else durations(*one.intervals_s)
        progress = f"{worst.shares.progress:.1%} - {best.shares.progress:.1%}"
        name = one.market.value if one.enough else f"{one.market.value}, not enough nodes"
        yield name, mtbf, save, progress, spread(one.days.low, one.days.high), summed(one.usd)


def _bills(run: RunOutlook) -> Iterator[RenderableType]:
    """The charges of the first market, and what differs in the others besides the nodes."""
    first = run.markets[0]
    yield table(("cost of the run", ">USD"), [(charge.what, usd(charge.usd)) for charge in first.charges])
    for one in run.markets:
        if one.crossing and one.crossing.high and one.crossing != first.crossing:
            yield lines([f"{one.market.value}: {CROSSING} {usd(one.crossing)}"])
        if missing := lacking(one.usd):
            yield lines([f"{one.market.value}:{missing}"])


def _power(run: RunOutlook) -> Iterator[tuple[str, str]]:
    energy = run.energy
    if energy is None:
        return
    estimate = ", an estimate" if energy.estimated else ""
    yield "training", f"{spread(energy.kw.low, energy.kw.high)} kW, including cooling ({energy.server}{estimate})"
    yield "energy", f"{spread(energy.mwh.low, energy.mwh.high)} MWh"


def _bar(share: float) -> str:
    full = min(1.0, share) * _BAR
    return "█" * round(full) + ("▶" if share > 1 else "")
