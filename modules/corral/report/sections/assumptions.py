"""The assumptions of a run's forecast: sentences, and the underlying figures with their sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from corral.catalog.accelerators.power import effectiveness, network_part, server_of, training_load
from corral.catalog.accelerators.training_constants import origins, training_constants
from corral.forecast.run.checkpointing import CheckpointForecast
from corral.forecast.run.market_forecast import Energy
from corral.forecast.run.run_outlook import RunOutlook
from corral.forecast.training.job import Job
from corral.forecast.training.layout import Sharding
from corral.forecast.training.memory import FRAGMENTED, RESERVE_GIB
from corral.report.formatting import spread, three_digits
from corral.report.sections.section import Section, Table

_UNPROVEN = "assumed, no source; large for one small accelerator"
_MEASURED = "best measured product (stas00/ml-engineering, MAMF) x the share of it that published runs reach"


def assumptions_section(run: RunOutlook) -> Section:
    """All assumptions except the sources of prices and interruptions, which are in their own sections."""
    rows = (
        *_hardware(run.training.job),
        *_constants(run.training.job),
        *(_checkpoints(run.checkpoints) if run.checkpoints else ()),
    )
    table = Table(caption="Figures and their sources", columns=("figure", ">value", "source"), rows=tuple(rows))
    return Section(anchor="assumed", title="Assumed", tables=(table,), lines=run.assumed)


def power_section(energy: Energy, run: RunOutlook) -> Section:
    """Power while training, and total energy."""
    server = server_of(run.training.job.machine.accelerator)
    load, site, network = training_load(), effectiveness()["aws"], network_part()
    rows = (
        (
            "maximum power of a server",
            f"{server.most_w / 1e3:,.1f} kW" if server else "?",
            server.source if server else "?",
        ),
        ("mean load in training", f"{load.low:.0%} - {load.high:.0%}", load.source),
        ("network, share of the servers' power", f"{network.value:.0%}", network.source),
        ("power usage effectiveness", f"{site.value:g}", site.source),
    )
    kw, mwh = spread(energy.kw.low, energy.kw.high), spread(energy.mwh.low, energy.mwh.high)
    estimate = ", an estimate" if energy.estimated else ""
    return Section(
        anchor="power",
        title="Power",
        lead=f"{kw} kW while training, including cooling ({energy.server}{estimate}); {mwh} MWh in total.",
        tables=(Table(caption="Underlying figures", columns=("figure", ">value", "source"), rows=rows),),
    )


def _hardware(job: Job) -> Iterator[tuple[str, str, str]]:
    accelerator, bits = job.machine.accelerator, job.precision.bits
    caveat = f"; {accelerator.caveat}" if accelerator.caveat else ""
    sheet = f"datasheet of the {accelerator.name}"
    whose, peak = ("assumed" if "peak_tflops" in accelerator.assumed else sheet), accelerator.peak_flops(bits)
    yield f"peak in {accelerator.width(bits)} bits, TFLOP/s", three_digits(peak / 1e12), f"{whose}{caveat}"
    yield "peak memory bandwidth, GB/s", three_digits(accelerator.hbm_gb_per_s), sheet
    yield (
        "memory reserved for device, NCCL and fragmentation",
        f"{RESERVE_GIB:g} GiB + {FRAGMENTED:.0%} of the rest",
        _UNPROVEN,
    )
    share = accelerator.reached_flops(bits) / accelerator.peak_flops(bits)
    lent = f"; measured on {', '.join(accelerator.measured_on)}" if accelerator.measured_on else ""
    yield "large products, share of the peak", f"{share:.1%}", f"{_MEASURED}{lent}"
    attention = job.attention_flops / job.wide_flops  # the accelerator's own share, or the common one
    yield "attention, share of that", f"{attention:.0%}", origins()["attention_share"]
    yield "network per accelerator, Gb/s", three_digits(job.machine.network_gbps), "EC2 instance types"
    if job.shape.source:
        yield f"shape of {job.shape.name}", f"{job.shape.parameters / 1e9:,.1f} B", job.shape.source


def _constants(job: Job) -> Iterator[tuple[str, str, str]]:
    """The constants that apply to this run."""
    for name, value in asdict(training_constants()).items():
        if _applies(name, job):
            yield name.replace("_", " "), three_digits(value), origins()[name]


def _applies(name: str, job: Job) -> bool:
    old = job.layout.sharding is Sharding.DEEPSPEED_ZERO3
    if name.startswith(("expert", "routing", "all_to_all")):
        return job.shape.is_moe
    if name.startswith("host"):
        return job.offload_optimizer
    if name == "attention_share":
        return False  # shown with the accelerator
    if name in ("context_hidden", "uneven"):
        return job.layout.cp > 1
    if name in ("slowed_deepspeed", "single_card_share"):
        return old
    if name == "tensor_hidden":
        return job.narrow and job.layout.tp > 1
    return name != "score_bytes" or not job.fused_attention


def _checkpoints(checkpoints: CheckpointForecast) -> Iterator[tuple[str, str, str]]:
    yield "checkpoint, bytes per parameter", f"{checkpoints.state.bytes_per_parameter:g}", checkpoints.state.source
    if checkpoints.copy:
        yield "copy to the host, GB/s per accelerator", f"{checkpoints.copy.gb_per_s:g}", checkpoints.copy.source
