"""A history of 2.5 hours in round numbers, as a head records it: two spot instances, one reclaimed and replaced.

The job 7 runs on both from 400 s on, is requeued at 4,000 s, runs again from 4,600 s and completes at 8,200 s.
"""

import json
from datetime import UTC, datetime

from corral.forecast.cost.environment_cost import forecast_cost
from corral.model.head_report import JobRun
from corral.report.timeline.event_lines import ClusterEvent, read_events
from corral.report.timeline.timeline import Timeline, build_timeline
from corral.report.usage.machine_rates import Rates
from corral.report.usage.usage_summary import Usage, compute_usage
from worked_example import BASE, CLUSTER, RoundPrices

T0 = 1795300800  # 2026-11-21 22:40:00
END_S = 9000


def at(second: int) -> datetime:
    return datetime.fromtimestamp(T0 + second, UTC)


def event(second: int, kind: str, **facts: object) -> str:
    return json.dumps({"at": f"{at(second):%Y-%m-%dT%H:%M:%SZ}", "event": kind, "text": f"{kind} it", **facts})


SPOT = {"instance_type": "p4d.24xlarge", "market": "spot", "offer": "train-spot-use1-az1"}
ON_DEMAND = {"instance_type": "p4d.24xlarge", "market": "on-demand", "offer": "train-on-demand-use1-az1"}
LINES = (
    event(0, "autoscaler-started"),
    event(100, "launched", nodes="train-[1-2]", instances={"train-1": "i-1", "train-2": "i-2"}, **SPOT),
    event(400, "up", nodes="train-1"),
    event(400, "up", nodes="train-2"),
    event(3900, "notice", nodes="train-1"),
    event(4120, "marked-down", nodes="train-1"),
    event(4150, "refused", nodes="train-1", offer="train-spot-use1-az1"),
    event(4200, "launched", nodes="train-1", instances={"train-1": "i-3"}, **ON_DEMAND),
    event(4600, "up", nodes="train-1"),
    event(8680, "ended", nodes="train-2", instances=["i-2"]),
    event(8700, "ended", nodes="train-1", instances=["i-3"]),
)


def run(submitted: int, started: int | None, ended: int | None, state: str, nodes: str = "train-[1-2]") -> JobRun:
    return JobRun(
        job_id="7",
        user="ada",
        name="fit",
        queue="train",
        state=state,
        nodes=nodes,
        submitted=T0 + submitted,
        started=None if started is None else T0 + started,
        ended=None if ended is None else T0 + ended,
    )


RUNS = (run(50, 400, 4000, "requeued"), run(4000, 4600, 8200, "completed"))
EVENTS = read_events(LINES)
RATES = Rates(cluster=CLUSTER, cost=forecast_cost(BASE, CLUSTER, RoundPrices()), prices=RoundPrices())


def history_usage(
    events: tuple[ClusterEvent, ...] = EVENTS, runs: tuple[JobRun, ...] = RUNS, *, start: int = 0, end: int = END_S
) -> Usage:
    """The usage between these seconds."""
    return compute_usage(events, runs, RATES, start=at(start), end=at(end))


def history_timeline() -> Timeline:
    """The timeline of the same history."""
    return build_timeline("dev", EVENTS, RUNS, head_since=None, start=at(0), end=at(END_S))
