"""The whole forecast of a declared run, with its warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.catalog.aws.spot_interruption_rates import ADVISOR, LAST_BAND_END
from corral.forecast.cost.capacity_blocks import LONGEST_DAYS
from corral.forecast.cost.cost_model import CostForecast
from corral.forecast.cost.pool_capacity import NO_COUNTS, Counts, starts
from corral.forecast.cost.price_source import PriceList
from corral.forecast.fabric.run_network import NetworkOutlook, network_outlook
from corral.forecast.run.checkpointing import DETECT_S, RESTART_S, WARM_UP_S, CheckpointForecast, checkpoint_forecast
from corral.forecast.run.data_reading import DataReading, data_reading
from corral.forecast.run.market_forecast import Energy, MarketForecast, energy_of, market_forecasts, spot_band
from corral.forecast.storage_speed import GIB
from corral.forecast.training.run_forecast import RunForecast, forecast_run
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.enums import Market
from corral.spec.models.durations import format_duration
from corral.spec.models.run import WHILE_TRAINING, RunSpec

_LONG_S = 600.0  # to write a checkpoint; an interruption meanwhile also loses the work since the one before
_SECONDS_PER_DAY = 86_400
_MUCH = 0.05  # of the cost, for traffic between zones


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutlook:
    """A run: its training, network, checkpoints, data loading, forecast per market, and power.

    Unknown parts are None or empty. If the model does not fit, `markets` is empty, and `network`, `data` and `energy`
    are None.
    """

    training: RunForecast
    network: NetworkOutlook | None
    checkpoints: CheckpointForecast | None
    data: DataReading | None
    markets: tuple[MarketForecast, ...]
    energy: Energy | None
    warnings: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def spec(self) -> RunSpec:
        """The run as declared."""
        return self.training.run


def forecast_outlook(
    run: RunSpec,
    base: BasePlan,
    cluster: ClusterPlan,
    cost: CostForecast,
    prices: PriceList,
    counts: Counts = NO_COUNTS,
) -> RunOutlook:
    """The whole forecast. Raises SpecErrors if no layout divides the batch among the accelerators."""
    training = forecast_run(run)
    checkpoints = checkpoint_forecast(training, base, cluster)
    network = network_outlook(run, training.job) if training.fits else None
    data = data_reading(training, prices) if training.fits else None
    found = (
        market_forecasts(training, checkpoints, cluster, cost, prices, counts) if checkpoints and training.fits else ()
    )
    return RunOutlook(
        training=training,
        network=network,
        checkpoints=checkpoints,
        data=data,
        markets=found,
        energy=energy_of(training, found) if training.fits else None,
        warnings=(
            *training.warnings,
            *_warnings(training, checkpoints, found),
            *(_too_dear(cluster.queue(run.queue), prices) if checkpoints and training.fits else ()),
            *_blocks(found),
            *_lifetime(cluster, found),
            *_loading_warnings(training, data),
        ),
        assumed=(
            *training.assumed,
            *_assumed_network(network),
            *_assumed(checkpoints),
            *_assumed_block(found),
            *_assumed_spot(run, cluster.region, found),
            *_prices(run, found),
        ),
    )


def _warnings(
    training: RunForecast, checkpoints: CheckpointForecast | None, found: tuple[MarketForecast, ...]
) -> Iterator[str]:
    if checkpoints is None:
        yield "the environment has no shared file system: checkpoints, duration and cost are unknown"
        return
    if checkpoints.faster and checkpoints.write_s > _LONG_S:
        system = checkpoints.faster.system
        better = f"{system.size_gib:,} GiB of {system.deployment.name} take {checkpoints.faster.write_s / 60:,.1f} min"
        yield f"a checkpoint takes {checkpoints.write_s / 60:,.0f} min to write - {better}"
    if checkpoints.capacity_gib is not None and checkpoints.stored_bytes > checkpoints.capacity_gib * GIB:
        what = f"{checkpoints.retained:,} checkpoints take {checkpoints.stored_bytes / GIB:,.0f} GiB"
        better = "lower checkpoint.keep, or use a larger file system"
        yield f"{what}, and {checkpoints.storage} has {checkpoints.capacity_gib:,} GiB - {better}"
    declared = training.run.checkpoint.interval if training.run.checkpoint else None
    if declared is not None and declared.total_seconds() < checkpoints.write_s:
        what = f"checkpoint.interval {format_duration(declared)} is shorter than the {checkpoints.write_s:,.0f} s"
        yield f"{what} to write a checkpoint - use a longer interval, or omit it"
    for one in found:
        if not one.enough:
            yield f"{one.market.value} cannot supply all {one.nodes} nodes of the run"
        worst = one.range.worst
        if worst.no_progress:
            yield f"{one.market.value}, worst case: {worst.no_progress}"
        if one.crossing and one.usd.usd and one.crossing.high > _MUCH * one.usd.usd.high:
            most = f"{one.crossing.high:,.0f} USD"
            better = "use a longer checkpoint.interval, or restrict the market to the zone of the file system"
            yield f"{one.market.value}: cross-zone traffic of checkpoints and tokens costs up to {most} - {better}"
    if training.run.machine.accelerator and not training.run.efa and training.run.nodes > 1:
        yield "the nodes have no EFA between them - use a type with EFA, or one node"


def _too_dear(queue: QueuePlan, prices: PriceList) -> Iterator[str]:
    """The warning that no spot machine starts at the queue's price limits."""
    price, spot = prices.instance(queue.instance_type), [one for one in queue.offers if one.market is Market.SPOT]
    highest = max((one.max_price_usd_per_hour or 0.0 for one in spot), default=0.0)
    if price and price.spot and spot and not any(starts(one, queue.instance_type, prices) for one in spot):
        cheapest = f"the cheapest known zone costs {price.spot.low:,.2f}"
        yield f"spot: no machine starts at {highest:,.2f} USD an hour (max_price), {cheapest} - raise it"


