"""The JSON documents of plans, and parts that other documents share. docs/cli.md describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from corral.forecast.cost.budget_limits import CostLimit
from corral.forecast.cost.cost_model import CostForecast, Item
from corral.forecast.cost.cost_range import Sum, Usd
from corral.forecast.required_quotas import quotas_needed
from corral.forecast.warnings import PlanWarning
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.serialization import to_json
from corral.report.plan.quota_view import quotas_needed_document

Document = Mapping[str, Any]


def plan_document(
    base: BasePlan,
    cluster: ClusterPlan,
    cost: CostForecast,
    warnings: Sequence[PlanWarning],
    limits: Sequence[CostLimit] = (),
    buy: Document | None = None,
) -> Document:
    """The document of `corral plan --json`: both plans as machines receive them, cost, quotas, warnings.

    `buy`: the part about purchased hardware, None without it.
    """
    return {
        "schema": "corral.plan/3",
        "environment": cluster.name,
        "base": json.loads(to_json(base)),
        "cluster": json.loads(to_json(cluster)),
        "cost": cost_document(cost),
        "quotas": quotas_needed_document(quotas_needed(base, cluster)),
        "limits": limits_document(limits),
        "buy": buy,
        "warnings": [{"about": one.about, "message": one.message, "fix": one.fix} for one in warnings],
    }


def cost_document(cost: CostForecast) -> Document:
    """The cost: the sums, what the incomplete ones lack, then the items."""
    return {
        **sums_document(
            {
                "idle_base_usd_per_month": cost.idle_base_usd_per_month,
                "idle_cluster_usd_per_hour": cost.idle_cluster_usd_per_hour,
                "reserved_usd_per_hour": cost.reserved_usd_per_hour,
                "maximum_usd_per_hour": cost.maximum_usd_per_hour,
                "retained_usd_per_month": cost.retained_usd_per_month,
            }
        ),
        "base": [_item(item) for item in cost.base],
        "cluster": [_item(item) for item in cost.cluster],
        "queues": [
            {
                "queue": queue.queue,
                "instance_type": queue.instance_type,
                "market": queue.market.value,
                "nodes": queue.nodes,
                "usd_per_node_hour": usd_document(queue.usd_per_node_hour),
                "usd_per_hour": usd_document(queue.usd_per_hour),
                "starts": queue.starts,
                "source": queue.source,
            }
            for queue in cost.queues
        ],
        "by_use": [
            {"what": use.what, "usd": use.usd, "unit": use.unit, "retained": use.retained, "source": use.source}
            for use in cost.by_use
        ],
        "retained": [_item(item) for item in cost.retained],
        "unknown": [*cost.unknown, *cost.unknown_by_use],
    }


def limits_document(limits: Sequence[CostLimit]) -> list[Document]:
    """The configured limits with the costs compared, and the refusal of each exceeded one."""
    return [
        {
            "field": one.field,
            "usd": one.usd,
            "cost": usd_document(one.cost.usd),
            "refusal": {"message": one.refusal.message, "fix": one.refusal.fix} if one.refusal else None,
        }
        for one in limits
    ]


def sums_document(sums: Mapping[str, Sum]) -> Document:
    """The sums by name, and `incomplete`: what has no known price, by the names of the sums that lack it."""
    return {
        **{name: usd_document(one.usd) for name, one in sums.items()},
        "incomplete": {name: list(one.missing) for name, one in sums.items() if one.missing},
    }


def usd_document(amount: Usd | None) -> Document | None:
    """The range as `{low, high}`, rounded to 1e-6 dollars."""
    return None if amount is None else {"low": round(amount.low, 6), "high": round(amount.high, 6)}


def _item(item: Item) -> Document:
    return {
        "what": item.what,
        "count": item.count,
        "unit": item.unit,
        "usd_per_hour": usd_document(item.usd_per_hour),
        "usd_per_month": usd_document(item.usd_per_month),
        "source": item.source,
    }
