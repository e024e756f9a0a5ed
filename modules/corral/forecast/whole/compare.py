"""The same run on other machines, in other regions and markets: what each would take, and what it would cost.

The layout is chosen once for each type, since neither region nor market changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from corral.catalog.accelerators import accelerator_of
from corral.catalog.instances import InstanceType
from corral.catalog.offerings import offered_zones
from corral.forecast.cost import forecast_cost
from corral.forecast.money import Sum, Usd
from corral.forecast.prices import PriceList
from corral.forecast.training.outcome import RunForecast, forecast_run
from corral.forecast.training.reasons import layout_words
from corral.forecast.whole.alternatives import Alternatives, is_offered
from corral.forecast.whole.course import Course, Span, courses
from corral.forecast.whole.saving import saving_of
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, OfferPlan, QueuePlan
from corral.model.markets import Market
from corral.spec.errors import SpecErrors
from corral.spec.rules_layout import Laid, check_layout
from corral.spec.rules_queues import BLOCKS_INSTANCES
from corral.spec.rules_run import check_precision
from corral.spec.run import RunSpec

_BILLION = 1e9
_BOUGHT = (Market.ON_DEMAND, Market.SPOT, Market.CAPACITY_BLOCK)  # a reservation costs what on-demand does


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The run on so many machines of a type, in a region and a market; all markets where it is `None`.

    `why_not`: why it cannot be had so, None where it can. `tokens_per_s` while nothing interrupts it. What is not
    known is None.
    """

    instance_type: str
    region: str
    market: Market | None
    nodes: int
    accelerators: int
    layout: str | None
    tokens: int
    tokens_per_s: float | None
    days: Span | None
    usd: Sum
    why_not: str | None

    @property
    def usd_per_billion_tokens(self) -> Usd | None:
        """What a billion tokens cost; None where the run's cost is not known, or only a part of it."""
        if self.usd.usd is None or self.usd.missing:
            return None
        return self.usd.usd.times(_BILLION / self.tokens)


def compare(
    run: RunSpec,
    base: BasePlan,
    cluster: ClusterPlan,
    wanted: Alternatives,
    prices_of: Callable[[str], PriceList],
) -> tuple[Compared, ...]:
    """The run on each of these, the cheapest first by the most that it may cost; then what has no known cost or end.

    Last what cannot be had. Head, network and file systems are the environment's, at the prices of each region.
    """
    found = (one for machine in wanted.machines for one in _on_machine(run, machine, base, cluster, wanted, prices_of))
    return tuple(sorted(found, key=_order))


def on_machine(run: RunSpec, machine: InstanceType) -> RunSpec:
    """The run on as many accelerators of this type, in whole machines; with EFA where both have it, or only this."""
    each = machine.accelerator.count if machine.accelerator else 1
    wanted = run.efa or not run.machine.efa_maximum
    return replace(run, machine=machine, nodes=-(-run.accelerators // each), efa=bool(machine.efa_maximum) and wanted)


def _on_machine(
    run: RunSpec,
    machine: InstanceType,
    base: BasePlan,
    cluster: ClusterPlan,
    wanted: Alternatives,
    prices_of: Callable[[str], PriceList],
) -> Iterator[Compared]:
    other = on_machine(run, machine)
    training, why = _forecast(other)
    for region in wanted.regions:
        if training is None or why:
            yield _none(other, region, why, training)
        elif not is_offered(machine, region):
            yield _none(other, region, f"was not offered in {region} when last looked", training)
        else:
            yield from _in_region(training, region, base, cluster, prices_of(region))


def _forecast(run: RunSpec) -> tuple[RunForecast | None, str | None]:
    """What the run comes to, and why it cannot be on these machines."""
    accelerator = accelerator_of(run.machine)
    assert accelerator is not None  # Alternatives are only such
    wrong = [one.message for one in check_precision(run.precision, run.machine, accelerator)]
    if run.layout:
        laid = Laid(
            model=run.model,
            sequence_length=run.sequence_length,
            batch_sequences=run.batch_sequences,
            accelerators=run.accelerators,
        )
        wrong += [f"the declared layout: {one.message}" for one in check_layout(run.layout, laid)]
    if wrong:
        return None, "; ".join(wrong)
    try:
        training = forecast_run(run)
    except SpecErrors as error:
        return None, "; ".join(one.message for one in error.errors)
    if training.fits:
        return training, None
    change = f" - {training.change}" if training.change else ""
    return training, f"does not fit, {training.missing_gib:,.1f} GiB too large{change}"


def _in_region(
    training: RunForecast, region: str, base: BasePlan, cluster: ClusterPlan, prices: PriceList
) -> Iterator[Compared]:
    run = training.run
    zone = next(iter(offered_zones(run.machine.name, region)), region)
    queue = _queue(cluster.queue(run.queue), run, zone)
    there = replace(base, region=region)
    lustre = tuple(replace(system, zone_id=zone) for system in cluster.lustre)  # where the machines are
    moved = replace(cluster, region=region, queues=(queue,), lustre=lustre)
    saving = saving_of(training, there, moved)
    if saving is None:
        yield _none(run, region, "the environment has no file system that its jobs share", training)
        return
    counts = {(queue.name, offer.pool): BLOCKS_INSTANCES for offer in queue.offers if offer.market.is_reserved}
    cost = forecast_cost(there, moved, prices, counts)
    for course in courses(training, saving, moved, cost, prices, counts):
        yield _compared(training, region, course)


def _queue(queue: QueuePlan, run: RunSpec, zone: str) -> QueuePlan:
    """The queue with the run's machines in this zone, sold in every way in which EC2 sells them."""
    offers = tuple(
        OfferPlan(
            key=f"{queue.name}-{market.value}",
            pool=number,
            market=market,
            zone_id=zone,
            max_price_usd_per_hour=None,
            placement_group=None,
        )
        for number, market in enumerate(_BOUGHT, start=1)
        if market.value in run.machine.markets
    )
    return replace(queue, instance_type=run.machine.name, min_nodes=0, max_nodes=run.nodes, offers=offers)


def _compared(training: RunForecast, region: str, course: Course) -> Compared:
    why = None if course.enough else f"an account has {BLOCKS_INSTANCES} instances in capacity blocks at most"
    row = _none(training.run, region, why, training)
    return replace(row, market=course.market, days=course.days, usd=course.usd)


def _none(run: RunSpec, region: str, why: str | None, training: RunForecast | None) -> Compared:
    """A row without time and money."""
    known = training if training and training.fits else None
    return Compared(
        instance_type=run.machine.name,
        region=region,
        market=None,
        nodes=run.nodes,
        accelerators=run.accelerators,
        layout=layout_words(known.layout) if known else None,
        tokens=run.tokens,
        tokens_per_s=known.speed.tokens_per_s if known else None,
        days=None,
        usd=Sum(usd=None),
        why_not=why,
    )


def _order(row: Compared) -> tuple[int, float, float, str, str]:
    usd = row.usd.usd
    known = usd is not None and not row.usd.missing
    rank = 2 if row.why_not else 0 if known else 1
    low, high = (usd.low, usd.high) if usd else (0.0, 0.0)
    return rank, high, low, row.instance_type, row.region
