"""The same run on other machines, in other regions and markets: duration and cost of each alternative.

The layout is chosen once for each type, since neither region nor market changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from corral.catalog.aws.instance_types import InstanceType
from corral.catalog.aws.instance_types_by_accelerator import accelerator_of
from corral.catalog.aws.zone_offerings import offered_zones
from corral.forecast.cost.cost_range import Sum, Usd
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.price_source import PriceList
from corral.forecast.run.alternatives import Alternatives, is_offered
from corral.forecast.run.checkpointing import checkpoint_forecast
from corral.forecast.run.market_forecast import MarketForecast, Span, market_forecasts
from corral.forecast.training.explanations import layout_words
from corral.forecast.training.run_forecast import RunForecast, forecast_run
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, OfferPlan, QueuePlan
from corral.model.enums import Market
from corral.spec.models.run import RunSpec
from corral.spec.rules.layout_rules import LayoutContext, check_layout
from corral.spec.rules.queue_rules import BLOCKS_INSTANCES
from corral.spec.rules.run_rules import check_precision
from corral.spec.spec_errors import SpecErrors

_BILLION = 1e9
_BOUGHT = (Market.ON_DEMAND, Market.SPOT, Market.CAPACITY_BLOCK)  # a reservation costs the on-demand price


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The run on machines of a type, in a region and a market; in all markets if that is None.

    `why_not`: why it is impossible, otherwise None. `tokens_per_s`: without interruptions. Unknown values are None.
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
        """The cost of a billion tokens; None if the run's cost is not completely known."""
        if self.usd.usd is None or self.usd.missing:
            return None
        return self.usd.usd.times(_BILLION / self.tokens)


def compare_alternatives(
    run: RunSpec,
    base: BasePlan,
    cluster: ClusterPlan,
    wanted: Alternatives,
    prices_of: Callable[[str], PriceList],
) -> tuple[Alternative, ...]:
    """The alternatives: the cheapest first by highest possible cost, then those without a known cost or end.

    Impossible ones come last. Head, network and file systems are the environment's, at the prices of each region.
    """
    found = (one for machine in wanted.machines for one in _on_machine(run, machine, base, cluster, wanted, prices_of))
    return tuple(sorted(found, key=_order))


def on_machine(run: RunSpec, machine: InstanceType) -> RunSpec:
    """The run on as many accelerators of this type, in whole machines; with EFA if possible."""
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
) -> Iterator[Alternative]:
    other = on_machine(run, machine)
    training, why = _forecast(other)
    for region in wanted.regions:
        if training is None or why:
            yield _none(other, region, why, training)
        elif not is_offered(machine, region):
            yield _none(other, region, f"not offered in {region} by the catalog's snapshot", training)
        else:
            yield from _in_region(training, region, base, cluster, prices_of(region))


def _forecast(run: RunSpec) -> tuple[RunForecast | None, str | None]:
    """The forecast on these machines, and why the run is impossible there."""
    accelerator = accelerator_of(run.machine)
    assert accelerator is not None  # parse_alternatives checks it
    wrong = [one.text for one in check_precision(run.precision, run.machine, accelerator)]
    if run.layout:
        laid = LayoutContext(
            model=run.model,
            sequence_length=run.sequence_length,
            batch_sequences=run.batch_sequences,
            accelerators=run.accelerators,
        )
        wrong += [f"the declared layout: {one.text}" for one in check_layout(run.layout, laid)]
    if wrong:
        return None, "; ".join(wrong)
    try:
        training = forecast_run(run)
    except SpecErrors as error:
        return None, "; ".join(one.text for one in error.errors)
    if training.fits:
        return training, None
    change = f" - {training.change}" if training.change else ""
    return training, f"does not fit: {training.missing_gib:,.1f} GiB too large{change}"


def _in_region(
    training: RunForecast, region: str, base: BasePlan, cluster: ClusterPlan, prices: PriceList
) -> Iterator[Alternative]:
    run = training.run
    zone = next(iter(offered_zones(run.machine.name, region)), region)
    queue = _queue(cluster.queue(run.queue), run, zone)
    there = replace(base, region=region)
    lustre = tuple(replace(system, zone_id=zone) for system in cluster.lustre)  # where the machines are
    moved = replace(cluster, region=region, queues=(queue,), lustre=lustre)
    checkpoints = checkpoint_forecast(training, there, moved)
    if checkpoints is None:
        yield _none(run, region, "the environment has no shared file system", training)
        return
    counts = {(queue.name, offer.pool): BLOCKS_INSTANCES for offer in queue.offers if offer.market.is_reserved}
    cost = forecast_cost(there, moved, prices, counts)
    for market in market_forecasts(training, checkpoints, moved, cost, prices, counts):
        yield _compared(training, region, market)


def _queue(queue: QueuePlan, run: RunSpec, zone: str) -> QueuePlan:
    """The queue with the run's machines in this zone, with an offer in every market that EC2 has for them."""
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


def _compared(training: RunForecast, region: str, market: MarketForecast) -> Alternative:
    why = None if market.enough else f"an account can have at most {BLOCKS_INSTANCES} instances in capacity blocks"
    row = _none(training.run, region, why, training)
    return replace(row, market=market.market, days=market.days, usd=market.usd)


def _none(run: RunSpec, region: str, why: str | None, training: RunForecast | None) -> Alternative:
    """An alternative without duration and cost."""
    known = training if training and training.fits else None
    return Alternative(
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


def _order(row: Alternative) -> tuple[int, float, float, str, str]:
    usd = row.usd.usd
    known = usd is not None and not row.usd.missing
    rank = 2 if row.why_not else 0 if known else 1
    low, high = (usd.low, usd.high) if usd else (0.0, 0.0)
    return rank, high, low, row.instance_type, row.region
