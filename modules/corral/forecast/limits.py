"""The limits that a user sets to what things may cost, and what is said where one does not hold.

A limit holds only where the upper end of what is to be expected is known, and is not above it: what has no price may
cost anything. The limit of a run is `whole/limit.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.bill import CostForecast
from corral.forecast.money import Sum
from corral.model.cluster import ClusterPlan
from corral.spec.cluster import ClusterSpec

UNPRICED = "give the price in catalogue.toml, take what has one, or leave the limit out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit in US dollars, by the field that sets it, and the cost that its upper end was compared with.

    `refusal`: why it does not hold and what to change, None where it holds.
    """

    field: str
    usd: float
    cost: Sum
    refusal: str | None


def hourly_limit(spec: ClusterSpec, cluster: ClusterPlan, cost: CostForecast) -> Limit | None:
    """The limit of an hour with every node at work, base included; None where the spec sets none."""
    field, usd, most = "usd_per_hour_max", spec.usd_per_hour_max, cost.maximum_usd_per_hour
    if usd is None:
        return None
    trouble = trouble_of(most, usd, "an hour with every node at work")
    refusal = f"{spec.file}: {field}: {trouble} - {_change(cluster, cost)}" if trouble else None
    return Limit(field=field, usd=usd, cost=most, refusal=refusal)


def trouble_of(cost: Sum, limit: float, what: str) -> str | None:
    """In words why the cost of this may be over the limit; None where it is not."""
    if cost.usd is not None and round(cost.usd.high, 2) > round(limit, 2):  # in cents, as both are shown
        least = "at least " if cost.missing else ""
        return f"{what} costs up to {least}{dollars(cost.usd.high)} USD, the limit is {dollars(limit)}"
    if cost.missing:
        unknown = "; ".join(cost.missing)
        return f"what {what} costs is not known, no price is known for {unknown}; the limit is {dollars(limit)} USD"
    return None


def dollars(usd: float) -> str:
    """`1,234.50`."""
    return f"{usd:,.2f}"


def _change(cluster: ClusterPlan, cost: CostForecast) -> str:
    """What of the environment to change: a price to give, else the nodes of its dearest queue."""
    if cost.unknown:
        return UNPRICED
    queue, usd = max(
        ((queue, one.usd.high if one.usd else 0.0) for queue, one in zip(cluster.queues, cost.full, strict=True)),
        key=lambda found: found[1],
    )
    nodes = f"{queue.max_nodes} {queue.instance_type}"
    return f"lower nodes.max of queue {queue.name} (its {nodes} cost up to {dollars(usd)}), or raise the limit"
