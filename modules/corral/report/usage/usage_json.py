"""A timeline and its usage as a JSON document. Times are ISO 8601, UTC."""

from __future__ import annotations

from corral.report.plan.plan_json import Document, sums_document, usd_document
from corral.report.timeline.timeline import Timeline, TimelineRow
from corral.report.usage.forecast_vs_actual import ForecastComparison
from corral.report.usage.interruption_cost import Interruption
from corral.report.usage.job_usage import JobCost
from corral.report.usage.usage_summary import PoolCost, Share, Usage

_SECONDS_PER_HOUR = 3600


def timeline_document(
    shown: Timeline,
    usage: Usage | None,
    against: ForecastComparison | None = None,
    *,
    source: str = "",
    problem: str = "",
) -> Document:
    """The document of `corral timeline --json`. `source`: the recorded history, if no head was queried.

    `problem`: why usage or the forecast is missing.
    """
    return {
        "schema": "corral.timeline/2",
        "environment": shown.cluster,
        "start": shown.start.isoformat(),
        "end": shown.end.isoformat(),
        "source": source or None,
        "problem": shown.problem or None,
        "rows": [_row(row) for row in shown.rows],
        "usage": None if usage is None else usage_document(usage),
        "usage_problem": problem or None,
        "forecast": None if against is None else _comparison(against),
    }


def usage_document(usage: Usage) -> Document:
    """The sums, what the incomplete ones lack, then the items."""
    found = usage.goodput
    return {
        "hours": round(usage.hours, 6),
        **sums_document(
            {
                "usd": usage.usd,
                "nodes_usd": usage.nodes_usd,
                "other_usd": usage.other_usd,
                "lost_usd": usage.lost.usd,
            }
        ),
        "node_hours": _hours(usage.node_s),
        "lost_node_hours": _hours(usage.lost.node_s),
        "goodput": None if found is None else {"low": round(found[0], 6), "high": round(found[1], 6)},
        "pools": [_pool(one) for one in usage.pools],
        "other": [{"what": what, "usd": usd_document(usd)} for what, usd in usage.other],
        "interruptions": [_interruption(one) for one in usage.interruptions],
        "jobs": [_job(one) for one in usage.jobs],
    }


def _row(row: TimelineRow) -> Document:
    return {
        "kind": row.kind,
        "name": row.name,
        "final_state": row.final_state,
        "bars": [
            {
                "state": str(bar.state),
                "start": bar.start.isoformat(),
                "end": bar.end.isoformat(),
                "ongoing": bar.ongoing,
                "text": bar.text,
            }
            for bar in row.bars
        ],
        "marks": [{"at": mark.at.isoformat(), "kind": mark.kind, "text": mark.text} for mark in row.marks],
    }


def _pool(one: PoolCost) -> Document:
    return {
        "queue": one.rate.queue,
        "instance_type": one.rate.instance_type,
        "market": one.rate.market or None,
        "usd_per_node_hour": usd_document(one.rate.usd_per_hour),
        "source": one.rate.source,
        "machines": one.machines,
        "booting": _share(one.booting),
        "idle": _share(one.idle),
        "in_jobs": _share(one.busy),
    }


def _share(one: Share) -> Document:
    return {"node_hours": _hours(one.node_s), "usd": usd_document(one.usd.usd)}


def _interruption(one: Interruption) -> Document:
    return {
        "at": one.at.isoformat(),
        "kinds": list(one.kinds),
        "nodes": one.nodes,
        "machines": one.machines,
        "jobs": list(one.jobs),
        "waited_s": one.waited_s,
        "resumed": one.resumed,
        "lost_node_hours": _hours(one.lost_node_s),
        "lost_usd": usd_document(one.lost_usd.usd),
    }


def _job(one: JobCost) -> Document:
    return {
        "job_id": one.job_id,
        "name": one.name,
        "user": one.user,
        "queue": one.queue,
        "state": one.state,
        "nodes": one.nodes,
        "runs": one.runs,
        "requeues": one.requeues,
        "started": None if one.began is None else one.began.isoformat(),
        "ended": one.ended.isoformat(),
        "waited_s": one.waited_s,
        "ran_s": one.ran_s,
        "node_hours": _hours(one.node_s),
        "usd": usd_document(one.usd.usd),
    }


def _comparison(against: ForecastComparison) -> Document:
    return {
        "job_id": against.job_id,
        "completed": against.completed,
        "nodes": against.nodes,
        "forecast_nodes": against.planned,
        "markets": list(against.markets),
        "rows": [
            {
                "what": one.what,
                "forecast": {"low": one.low, "high": one.high},
                "actual": {"low": one.least, "high": one.most},
            }
            for one in against.rows
        ],
    }


def _hours(seconds: float) -> float:
    return round(seconds / _SECONDS_PER_HOUR, 6)
