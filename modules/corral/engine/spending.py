"""The limit of what an environment may cost an hour, before an up begins anything."""

from __future__ import annotations

from corral.engine.errors import REFUSED, EngineError
from corral.forecast.capacity import pool_counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.limits import hourly_limit
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.files import Environment


def refuse_overspending(environment: Environment) -> None:
    """Raises EngineError where the spec's usd_per_hour_max does not hold by the catalogue's prices."""
    spec = environment.cluster
    if spec.usd_per_hour_max is None:
        return
    base = plan_base(environment.base)
    cluster = plan_cluster(spec, base, catalogue=environment.catalogue)
    prices = catalogue_prices(cluster.region, environment.catalogue)
    limit = hourly_limit(spec, cluster, forecast_cost(base, cluster, prices, pool_counts(spec)))
    if limit and limit.refusal:
        raise EngineError(f"{limit.refusal}: nothing was changed", (f"corral plan {spec.name}",), REFUSED)
