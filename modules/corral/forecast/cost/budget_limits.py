"""The user's cost limits, and the refusals if one is exceeded.

A limit holds only if the upper end of the expected cost is known and not above it: an unknown price may be anything.
`run/budget_check` has the limit of a run.
"""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.cost.cost_model import CostForecast
from corral.forecast.cost.cost_range import Sum
from corral.model.cluster import ClusterPlan
from corral.spec.models.cluster import ClusterSpec
from corral.spec.spec_errors import SpecError

UNPRICED = "add the price to catalog.toml, use a type with a known price, or remove the limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLimit:
    """A limit in US dollars with the field that sets it, and the cost compared.

    `refusal`: how the limit is exceeded and what to change; None if it holds.
    """

    field: str
    usd: float
    cost: Sum
    refusal: SpecError | None


def hourly_limit(spec: ClusterSpec, cluster: ClusterPlan, cost: CostForecast) -> CostLimit | None:
    """The hourly limit with all nodes running, including the base; None if the spec sets none."""
    field, usd, most = "usd_per_hour_max", spec.usd_per_hour_max, cost.maximum_usd_per_hour
    if usd is None:
        return None
    refusal = None
    if excess := excess_text(most, usd, "an hour with all nodes running"):
        refusal = SpecError(file=spec.file, path=field, message=excess, fix=_change(cluster, cost))
    return CostLimit(field=field, usd=usd, cost=most, refusal=refusal)


def excess_text(cost: Sum, limit: float, what: str) -> str | None:
    """Why the cost may exceed the limit; None if it does not."""
    if cost.usd is not None and round(cost.usd.high, 2) > round(limit, 2):  # in cents, as both are shown
        least = "at least " if cost.missing else ""
        return f"{what} costs up to {least}{dollars(cost.usd.high)} USD, the limit is {dollars(limit)}"
    if cost.missing:
        unknown = "; ".join(cost.missing)
        return f"the cost of {what} is unknown: no known price for {unknown}; the limit is {dollars(limit)} USD"
    return None


def dollars(usd: float) -> str:
    """`1,234.50`."""
    return f"{usd:,.2f}"


def _change(cluster: ClusterPlan, cost: CostForecast) -> str:
    """What to change: a missing price, otherwise the nodes of the most expensive queue."""
    if cost.unknown:
        return UNPRICED
    queue, usd = max(
        ((queue, one.usd.high if one.usd else 0.0) for queue, one in zip(cluster.queues, cost.full, strict=True)),
        key=lambda found: found[1],
    )
    nodes = f"{queue.max_nodes} {queue.instance_type}"
    return f"lower nodes.max of queue {queue.name} ({nodes} cost up to {dollars(usd)}), or raise the limit"
