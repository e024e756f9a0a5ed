"""Everything that is known of a declared run before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.forecast.bill import CostForecast
from corral.forecast.capacity import NO_COUNTS, Counts
from corral.forecast.prices import PriceList
from corral.forecast.training.outcome import RunForecast, forecast_run
from corral.forecast.whole.course import Course, Energy, courses, energy_of
from corral.forecast.whole.saving import DETECT_S, RESTART_S, WARM_UP_S, Saving, saving_of
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.spec.run import RunSpec

_LONG_S = 600.0  # to write a checkpoint; an interruption meanwhile loses the one before as well


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """A run: its training, how it saves, how it goes in each market, its power. What is not known is None or empty.

    Where the model does not fit, nothing is said of time and money: `courses` is empty and `energy` None.
    """

    training: RunForecast
    saving: Saving | None
    courses: tuple[Course, ...]
    energy: Energy | None
    warnings: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def spec(self) -> RunSpec:
        """The run as declared."""
        return self.training.run


def forecast_whole(
    run: RunSpec,
    base: BasePlan,
    cluster: ClusterPlan,
    cost: CostForecast,
    prices: PriceList,
    counts: Counts = NO_COUNTS,
) -> WholeRun:
    """All of it. Raises SpecErrors where the batch cannot be divided among the accelerators at all."""
    training = forecast_run(run)
    saving = saving_of(training, base, cluster)
    found = courses(training, saving, cluster, cost, prices, counts) if saving and training.fits else ()
    return WholeRun(
        training=training,
        saving=saving,
        courses=found,
        energy=energy_of(training) if training.fits else None,
        warnings=(*training.warnings, *_warnings(training, saving, found)),
        assumed=(*training.assumed, *_assumed(saving)),
    )


def _warnings(training: RunForecast, saving: Saving | None, found: tuple[Course, ...]) -> Iterator[str]:
    if saving is None:
        yield "the environment has no file system that its jobs share: nothing is said of saving, time and cost"
        return
    if saving.faster and saving.write_s > _LONG_S:
        system = saving.faster.system
        better = f"{system.size_gib:,} GiB of {system.deployment.name} take {saving.faster.write_s / 60:,.1f}"
        yield f"a checkpoint takes {saving.write_s / 60:,.0f} min to be written - {better}"
    for one in found:
        if not one.enough:
            yield f"{one.market.value} cannot give all {one.nodes} nodes of the run"
        worst = one.range.worst
        if worst and worst.no_progress:
            yield f"{one.market.value}, at worst: {worst.no_progress}"
    if training.run.machine.accelerator and not training.run.efa and training.run.nodes > 1:
        yield "nodes are joined without EFA - choose a type that has it, or one node"


def _assumed(saving: Saving | None) -> Iterator[str]:
    yield "time and cost: uninterrupted training, stretched by checkpoints and interruptions (docs/reliability.md)"
    if saving is None:
        return
    notice, machines, warm = (f"{seconds / 60:.0f} min" for seconds in (DETECT_S, RESTART_S, WARM_UP_S))
    yield (
        f"an interruption costs the work since the last checkpoint, {notice} until it is noticed, {machines} for new"
        f" machines, the reading of the checkpoint, and {warm} of slow first steps"
    )
    yield "spot instances: from none to a fifth of them are taken back in a month, as no band of the type is known here"
    if saving.copy is None:
        yield "a checkpoint stops the run until it is written"
    else:
        copy = saving.copy
        yield f"a checkpoint stops the run for the copy to the host, at {copy.gb_per_s:g} GB/s ({copy.source})"
    yield "traffic through NAT, requests and cross-zone traffic are paid for by use and are in no sum"
