"""A declared run before it begins, on a terminal: layout, memory, time, interruptions, storage, cost, power."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from rich.console import RenderableType
from rich.text import Text

from corral.forecast.training.memory import GIB
from corral.forecast.training.reasons import PARTS, layout_words, why_it_loses
from corral.forecast.whole.crossing import WHAT as CROSSING
from corral.forecast.whole.loading import Loading, Tokenizing
from corral.forecast.whole.rarely import saved_daily
from corral.forecast.whole.run import WholeRun
from corral.forecast.whole.saving import Saving
from corral.report.amounts import count, duration, durations, lacking, spread, summed, usd
from corral.report.network import algorithm_rows, network_facts
from corral.report.tables import facts, heading, lines, table
from corral.spec.run import BEFORE

_BAR = 24  # columns of a bar that is full
_NOTEWORTHY = 0.001  # of the time, for what a checkpoint a day would cost
NONE_FITS = "no layout fits"
MEMORY_PARTS = ("weights", "gradients", "optimizer", "gathered", "activations", "logits", "reserve")


def run_view(run: WholeRun) -> Iterator[RenderableType]:
    """What the run is, whether it fits, how fast it is, how long it takes and what it costs, and how sure that is."""
    spec, training = run.spec, run.training
    title = f"{spec.model.name} on {spec.nodes} {spec.machine.name}"
    yield heading(title, f"{spec.accelerators:,} accelerators of queue {spec.queue}")
    yield facts(_declared(run))
    yield heading("Layout", layout_words(training.layout))
    yield facts(_choice(run))
    yield heading("Memory", "of the accelerator that needs most")
    yield table(("", ">GiB", ""), _memory(run))
    yield facts(_room(run))
    if training.fits:
        yield heading("Speed", f"may be off by {training.certainty.off:.0%} either way: {training.certainty.why}")
        yield facts(_speed(run))
        yield Text()
        yield table(("of a step", ">s", ">share", ""), _step(run))
    if run.network:
        yield heading("Network", "between the nodes; what it is, is assumed")
        yield facts(network_facts(run.network))
        if run.network.gradients:
            yield Text()
            yield table(("all-reduce of the gradients", ">s", ">GB/s on the bus"), algorithm_rows(run.network))
    if run.saving:
        yield heading("Checkpoints", run.saving.place)
        yield facts((*_saving(run.saving, fits=run.training.fits), *daily_facts(run)))
    if run.loading:
        yield heading("Data", run.loading.place)
        yield facts(loading_facts(run.loading))
    if run.courses:
        yield heading("Until it is done", "from the fewest to the most interruptions that are to be expected")
        yield table(("market", ">interrupted each", ">save each", ">progress", ">days", ">USD"), _courses(run))
        yield Text()
        yield from _bills(run)
    if run.energy:
        yield heading("Power")
        yield facts(_power(run))
    if run.warnings:
        yield heading("Mind")
        yield lines(run.warnings)
    yield heading("Assumed")
    yield lines(run.assumed)


def peak_words(run: WholeRun) -> str:
    """Of which peak a utilisation is a part, where it is not that of the numbers that products take."""
    return "" if run.spec.precision in ("fp16", "bf16") else " of the peak in 16 bits"


def _declared(run: WholeRun) -> Iterator[tuple[str, str]]:
    spec, shape = run.spec, run.training.job.shape
    active = f", {shape.active_parameters / 1e9:,.1f} billion of them active" if shape.is_moe else ""
    yield "model", f"{shape.parameters / 1e9:,.1f} billion parameters{active}; {spec.precision}"
    yield "data", f"{spec.tokens / 1e9:,.0f} billion tokens, sequences of {spec.sequence_length:,}"
    tokens = spec.batch_sequences * spec.sequence_length
    yield (
        "batch",
        f"{spec.batch_sequences:,} sequences, {tokens / 1e6:,.1f} million tokens; {run.training.steps:,} steps",
    )


def _choice(run: WholeRun) -> Iterator[tuple[str, str]]:
    choice = run.training.choice
    if choice is None:
        yield "declared", run.spec.file
        return
    if choice.best is None:
        yield "nearest", f"{NONE_FITS}; this one lacks least"
        return
    yield "chosen", f"the fastest that fits, of {choice.examined:,}"
    for other in choice.others:
        yield "not", f"{layout_words(other.layout)}: {why_it_loses(other, choice.best)}"
    if choice.too_large:
        yield "not", f"{layout_words(choice.too_large.layout)}: {why_it_loses(choice.too_large, choice.best)}"


def _memory(run: WholeRun) -> Iterator[tuple[str, str, str]]:
    memory, limit = run.training.memory, run.training.memory_gib
    for name in MEMORY_PARTS:
        gib = float(getattr(memory, name)) / GIB
        if gib:
            yield name, f"{gib:.1f}", _bar(gib / limit)
    yield "together", f"{memory.total_gib:.1f}", _bar(memory.total_gib / limit)


def _room(run: WholeRun) -> Iterator[tuple[str, str]]:
    training = run.training
    yield "it has", f"{training.memory_gib:,.0f} GiB"
    if training.memory.host:
        yield "host", f"{training.memory.host / GIB:.1f} GiB for each accelerator"
    if training.fits:
        if training.largest_micro_batch:
            most = training.largest_micro_batch
            yield "micro-batch", f"{most} sequence{'s' if most > 1 else ''} at most"
        return
    yield "lacks", f"{training.missing_gib:.1f} GiB"
    if training.change:
        yield "change first", training.change


def _speed(run: WholeRun) -> Iterator[tuple[str, str]]:
    training = run.training
    speed = training.speed
    each = speed.tokens_per_s_per_accelerator
    yield "tokens/s", f"{speed.tokens_per_s:,.0f}, of each accelerator {each:,.0f}"
    utilisation = f"MFU {training.mfu:.1%}, with attention {training.mfu_with_attention:.1%}, HFU {training.hfu:.1%}"
    yield "of the peak", f"{utilisation}{peak_words(run)}"
    yield "bound by", training.bound
    if training.efficiency and training.efficiency.nodes != run.spec.nodes:
        base = training.efficiency.nodes
        nodes = "1 node" if base == 1 else f"{base} nodes"
        more = ", which are too few to keep what must be kept" if training.efficiency.share > 1 else ""
        yield "efficiency", f"{training.efficiency.share:.0%} of what an accelerator does on {nodes}{more}"
    low, high = training.days_range
    yield (
        "uninterrupted",
        f"{training.days:,.1f} days ({low:,.1f} - {high:,.1f}), {count(training.accelerator_hours)} GPU-hours",
    )


def _step(run: WholeRun) -> Iterator[tuple[str, str, str, str]]:
    parts = run.training.speed.parts
    seconds = {field.name: float(getattr(parts, field.name)) for field in fields(parts)}
    for name, value in sorted(seconds.items(), key=lambda item: -item[1]):
        if share := value / parts.total:
            yield PARTS[name], f"{value:.3g}", f"{share:.1%}", _bar(share)
    yield "together", f"{parts.total:.3g}", "", ""


def _saving(saving: Saving, *, fits: bool) -> Iterator[tuple[str, str]]:
    size = saving.size.size_bytes
    yield "size", f"{size / 1e9:,.1f} GB ({saving.state.bytes_per_parameter:g} bytes a parameter), {saving.kept} kept"
    write = f"{saving.write.bytes_per_s / 1e9:,.2f} GB/s, bounded by {saving.write.limit.value}"
    yield "written in", f"{duration(saving.write_s)} at {write}"
    yield "stops the run", f"{saving.habits.checkpointing.stall_s:,.1f} s each time"
    yield "read in", f"{duration(saving.read_s)} at {saving.read.bytes_per_s / 1e9:,.2f} GB/s"
    if saving.faster:
        system = saving.faster.system
        limit = "" if saving.faster.within_wish else f", {duration(saving.faster.write_s)} at best"
        yield "in a minute", f"with {system.size_gib:,} GiB of {system.deployment.name}{limit}"
    rate = f"{saving.loads / 1e6:,.2f} MB/s, " if fits else ""  # of a run that cannot begin there is none
    yield "data", f"{rate}{saving.corpus / 1e12:,.2f} TB in all"


def daily_facts(run: WholeRun) -> Iterator[tuple[str, str]]:
    """What a checkpoint a day would cost, in the market that loses most by it."""
    if not run.saving or not run.courses or run.training.days < 1:
        return
    found = [saved_daily(one, run.saving.habits) for one in run.courses]
    worst = max(found, key=lambda one: float("inf") if one.longer is None else one.longer)
    if worst.longer is None:
        yield "once a day", f"would never end at worst, {worst.market.value}"
    else:
        if worst.longer < _NOTEWORTHY:
            return
        money = f", up to {worst.usd.high:,.0f} USD of nodes more" if worst.usd else ""
        yield "once a day", f"would take up to {worst.longer:.1%} longer{money}, {worst.market.value}"


def loading_facts(loading: Loading) -> Iterator[tuple[str, str]]:
    """What the run reads, and what makes tokens of text."""
    each = duration(1 / loading.files_per_s)
    yield "read at", f"{loading.bytes_per_s / 1e6:,.2f} MB/s, a file every {each}"
    yield "workers", f"{loading.workers:,}, {loading.tokens_per_s_per_worker:,.0f} tokens/s each"
    if tokens := loading.tokenizing:
        yield "text", f"{tokens.text_bytes / 1e12:,.2f} TB, made into tokens {_tokenized(tokens)}"


def _tokenized(tokens: Tokenizing) -> str:
    if tokens.when == BEFORE:
        return f"before the run: {tokens.hours:,.1f} h of a {tokens.server}, {usd(tokens.usd)} USD"
    return f"while it trains, by {tokens.servers:.2g} times the processors of a {tokens.server}; its nodes have them"


def _courses(run: WholeRun) -> Iterator[tuple[str, ...]]:
    for one in run.courses:
        best, worst = one.range.best, one.range.worst
        apart = one.interruptions
        mtbf = durations(apart.shortest_mtbf_s, apart.longest_mtbf_s)
        save = "at its end" if one.intervals_s[0] >= one.range.best.work_s else durations(*one.intervals_s)
        progress = f"{worst.shares.progress:.1%} - {best.shares.progress:.1%}"
        name = one.market.value if one.enough else f"{one.market.value}, not enough nodes"
        yield name, mtbf, save, progress, spread(one.days.low, one.days.high), summed(one.usd)


def _bills(run: WholeRun) -> Iterator[RenderableType]:
    """The parts of the cost where they are the same for all markets but the nodes': once."""
    first = run.courses[0]
    yield table(("cost of the run", ">USD"), [(charge.what, usd(charge.usd)) for charge in first.charges])
    for one in run.courses:
        if one.crossing and one.crossing.high and one.crossing != first.crossing:
            yield lines([f"{one.market.value}: {CROSSING} {usd(one.crossing)}"])
        if told := lacking(one.usd):
            yield lines([f"{one.market.value}:{told}"])


def _power(run: WholeRun) -> Iterator[tuple[str, str]]:
    energy = run.energy
    if energy is None:
        return
    estimate = ", an estimate" if energy.estimated else ""
    yield "while it trains", f"{spread(energy.kw.low, energy.kw.high)} kW, cooling included ({energy.server}{estimate})"
    yield "energy", f"{spread(energy.mwh.low, energy.mwh.high)} MWh"


def _bar(share: float) -> str:
    full = min(1.0, share) * _BAR
    return "█" * round(full) + ("▶" if share > 1 else "")
