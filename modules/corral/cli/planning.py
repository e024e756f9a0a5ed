"""What `corral plan` computes before it shows anything: the plan, its bill, and what else its options ask for.

Rooms that only some options need are loaded for those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from corral.forecast.bill import CostForecast
from corral.forecast.capacity import Counts, pool_counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.limits import Limit, hourly_limit
from corral.forecast.notes import Note, notes, over, replaced
from corral.forecast.prices import PriceList
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.files import Environment

if TYPE_CHECKING:
    from corral.forecast.buy import RentOrBuy
    from corral.forecast.whole.compare import Compared
    from corral.forecast.whole.run import WholeRun
    from corral.preflight.live_prices import LivePrices


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is asked for beside the plan. `live`: by AWS's prices of now, not the catalogue's."""

    run: Path | None
    compare: str | None
    buy: Path | None
    live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An environment as planned, with its bill and what is to be known of it.

    `whole`: of the run, None where none is declared; `bought`: None where nothing is to be bought.
    """

    base: BasePlan
    cluster: ClusterPlan
    cost: CostForecast
    notes: tuple[Note, ...]
    limits: tuple[Limit, ...]
    whole: WholeRun | None
    compared: tuple[Compared, ...]
    bought: RentOrBuy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """An environment as declared and as planned, and its prices."""

    spec: Environment
    base: BasePlan
    cluster: ClusterPlan
    counts: Counts
    prices: PriceList
    cost: CostForecast
    live: bool


def planned(spec: Environment, options: Options) -> Planned:
    """All of it. Raises SpecErrors for wrong files and words, with `live` botocore's errors."""
    ground, told = _ground(spec, live=options.live)
    whole = _forecast(ground, options.run) if options.run is not None else None
    limits = _limits(hourly_limit(spec.cluster, ground.cluster, ground.cost), whole)
    known = notes(ground.base, ground.cluster, ground.prices, ground.counts)
    return Planned(
        base=ground.base,
        cluster=ground.cluster,
        cost=ground.cost,
        notes=(*over(limits), *told, *replaced(spec.catalogue), *known),
        limits=limits,
        whole=replace(whole, assumed=(*whole.assumed, *(note.text for note in told))) if whole else None,
        compared=_compared(ground, whole, options.compare) if whole and options.compare is not None else (),
        bought=_bought(ground, options.buy) if options.buy is not None else None,
    )


def _ground(spec: Environment, *, live: bool) -> tuple[_Ground, tuple[Note, ...]]:
    """The plan and its bill, and in live prices what they lack."""
    base = plan_base(spec.base)
    cluster = plan_cluster(spec.cluster, base, catalogue=spec.catalogue)
    counts, told = pool_counts(spec.cluster), tuple[Note, ...]()
    prices = catalogue_prices(cluster.region, spec.catalogue)
    if live:
        found = _live(spec, base, cluster, cluster.region, tuple(queue.instance_type for queue in cluster.queues))
        prices, told = found, found.notes
    cost = forecast_cost(base, cluster, prices, counts)
    ground = _Ground(spec=spec, base=base, cluster=cluster, counts=counts, prices=prices, cost=cost, live=live)
    return ground, told


def _live(spec: Environment, base: BasePlan, cluster: ClusterPlan, region: str, types: tuple[str, ...]) -> LivePrices:
    """The prices of now of this environment's parts in a region, and of these types."""
    from corral.inventory.account import open_session
    from corral.preflight.answers import Answers
    from corral.preflight.live_prices import live_prices, wanted_of

    behind = catalogue_prices(region, spec.catalogue)
    own = [name for name, place in spec.catalogue.own_prices if place == region]
    wanted = wanted_of(base, cluster, behind, region=region, types=types, own=own, now=datetime.now(UTC))
    return live_prices(Answers(open_session(region, quick=True)), wanted, behind)


def _forecast(ground: _Ground, file: Path) -> WholeRun:
    from corral.forecast.whole.run import forecast_whole
    from corral.spec.run_files import read_run

    run = read_run(file, ground.spec)
    return forecast_whole(run, ground.base, ground.cluster, ground.cost, ground.prices, ground.counts)


def _compared(ground: _Ground, whole: WholeRun, words: str) -> tuple[Compared, ...]:
    from corral.forecast.whole.alternatives import parse_alternatives
    from corral.forecast.whole.compare import compare

    catalogue, here = ground.spec.catalogue, ground.cluster.region
    wanted = parse_alternatives(words, whole.spec.machine, here, catalogue)
    types = tuple(machine.name for machine in wanted.machines)

    @cache
    def prices_of(region: str) -> PriceList:
        if ground.live:
            return _live(ground.spec, ground.base, ground.cluster, region, types)
        return catalogue_prices(region, catalogue)

    return compare(whole.spec, ground.base, ground.cluster, wanted, prices_of)


def _bought(ground: _Ground, file: Path) -> RentOrBuy:
    from corral.forecast.buy import rent_or_buy
    from corral.forecast.capacity import supplies
    from corral.spec.buy_files import read_purchase

    purchase = read_purchase(file, ground.spec)
    return rent_or_buy(purchase, supplies(ground.cluster.queue(purchase.queue), ground.prices, ground.counts))


def _limits(hourly: Limit | None, whole: WholeRun | None) -> tuple[Limit, ...]:
    """The limits that are set, whether they hold or not."""
    if whole is None:
        return () if hourly is None else (hourly,)
    from corral.forecast.whole.limit import total_limit

    return tuple(one for one in (hourly, total_limit(whole)) if one)