def _blocks(found: tuple[MarketForecast, ...]) -> Iterator[str]:
    """The warning that the run is longer than any Capacity Block."""
    for one in found:
        most = one.days.high
        if one.market is Market.CAPACITY_BLOCK and (most is None or most > LONGEST_DAYS):
            takes = "may never end" if most is None else f"may take {most:,.0f}"
            yield (
                f"capacity-block: a block lasts at most {LONGEST_DAYS} days, the run {takes} - buy consecutive"
                " blocks, or use more nodes"
            )


def _lifetime(cluster: ClusterPlan, found: tuple[MarketForecast, ...]) -> Iterator[str]:
    """The warning that the cluster may end before the run does."""
    ends, longest = cluster.lifetime.ttl_s, [one.days.high for one in found]
    if ends is None or all(days is not None and days * _SECONDS_PER_DAY <= ends for days in longest):
        return
    days = ends / _SECONDS_PER_DAY
    yield f"the cluster ends after {days:,.1f} days (lifetime.ttl), the run may take longer - raise lifetime.ttl"


def _loading_warnings(training: RunForecast, data: DataReading | None) -> Iterator[str]:
    tokens = data.tokenizing if data else None
    if tokens and tokens.when == WHILE_TRAINING and tokens.servers > training.run.nodes:
        needed = f"{tokens.servers:,.1f} servers like {tokens.server}"
        yield f"tokenizing during training needs {needed} - tokenize before the run"


def _assumed_network(network: NetworkOutlook | None) -> Iterator[str]:
    if network:
        yield "AWS publishes no topology: a rail-optimised network without taper is assumed (docs/network.md)"


def _assumed(checkpoints: CheckpointForecast | None) -> Iterator[str]:
    yield "duration and cost: uninterrupted training plus checkpoints and interruptions (docs/reliability.md)"
    if checkpoints is None:
        return
    notice, machines, warm = (f"{seconds / 60:.0f} min" for seconds in (DETECT_S, RESTART_S, WARM_UP_S))
    yield (
        f"an interruption costs the work since the last checkpoint, {notice} to detect it, {machines} for new machines,"
        f" the time to read the checkpoint, and {warm} of slow first steps"
    )
    if checkpoints.copy is None:
        yield "a checkpoint stalls the run until it is written"
    else:
        copy = checkpoints.copy
        yield f"a checkpoint stalls the run for the copy to the host, at {copy.gb_per_s:g} GB/s ({copy.source})"
    yield "between zones: one write per checkpoint, one read per interruption, one read of all tokens"
    yield "no sum includes requests, downloads of jobs, and cross-zone traffic of Slurm and logins"


def _assumed_block(found: tuple[MarketForecast, ...]) -> Iterator[str]:
    if any(one.market is Market.CAPACITY_BLOCK for one in found):
        yield "capacity-block: the shortest block for the run is billed, in whole days, from 14 days on in whole weeks"


def _assumed_spot(run: RunSpec, region: str, found: tuple[MarketForecast, ...]) -> Iterator[str]:
    """The assumed reclaim rate of spot instances, and its source."""
    if all(one.market is not Market.SPOT for one in found):
        return
    band, end, which = spot_band(run, region), f"{LAST_BAND_END:.0%}", f"{run.machine.name} in {region}"
    if band is None:
        yield f"spot: 0 to {end} of {which} are reclaimed per month - no known rate, see {ADVISOR}"
        return
    whose = "run file" if run.spot_interruptions else f"{band.source}, a copy of 2026"
    share = f"{band.label} (assumed to end at {end})" if band.assumed else band.label
    taken = f"spot: {share} of {which} are reclaimed per month ({whose})"
    yield f"{taken}; the rate varies - set spot_interruptions in the run file"


def _prices(run: RunSpec, found: tuple[MarketForecast, ...]) -> Iterator[str]:
    """The sources and dates of the node prices."""
    for source in dict.fromkeys(market.source for market in found if market.source):
        markets = ", ".join(market.market.value for market in found if market.source == source)
        yield f"price of {run.machine.name} ({markets}): {source}"
