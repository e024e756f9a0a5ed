"""What the forecast of a run takes for granted: sentences, and the figures that it rests on with their sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from corral.catalog.power import effectiveness, network_part, server_of, training_load
from corral.catalog.training_constants import origins, training_constants
from corral.forecast.training.job import Job
from corral.forecast.training.layout import Sharding
from corral.forecast.training.memory import FRAGMENTED, RESERVE_GIB
from corral.forecast.whole.course import Energy
from corral.forecast.whole.run import WholeRun
from corral.forecast.whole.saving import Saving
from corral.report.amounts import spread, three_digits
from corral.report.sections.section import Section, Table

_UNPROVEN = "assumed: no source has it; large for one small accelerator"
_MEASURED = "best measured product (stas00/ml-engineering, MAMF) x what whole published runs reach of it"


def assumed(run: WholeRun) -> Section:
    """All of it. The sources of prices and of interruptions stand in their own sections."""
    rows = (*_hardware(run.training.job), *_constants(run.training.job), *(_saving(run.saving) if run.saving else ()))
    table = Table(caption="Figures, and where they are from", columns=("figure", ">value", "source"), rows=tuple(rows))
    return Section(anchor="assumed", title="Assumed", tables=(table,), lines=run.assumed)


def power(energy: Energy, run: WholeRun) -> Section:
    """What it draws while it trains, and what all of that is in the end."""
    server = server_of(run.training.job.machine.accelerator)
    load, site, network = training_load(), effectiveness()["aws"], network_part()
    rows = (
        ("a server at its most", f"{server.most_w / 1e3:,.1f} kW" if server else "?", server.source if server else "?"),
        ("mean load in training", f"{load.low:.0%} - {load.high:.0%}", load.source),
        ("network, of the servers", f"{network.value:.0%}", network.source),
        ("power usage effectiveness", f"{site.value:g}", site.source),
    )
    kw, mwh = spread(energy.kw.low, energy.kw.high), spread(energy.mwh.low, energy.mwh.high)
    estimate = ", an estimate" if energy.estimated else ""
    return Section(
        anchor="power",
        title="Power",
        lead=f"{kw} kW while it trains, cooling included ({energy.server}{estimate}); {mwh} MWh in all.",
        tables=(Table(caption="What that rests on", columns=("figure", ">value", "source"), rows=rows),),
    )


def _hardware(job: Job) -> Iterator[tuple[str, str, str]]:
    accelerator, bits = job.machine.accelerator, job.precision.bits
    note = f"; {accelerator.note}" if accelerator.note else ""
    sheet = f"datasheet of the {accelerator.name}"
    whose, peak = ("assumed" if "peak_tflops" in accelerator.assumed else sheet), accelerator.peak_flops(bits)
    yield f"peak in {accelerator.width(bits)} bits, TFLOP/s", three_digits(peak / 1e12), f"{whose}{note}"
    yield "memory's peak, GB/s", three_digits(accelerator.hbm_gb_per_s), sheet
    yield "memory kept for device, NCCL and holes", f"{RESERVE_GIB:g} GiB + {FRAGMENTED:.0%} of the rest", _UNPROVEN
    share = accelerator.reached_flops(bits) / accelerator.peak_flops(bits)
    lent = f"; of {', '.join(accelerator.borrowed)}" if accelerator.borrowed else ""
    yield "large products reach, of the peak", f"{share:.1%}", f"{_MEASURED}{lent}"
    attention = job.attention_flops / job.wide_flops  # the accelerator's own, or that of all
    yield "attention reaches, of that", f"{attention:.0%}", origins()["attention_share"]
    yield "network for each accelerator, Gb/s", three_digits(job.machine.network_gbps), "EC2 instance types"
    if job.shape.source:
        yield f"shape of {job.shape.name}", f"{job.shape.parameters / 1e9:,.1f} B", job.shape.source


def _constants(job: Job) -> Iterator[tuple[str, str, str]]:
    """Those that bear on a run like this one."""
    for name, value in asdict(training_constants()).items():
        if _bears(name, job):
            yield name.replace("_", " "), three_digits(value), origins()[name]


def _bears(name: str, job: Job) -> bool:
    old = job.layout.sharding is Sharding.DEEPSPEED_ZERO3
    if name.startswith(("expert", "routing", "all_to_all")):
        return job.shape.is_moe
    if name.startswith("host"):
        return job.offload_optimizer
    if name == "attention_share":
        return False  # said of the accelerator
    if name in ("context_hidden", "uneven"):
        return job.layout.cp > 1
    if name in ("slowed_deepspeed", "single_card_share"):
        return old
    if name == "tensor_hidden":
        return job.narrow and job.layout.tp > 1
    return name != "score_bytes" or not job.fused_attention


def _saving(saving: Saving) -> Iterator[tuple[str, str, str]]:
    yield "checkpoint, bytes a parameter", f"{saving.state.bytes_per_parameter:g}", saving.state.source
    if saving.copy:
        yield "copy to the host, GB/s of one accelerator", f"{saving.copy.gb_per_s:g}", saving.copy.source
