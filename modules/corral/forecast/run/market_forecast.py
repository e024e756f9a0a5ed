"""The duration of a declared run in each market, including interruptions and checkpoints, and its cost.

For spot, AWS publishes the band of each type's monthly reclaim rate; without a band in the run file or the catalog, the
range covers all bands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.catalog.accelerators.power import effectiveness, network_part, server_of, training_load
from corral.catalog.aws.spot_interruption_rates import ANY_BAND, SpotBand, find_spot_band, published_spot_band
from corral.forecast.cost.capacity_blocks import block_days
from corral.forecast.cost.cost_model import STATIC, CostForecast
from corral.forecast.cost.cost_range import HOURS_PER_MONTH, Sum, Usd
from corral.forecast.cost.pool_capacity import NO_COUNTS, Counts, MarketCapacity, market_capacities
from corral.forecast.cost.price_source import PriceList, Service
from corral.forecast.energy import Site, cluster_power
from corral.forecast.goodput import ProgressRange, progress_range
from corral.forecast.interruptions import Interruptions, machine_interruptions, spot_interruptions
from corral.forecast.run.checkpointing import HOME, CheckpointForecast
from corral.forecast.run.data_reading import tokenizing_of
from corral.forecast.run.transfer_charges import (
    CROSSING,
    ELASTIC,
    Flow,
    checkpoint_paid_s,
    crossing_usd,
    downloads_usd,
    downloads_what,
    elastic_usd,
    flows,
)
from corral.forecast.training.run_forecast import RunForecast
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.enums import Market
from corral.spec.models.run import BEFORE, RunSpec

_HOURS_PER_DAY, _SECONDS_PER_DAY = 24, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range. `high`: None if unbounded."""

    low: float
    high: float | None

    def times(self, factor: float) -> Span:
        """The range times the factor."""
        return Span(low=self.low * factor, high=None if self.high is None else self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge of the whole run. `usd`: None if the price is unknown, or if the run may never end."""

    what: str
    usd: Usd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketForecast:
    """The run in one market. `days`: wall time, with the uncertainty of speed and interruptions.

    `enough`: True if the market can supply all its nodes. `charges`: the nodes first, for a capacity block in whole
    days; their sum is `usd`. `paid_s`: the charge of sending a checkpoint as minimum and maximum seconds of the nodes.
    """

    market: Market
    nodes: int
    enough: bool
    interruptions: Interruptions
    paid_s: tuple[float, float]
    range: ProgressRange
    days: Span
    charges: tuple[Charge, ...]
    source: str | None

    @property
    def intervals_s(self) -> tuple[float, float]:
        """The shortest and the longest checkpoint interval.

        The longest is usually that of the fewest interruptions, unless sending a checkpoint may be expensive.
        """
        both = self.range.best.interval_s, self.range.worst.interval_s
        return min(both), max(both)

    @property
    def crossing(self) -> Usd | None:
        """The charge for traffic between zones; None if unknown."""
        return next((charge.usd for charge in self.charges if charge.what == CROSSING), None)

    @property
    def usd(self) -> Sum:
        """The cost of the run in this market."""
        return Sum.of((charge.what, charge.usd) for charge in self.charges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Power while training, including network and site, and the energy of all days."""

    server: str
    kw: Span
    mwh: Span
    estimated: bool


def market_forecasts(
    run: RunForecast,
    checkpoints: CheckpointForecast,
    cluster: ClusterPlan,
    cost: CostForecast,
    prices: PriceList,
    counts: Counts = NO_COUNTS,
) -> tuple[MarketForecast, ...]:
    """The run in each market of its queue that can start nodes, in the order of its offers."""
    found = market_capacities(cluster.queue(run.run.queue), prices, counts)
    return tuple(_market(run, checkpoints, cluster, one, cost, prices) for one in found if one.starts)


def energy_of(run: RunForecast, found: Sequence[MarketForecast]) -> Energy | None:
    """Power and energy over the range of days; None if the power of such a server is not published.

    The maximum counts machines that wait after an interruption as training.
    """
    server = server_of(run.job.machine.accelerator)
    if server is None:
        return None
    load, hours = training_load(), _longest(run, found).times(_HOURS_PER_DAY)
    low, high = (
        cluster_power(
            server,
            run.run.accelerators,
            Site(pue=effectiveness()["aws"].value, load=part, network_part=network_part().value),
        )
        for part in (load.low, load.high)
    )
    return Energy(
        server=server.name,
        kw=Span(low=low.total_kw, high=high.total_kw),
        mwh=Span(low=low.energy_mwh(hours.low), high=None if hours.high is None else high.energy_mwh(hours.high)),
        estimated=server.estimated,
    )


def _longest(run: RunForecast, found: Sequence[MarketForecast]) -> Span:
    """The range of days over these markets; without interruptions if there are none."""
    if not found:
        low, high = run.days_range
        return Span(low=low, high=high)
    most = [one.days.high for one in found]
    ends = [days for days in most if days is not None]
    return Span(low=min(one.days.low for one in found), high=max(ends) if len(ends) == len(most) else None)


def interruptions_of(run: RunForecast, market: Market, region: str) -> Interruptions:
    """The interruptions of the run by its machines and its market."""
    machines = machine_interruptions(run.run.accelerators)
    if market is not Market.SPOT:
        return machines
    return machines.plus(spot_interruptions(run.run.nodes, spot_band(run.run, region) or ANY_BAND))


def spot_band(run: RunSpec, region: str) -> SpotBand | None:
    """The band of the run file, otherwise of the catalog; None without either."""
    declared = run.spot_interruptions
    return find_spot_band(declared) if declared else published_spot_band(run.machine.name, region)


def _market(
    run: RunForecast,
    checkpoints: CheckpointForecast,
    cluster: ClusterPlan,
    supply: MarketCapacity,
    cost: CostForecast,
    prices: PriceList,
) -> MarketForecast:
    interruptions = interruptions_of(run, supply.market, cluster.region)
    interval = run.run.checkpoint.interval if run.run.checkpoint else None
    interval_s = interval.total_seconds() if interval else None
    work_s, queue = run.days * _SECONDS_PER_DAY, cluster.queue(run.run.queue)
    paid_s = checkpoint_paid_s(checkpoints, cluster, queue, supply, prices, run.run.nodes)
    found = progress_range(work_s, checkpoints.policy, interruptions, interval_s=interval_s, paid_s=paid_s)
    days = _days(run, found)
    moved = tuple(flows(run.run, checkpoints, found))
    crossing = crossing_usd(cluster, queue, supply.market, iter(moved), prices)
    nodes, *rest = _charges(run, checkpoints, queue, supply, cost, prices, days, crossing)
    downloaded = Charge(what=downloads_what(run.run), usd=downloads_usd(run.run, found, cost, prices))
    return MarketForecast(
        market=supply.market,
        nodes=run.run.nodes,
        enough=supply.most >= run.run.nodes,
        interruptions=interruptions,
        paid_s=paid_s,
        range=found,
        days=days,
        charges=(nodes, downloaded, *rest, *_elastic(checkpoints, moved, prices)),
        source=supply.source,
    )


def _days(run: RunForecast, found: ProgressRange) -> Span:
    """From the fastest with the fewest interruptions to the slowest with the most."""
    low, high = run.days_range
    best, worst = found.best, found.worst
    most = None if worst.wall_s is None else high * worst.wall_s / worst.work_s
    least = low if best.wall_s is None else low * best.wall_s / best.work_s
    return Span(low=least, high=most)


def _charges(
    run: RunForecast,
    checkpoints: CheckpointForecast,
    queue: QueuePlan,
    supply: MarketCapacity,
    cost: CostForecast,
    prices: PriceList,
    days: Span,
    crossing: Usd | None,
) -> Iterator[Charge]:
    hours = days.times(_HOURS_PER_DAY)
    node = supply.usd_per_node_hour
    nodes = f"{run.run.nodes} {queue.instance_type}, {supply.market.value}"
    sold = _sold(days) if supply.market is Market.CAPACITY_BLOCK else days
    paid = _cost_over(node.times(run.run.nodes) if node else None, sold.times(_HOURS_PER_DAY))
    yield Charge(what=nodes, usd=paid)
    for item in (*cost.cluster, *cost.base):
        if item.unit != STATIC:  # static nodes are part of the run's nodes
            yield Charge(what=item.named, usd=_cost_over(item.usd_per_hour, hours))
    yield _disks(run, queue, prices, hours)
    yield Charge(what=CROSSING, usd=crossing)
    yield _stored(checkpoints, prices, hours)
    if (tokens := tokenizing_of(run.run, run.speed.tokens_per_s, prices)) and tokens.when == BEFORE:
        yield Charge(what=f"tokenization, {tokens.hours:,.0f} h of {tokens.server}", usd=tokens.usd)


def _sold(days: Span) -> Span:
    """The lengths of the capacity blocks for so many days."""
    return Span(low=block_days(days.low), high=None if days.high is None else block_days(days.high))


def _disks(run: RunForecast, queue: QueuePlan, prices: PriceList, hours: Span) -> Charge:
    size_gib = run.run.nodes * queue.root_gib
    return Charge(
        what=f"root volumes of the nodes ({size_gib:,} GiB)", usd=_month(size_gib, Service.GP3_GIB_MONTH, prices, hours)
    )


def _stored(checkpoints: CheckpointForecast, prices: PriceList, hours: Span) -> Charge:
    """The tokens in the bucket, and checkpoints on EFS; Lustre is billed by its size."""
    corpus_gib = checkpoints.corpus / 2**30
    usd = _month(corpus_gib, Service.S3_GIB_MONTH, prices, hours)
    if checkpoints.faster is not None:
        return Charge(what="data: tokens in the bucket", usd=usd)
    efs = _month(checkpoints.stored_bytes / 2**30, Service.EFS_GIB_MONTH, prices, hours)
    return Charge(what="data: tokens in the bucket, checkpoints on EFS", usd=usd.plus(efs) if usd and efs else None)


def _elastic(checkpoints: CheckpointForecast, moved: Sequence[Flow], prices: PriceList) -> Iterator[Charge]:
    if checkpoints.elastic and any(flow.storage == HOME for flow in moved):
        yield Charge(what=ELASTIC, usd=elastic_usd(moved, prices))


def _month(size_gib: float, service: Service, prices: PriceList, hours: Span) -> Usd | None:
    price = prices.service(service)
    return _cost_over(Usd.exact(price.usd * size_gib / HOURS_PER_MONTH) if price else None, hours)


def _cost_over(usd_per_hour: Usd | None, hours: Span) -> Usd | None:
    """The cost over so many hours; None if unbounded."""
    if usd_per_hour is None or hours.high is None:
        return None
    return Usd(usd_per_hour.low * hours.low, usd_per_hour.high * hours.high)
