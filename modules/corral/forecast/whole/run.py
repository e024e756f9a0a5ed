"""Everything that is known of a declared run before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.catalog.spot_bands import ADVISOR, LAST_ENDS
from corral.forecast.bill import CostForecast
from corral.forecast.blocks import LONGEST_DAYS
from corral.forecast.capacity import NO_COUNTS, Counts, starts
from corral.forecast.fabric.outlook import NetworkOutlook, network_outlook
from corral.forecast.prices import PriceList
from corral.forecast.storage import GIB
from corral.forecast.training.outcome import RunForecast, forecast_run
from corral.forecast.whole.course import Course, Energy, courses, energy_of, spot_band
from corral.forecast.whole.loading import Loading, loading_of
from corral.forecast.whole.saving import DETECT_S, RESTART_S, WARM_UP_S, Saving, saving_of
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.markets import Market
from corral.spec.durations import format_duration
from corral.spec.run import WHILE_TRAINING, RunSpec

_LONG_S = 600.0  # to write a checkpoint; an interruption meanwhile loses the one before as well
_SECONDS_PER_DAY = 86_400
_MUCH = 0.05  # of the cost, for traffic that one zone would not have


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """A run: its training, its network, how it saves and loads, how it goes in each market, its power.

    What is not known is None or empty. Where the model does not fit, nothing is said of time and money: `courses` is
    empty, `network`, `loading` and `energy` None.
    """

    training: RunForecast
    network: NetworkOutlook | None
    saving: Saving | None
    loading: Loading | None
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
    network = network_outlook(run, training.job) if training.fits else None
    loading = loading_of(training, prices) if training.fits else None
    found = courses(training, saving, cluster, cost, prices, counts) if saving and training.fits else ()
    return WholeRun(
        training=training,
        network=network,
        saving=saving,
        loading=loading,
        courses=found,
        energy=energy_of(training, found) if training.fits else None,
        warnings=(
            *training.warnings,
            *_warnings(training, saving, found),
            *(_too_dear(cluster.queue(run.queue), prices) if saving and training.fits else ()),
            *_blocks(found),
            *_lifetime(cluster, found),
            *_loading_warnings(training, loading),
        ),
        assumed=(
            *training.assumed,
            *_assumed_network(network),
            *_assumed(saving),
            *_assumed_block(found),
            *_assumed_spot(run, cluster.region, found),
            *_prices(run, found),
        ),
    )


def _warnings(training: RunForecast, saving: Saving | None, found: tuple[Course, ...]) -> Iterator[str]:
    if saving is None:
        yield "the environment has no file system that its jobs share: nothing is said of saving, time and cost"
        return
    if saving.faster and saving.write_s > _LONG_S:
        system = saving.faster.system
        better = f"{system.size_gib:,} GiB of {system.deployment.name} take {saving.faster.write_s / 60:,.1f} min"
        yield f"a checkpoint takes {saving.write_s / 60:,.0f} min to be written - {better}"
    if saving.room_gib is not None and saving.stored_bytes > saving.room_gib * GIB:
        what = f"{saving.kept:,} checkpoints take {saving.stored_bytes / GIB:,.0f} GiB"
        better = "keep fewer (checkpoint.keep), or a larger one"
        yield f"{what}, and {saving.place} has {saving.room_gib:,} GiB - {better}"
    wished = training.run.checkpoint.interval if training.run.checkpoint else None
    if wished is not None and wished.total_seconds() < saving.write_s:
        what = f"checkpoint.interval {format_duration(wished)} is shorter than the {saving.write_s:,.0f} s"
        yield f"{what} that one takes to be written - save less often, or choose"
    for one in found:
        if not one.enough:
            yield f"{one.market.value} cannot give all {one.nodes} nodes of the run"
        worst = one.range.worst
        if worst.no_progress:
            yield f"{one.market.value}, at worst: {worst.no_progress}"
        if one.crossing and one.usd.usd and one.crossing.high > _MUCH * one.usd.usd.high:
            most = f"{one.crossing.high:,.0f} USD"
            better = "save less often (checkpoint.interval), or keep the market to the zone of the file system"
            yield f"{one.market.value}: checkpoints and tokens sent to another zone cost up to {most} - {better}"
    if training.run.machine.accelerator and not training.run.efa and training.run.nodes > 1:
        yield "nodes are joined without EFA - choose a type that has it, or one node"


def _too_dear(queue: QueuePlan, prices: PriceList) -> Iterator[str]:
    """The warning that the run cannot have spot machines for what the queue is willing to pay."""
    price, spot = prices.instance(queue.instance_type), [one for one in queue.offers if one.market is Market.SPOT]
    highest = max((one.max_price_usd_per_hour or 0.0 for one in spot), default=0.0)
    if price and price.spot and spot and not any(starts(one, queue.instance_type, prices) for one in spot):
        cheapest = f"the cheapest zone known took {price.spot.low:,.2f}"
        yield f"spot: no machine starts for {highest:,.2f} USD an hour (max_price), {cheapest} - raise it"


def _blocks(found: tuple[Course, ...]) -> Iterator[str]:
    """The warning that no one Capacity Block lasts as long as the run."""
    for one in found:
        most = one.days.high
        if one.market is Market.CAPACITY_BLOCK and (most is None or most > LONGEST_DAYS):
            takes = "has no end" if most is None else f"may take {most:,.0f}"
            yield (
                f"capacity-block: a block lasts {LONGEST_DAYS} days at most, the run {takes} - buy several, one"
                " after the other, or use more nodes"
            )


def _lifetime(cluster: ClusterPlan, found: tuple[Course, ...]) -> Iterator[str]:
    """The warning that the cluster may end before the run does."""
    ends, longest = cluster.lifetime.ttl_s, [one.days.high for one in found]
    if ends is None or all(days is not None and days * _SECONDS_PER_DAY <= ends for days in longest):
        return
    days = ends / _SECONDS_PER_DAY
    yield f"the cluster ends by itself after {days:,.1f} days, the run may take longer - raise lifetime.ttl"


def _loading_warnings(training: RunForecast, loading: Loading | None) -> Iterator[str]:
    tokens = loading.tokenizing if loading else None
    if tokens and tokens.when == WHILE_TRAINING and tokens.servers > training.run.nodes:
        yield f"tokenising meanwhile needs {tokens.servers:,.1f} servers like {tokens.server} - do it before the run"


def _assumed_network(network: NetworkOutlook | None) -> Iterator[str]:
    if network:
        yield "AWS publishes no switches: a network without taper, its rails kept apart (docs/network.md)"


def _assumed(saving: Saving | None) -> Iterator[str]:
    yield "time and cost: uninterrupted training, stretched by checkpoints and interruptions (docs/reliability.md)"
    if saving is None:
        return
    notice, machines, warm = (f"{seconds / 60:.0f} min" for seconds in (DETECT_S, RESTART_S, WARM_UP_S))
    yield (
        f"an interruption costs the work since the last checkpoint, {notice} until it is noticed, {machines} for new"
        f" machines, the reading of the checkpoint, and {warm} of slow first steps"
    )
    if saving.copy is None:
        yield "a checkpoint stops the run until it is written"
    else:
        copy = saving.copy
        yield f"a checkpoint stops the run for the copy to the host, at {copy.gb_per_s:g} GB/s ({copy.source})"
    yield "between zones: a checkpoint is written once and read at each interruption, tokens are read once"
    yield "requests, what jobs fetch from elsewhere, and what Slurm and logins send between zones are in no sum"


def _assumed_block(found: tuple[Course, ...]) -> Iterator[str]:
    if any(one.market is Market.CAPACITY_BLOCK for one in found):
        yield "capacity-block: paid for as the shortest block that holds the run, whole days, from 14 on whole weeks"


def _assumed_spot(run: RunSpec, region: str, found: tuple[Course, ...]) -> Iterator[str]:
    """Which share of spot instances is taken back, and who says so."""
    if all(one.market is not Market.SPOT for one in found):
        return
    band, end, which = spot_band(run, region), f"{LAST_ENDS:.0%}", f"{run.machine.name} in {region}"
    if band is None:
        yield f"spot: none to {end} of {which} are taken back in a month - nothing is known, see {ADVISOR}"
        return
    whose = "as the run file says" if run.spot_interruptions else f"{band.source}, a copy of 2026"
    share = f"{band.label} (taken to end at {end})" if band.assumed else band.label
    taken = f"spot: {share} of {which} are taken back in a month ({whose})"
    yield f"{taken}; it changes - spot_interruptions in the run file"


def _prices(run: RunSpec, found: tuple[Course, ...]) -> Iterator[str]:
    """Where the prices of the nodes are from, and of when."""
    for source in dict.fromkeys(course.source for course in found if course.source):
        markets = ", ".join(course.market.value for course in found if course.source == source)
        yield f"price of {run.machine.name} ({markets}): {source}"
