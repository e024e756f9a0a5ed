"""The JSON documents that commands print: stable shapes, described in docs/cli.md. Each names its shape in `schema`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from corral.forecast.bill import CostForecast, Item
from corral.forecast.limits import Limit
from corral.forecast.money import Sum, Usd
from corral.forecast.notes import Note
from corral.forecast.quotas import quotas_needed
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.jsons import to_json
from corral.report.quotas import quotas_needed_document

Document = Mapping[str, Any]


def plan_document(
    base: BasePlan,
    cluster: ClusterPlan,
    cost: CostForecast,
    notes: Sequence[Note],
    limits: Sequence[Limit] = (),
    buy: Document | None = None,
) -> Document:
    """What `corral plan --json` prints: both plans as the machines get them, the bill, quotas, what one should know.

    `buy`: the document of hardware to buy, None where there is none.
    """
    return {
        "schema": "corral.plan/1",
        "environment": cluster.name,
        "base": json.loads(to_json(base)),
        "cluster": json.loads(to_json(cluster)),
        "cost": cost_document(cost),
        "quotas": quotas_needed_document(quotas_needed(base, cluster)),
        "limits": limits_document(limits),
        "buy": buy,
        "notes": [{"about": note.about, "text": note.text} for note in notes],
    }


def cost_document(cost: CostForecast) -> Document:
    """The bill: sums first, which of them are incomplete and what they lack, then what they are made of."""
    return {
        **sums_document(
            {
                "idle_base_usd_per_month": cost.idle_base_usd_per_month,
                "idle_cluster_usd_per_hour": cost.idle_cluster_usd_per_hour,
                "reserved_usd_per_hour": cost.reserved_usd_per_hour,
                "maximum_usd_per_hour": cost.maximum_usd_per_hour,
                "kept_usd_per_month": cost.kept_usd_per_month,
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
            {"what": use.what, "usd": use.usd, "unit": use.unit, "kept": use.kept, "source": use.source}
            for use in cost.by_use
        ],
        "kept": [_item(item) for item in cost.kept],
        "unknown": [*cost.unknown, *cost.unknown_by_use],
    }


def limits_document(limits: Sequence[Limit]) -> list[Document]:
    """The limits that are set, and why one does not hold; `cost` is what its upper end was compared with."""
    return [
        {"field": one.field, "usd": one.usd, "cost": usd_document(one.cost.usd), "refusal": one.refusal}
        for one in limits
    ]


def sums_document(sums: Mapping[str, Sum]) -> Document:
    """The sums by name, and `incomplete`: by the names of those that lack something, what has no known price."""
    return {
        **{name: usd_document(one.usd) for name, one in sums.items()},
        "incomplete": {name: list(one.missing) for name, one in sums.items() if one.missing},
    }


def usd_document(amount: Usd | None) -> Document | None:
    """The range as `{low, high}`, rounded to a millionth of a dollar."""
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
