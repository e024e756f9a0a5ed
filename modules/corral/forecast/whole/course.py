"""How long a declared run takes in each market, interruptions and checkpoints with it, and what all of it costs.

Spot instances: AWS publishes in which band the share of a type lies that it takes back in a month; all bands together
where the run file says none and the catalogue knows none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.catalog.power import effectiveness, network_part, server_of, training_load
from corral.catalog.spot_bands import ANY, SpotBand, find_spot_band, published_band
from corral.forecast.bill import STATIC, CostForecast
from corral.forecast.blocks import block_days
from corral.forecast.capacity import NO_COUNTS, Counts, Supply, supplies
from corral.forecast.interruptions import Interruptions, machine_interruptions, spot_interruptions
from corral.forecast.money import HOURS_PER_MONTH, Sum, Usd
from corral.forecast.power import Site, cluster_power
from corral.forecast.prices import PriceList, Service
from corral.forecast.reliability import CourseRange, course_range
from corral.forecast.training.outcome import RunForecast
from corral.forecast.whole.crossing import WHAT as CROSSING
from corral.forecast.whole.crossing import Flow, crossing_usd, flows
from corral.forecast.whole.downloads import downloads_usd, downloads_what
from corral.forecast.whole.elastic import WHAT as ELASTIC
from corral.forecast.whole.elastic import elastic_usd
from corral.forecast.whole.loading import tokenizing_of
from corral.forecast.whole.paid import checkpoint_paid_s
from corral.forecast.whole.saving import HOME, Saving
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.markets import Market
from corral.spec.run import BEFORE, RunSpec

_HOURS_PER_DAY, _SECONDS_PER_DAY = 24, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From the least to the most. `high` is None where nothing bounds it."""

    low: float
    high: float | None

    def times(self, factor: float) -> Span:
        """So many times both ends."""
        return Span(low=self.low * factor, high=None if self.high is None else self.high * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One kind of cost of the whole run. `usd` is None where no price is known, or where the run may never end."""

    what: str
    usd: Usd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The run in one market. `days` of wall time: the speed's uncertainty and the interruptions' are both in it.

    `enough`: whether the market can give all its nodes. `charges`: the nodes first, of a capacity block for its whole
    days; their sum is `usd`. `paid_s`: what sending a checkpoint costs, as seconds of the nodes that cost as much, at
    least and at most.
    """

    market: Market
    nodes: int
    enough: bool
    interruptions: Interruptions
    paid_s: tuple[float, float]
    range: CourseRange
    days: Span
    charges: tuple[Charge, ...]
    source: str | None

    @property
    def intervals_s(self) -> tuple[float, float]:
        """The shortest and the longest between two checkpoints.

        The longest is mostly that of the fewest interruptions; not where a checkpoint may be dear to send.
        """
        both = self.range.best.interval_s, self.range.worst.interval_s
        return min(both), max(both)

    @property
    def crossing(self) -> Usd | None:
        """What of it is traffic between zones; None where that is not known."""
        return next((charge.usd for charge in self.charges if charge.what == CROSSING), None)

    @property
    def usd(self) -> Sum:
        """What the run costs in this market."""
        return Sum.of((charge.what, charge.usd) for charge in self.charges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Power while it trains, in kW with network and site, and the energy of all its days in MWh."""

    server: str
    kw: Span
    mwh: Span
    estimated: bool


def courses(
    run: RunForecast,
    saving: Saving,
    cluster: ClusterPlan,
    cost: CostForecast,
    prices: PriceList,
    counts: Counts = NO_COUNTS,
) -> tuple[Course, ...]:
    """The run in each market of its queue in which nodes can start, in the order in which they are tried."""
    found = supplies(cluster.queue(run.run.queue), prices, counts)
    return tuple(_course(run, saving, cluster, one, cost, prices) for one in found if one.starts)


def energy_of(run: RunForecast, found: Sequence[Course]) -> Energy | None:
    """From the shortest of its days to the longest of these; None where nobody has published what such a server takes.

    Machines that wait after an interruption count as if they trained: at most.
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


def _longest(run: RunForecast, found: Sequence[Course]) -> Span:
    """The days of the run in any of these markets; uninterrupted where there is none."""
    if not found:
        low, high = run.days_range
        return Span(low=low, high=high)
    most = [one.days.high for one in found]
    ends = [days for days in most if days is not None]
    return Span(low=min(one.days.low for one in found), high=max(ends) if len(ends) == len(most) else None)


def interruptions_of(run: RunForecast, market: Market, region: str) -> Interruptions:
    """What its machines and its market do to the run."""
    machines = machine_interruptions(run.run.accelerators)
    if market is not Market.SPOT:
        return machines
    return machines.plus(spot_interruptions(run.run.nodes, spot_band(run.run, region) or ANY))


def spot_band(run: RunSpec, region: str) -> SpotBand | None:
    """The band that the run file says, else the catalogue's; None where neither does."""
    said = run.spot_interruptions
    return find_spot_band(said) if said else published_band(run.machine.name, region)


def _course(
    run: RunForecast, saving: Saving, cluster: ClusterPlan, supply: Supply, cost: CostForecast, prices: PriceList
) -> Course:
    interruptions = interruptions_of(run, supply.market, cluster.region)
    interval = run.run.checkpoint.interval if run.run.checkpoint else None
    interval_s = interval.total_seconds() if interval else None
    work_s, queue = run.days * _SECONDS_PER_DAY, cluster.queue(run.run.queue)
    paid_s = checkpoint_paid_s(saving, cluster, queue, supply, prices, run.run.nodes)
    found = course_range(work_s, saving.habits, interruptions, interval_s=interval_s, paid_s=paid_s)
    days = _days(run, found)
    moved = tuple(flows(run.run, saving, found))
    crossing = crossing_usd(cluster, queue, supply.market, iter(moved), prices)
    nodes, *rest = _charges(run, saving, queue, supply, cost, prices, days, crossing)
    downloaded = Charge(what=downloads_what(run.run), usd=downloads_usd(run.run, found, cost, prices))
    return Course(
        market=supply.market,
        nodes=run.run.nodes,
        enough=supply.most >= run.run.nodes,
        interruptions=interruptions,
        paid_s=paid_s,
        range=found,
        days=days,
        charges=(nodes, downloaded, *rest, *_elastic(saving, moved, prices)),
        source=supply.source,
    )


def _days(run: RunForecast, found: CourseRange) -> Span:
    """The fastest with the fewest interruptions, the slowest with the most."""
    low, high = run.days_range
    best, worst = found.best, found.worst
    most = None if worst.wall_s is None else high * worst.wall_s / worst.work_s
    least = low if best.wall_s is None else low * best.wall_s / best.work_s
    return Span(low=least, high=most)


def _charges(
    run: RunForecast,
    saving: Saving,
    queue: QueuePlan,
    supply: Supply,
    cost: CostForecast,
    prices: PriceList,
    days: Span,
    crossing: Usd | None,
) -> Iterator[Charge]:
    hours = days.times(_HOURS_PER_DAY)
    node = supply.usd_per_node_hour
    nodes = f"{run.run.nodes} {queue.instance_type}, {supply.market.value}"
    sold = _sold(days) if supply.market is Market.CAPACITY_BLOCK else days
    paid = _over(node.times(run.run.nodes) if node else None, sold.times(_HOURS_PER_DAY))
    yield Charge(what=nodes, usd=paid)
    for item in (*cost.cluster, *cost.base):
        if item.unit != STATIC:  # nodes that are always there are among the run's
            yield Charge(what=item.named, usd=_over(item.usd_per_hour, hours))
    yield _disks(run, queue, prices, hours)
    yield Charge(what=CROSSING, usd=crossing)
    yield _stored(saving, prices, hours)
    if (tokens := tokenizing_of(run.run, run.speed.tokens_per_s, prices)) and tokens.when == BEFORE:
        yield Charge(what=f"making tokens of the text, {tokens.hours:,.0f} h of {tokens.server}", usd=tokens.usd)


def _sold(days: Span) -> Span:
    """The days of the blocks that hold these."""
    return Span(low=block_days(days.low), high=None if days.high is None else block_days(days.high))


def _disks(run: RunForecast, queue: QueuePlan, prices: PriceList, hours: Span) -> Charge:
    size_gib = run.run.nodes * queue.root_gib
    return Charge(
        what=f"root volumes of the nodes ({size_gib:,} GiB)", usd=_month(size_gib, Service.GP3_GIB_MONTH, prices, hours)
    )


def _stored(saving: Saving, prices: PriceList, hours: Span) -> Charge:
    """The corpus in the bucket, and on EFS the checkpoints; Lustre is paid for by its size."""
    corpus_gib = saving.corpus / 2**30
    usd = _month(corpus_gib, Service.S3_GIB_MONTH, prices, hours)
    if saving.faster is not None:
        return Charge(what="data: tokens in the bucket", usd=usd)
    efs = _month(saving.stored_bytes / 2**30, Service.EFS_GIB_MONTH, prices, hours)
    return Charge(what="data: tokens in the bucket, checkpoints on EFS", usd=usd.plus(efs) if usd and efs else None)


def _elastic(saving: Saving, moved: Sequence[Flow], prices: PriceList) -> Iterator[Charge]:
    if saving.elastic and any(flow.place == HOME for flow in moved):
        yield Charge(what=ELASTIC, usd=elastic_usd(moved, prices))


def _month(size_gib: float, service: Service, prices: PriceList, hours: Span) -> Usd | None:
    price = prices.service(service)
    return _over(Usd.exact(price.usd * size_gib / HOURS_PER_MONTH) if price else None, hours)


def _over(usd_per_hour: Usd | None, hours: Span) -> Usd | None:
    """What it costs in so many hours; None where they have no end."""
    if usd_per_hour is None or hours.high is None:
        return None
    return Usd(usd_per_hour.low * hours.low, usd_per_hour.high * hours.high)
