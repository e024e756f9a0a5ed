"""A life as a document: the rows of its picture, and what it took. Times are ISO 8601, UTC."""

from __future__ import annotations

from corral.report.documents import Document, sums_document, usd_document
from corral.report.spent.compared import Comparison
from corral.report.spent.interruptions import Interruption
from corral.report.spent.jobs import JobCost
from corral.report.spent.ledger import PoolCost, Share, Spent
from corral.report.timeline import Row, Timeline

_SECONDS_PER_HOUR = 3600


def timeline_document(
    shown: Timeline, took: Spent | None, against: Comparison | None = None, *, note: str = "", problem: str = ""
) -> Document:
    """What `corral timeline --json` prints. `note`: which life this is, where no head was asked.

    `problem`: why nothing is said of what it took, or of the forecast.
    """
    return {
        "schema": "corral.timeline/1",
        "environment": shown.cluster,
        "start": shown.start.isoformat(),
        "end": shown.end.isoformat(),
        "note": note or None,
        "problem": shown.problem or None,
        "rows": [_row(row) for row in shown.rows],
        "spent": None if took is None else spent_document(took),
        "spent_problem": problem or None,
        "forecast": None if against is None else _comparison(against),
    }


def spent_document(took: Spent) -> Document:
    """The sums first, and which of them are incomplete; then what they are made of."""
    found = took.effective
    return {
        "hours": round(took.hours, 6),
        **sums_document(
            {
                "usd": took.usd,
                "nodes_usd": took.nodes_usd,
                "things_usd": took.things_usd,
                "lost_usd": took.lost.usd,
            }
        ),
        "node_hours": _hours(took.node_s),
        "lost_node_hours": _hours(took.lost.node_s),
        "kept_work": None if found is None else {"low": round(found[0], 6), "high": round(found[1], 6)},
        "pools": [_pool(one) for one in took.pools],
        "things": [{"what": what, "usd": usd_document(usd)} for what, usd in took.things],
        "interruptions": [_interruption(one) for one in took.interruptions],
        "jobs": [_job(one) for one in took.jobs],
    }


def _row(row: Row) -> Document:
    return {
        "kind": row.kind,
        "name": row.name,
        "note": row.note,
        "bars": [
            {
                "state": str(bar.state),
                "start": bar.start.isoformat(),
                "end": bar.end.isoformat(),
                "goes_on": bar.goes_on,
                "text": bar.text,
            }
            for bar in row.bars
        ],
        "marks": [{"at": mark.at.isoformat(), "kind": mark.kind, "text": mark.text} for mark in row.marks],
    }


def _pool(one: PoolCost) -> Document:
    return {
        "queue": one.sold.queue,
        "instance_type": one.sold.instance_type,
        "market": one.sold.market or None,
        "usd_per_node_hour": usd_document(one.sold.usd_per_hour),
        "source": one.sold.source,
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
        "began": None if one.began is None else one.began.isoformat(),
        "over": one.over.isoformat(),
        "waited_s": one.waited_s,
        "ran_s": one.ran_s,
        "node_hours": _hours(one.node_s),
        "usd": usd_document(one.usd.usd),
    }


def _comparison(against: Comparison) -> Document:
    return {
        "job_id": against.job_id,
        "done": against.done,
        "nodes": against.nodes,
        "forecast_nodes": against.planned,
        "markets": list(against.markets),
        "rows": [
            {
                "what": one.what,
                "forecast": {"low": one.low, "high": one.high},
                "so_far": {"low": one.least, "high": one.most},
            }
            for one in against.rows
        ],
    }


def _hours(seconds: float) -> float:
    return round(seconds / _SECONDS_PER_HOUR, 6)
