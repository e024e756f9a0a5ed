"""The steps of a spot machine between notice and end: tables of facts and steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from corral.agent.cluster.models import SlurmNode
from corral.agent.interruptions.spot import SpotProgress, SpotStep, is_new_hint, rebalance_at, reclaimed_at, spot_steps
from corral.agent.node_jobs import NodeJob, Phase

END = datetime(2026, 11, 21, 12, 2, tzinfo=UTC)
NOTICED, LATE, LAST = (END - timedelta(seconds=ahead) for ahead in (118, 25, 5))
SECOND = timedelta(seconds=1)
SIGNALLED = SpotProgress(drained=True, signalled=frozenset({"7"}))
MOVED = SpotProgress(drained=True, signalled=frozenset({"7"}), requeued=frozenset({"7"}))


@pytest.mark.parametrize(
    ("now", "jobs", "progress", "steps"),
    [
        pytest.param(
            NOTICED,
            "7 runs",
            SpotProgress(),
            [(SpotStep.DRAIN, ()), (SpotStep.REQUEST_CHECKPOINT, ("7",))],
            id="at once",
        ),
        pytest.param(
            NOTICED, "", SpotProgress(), [(SpotStep.DRAIN, ()), (SpotStep.REQUEST_CHECKPOINT, ())], id="without a job"
        ),
        pytest.param(
            NOTICED,
            "7 ends",
            SpotProgress(),
            [(SpotStep.DRAIN, ()), (SpotStep.REQUEST_CHECKPOINT, ())],
            id="its job just ends",
        ),
        pytest.param(NOTICED, "7 runs", SIGNALLED, [], id="it writes its checkpoint"),
        pytest.param(
            NOTICED, "7 runs, 8 runs", SIGNALLED, [(SpotStep.REQUEST_CHECKPOINT, ("8",))], id="a job came in between"
        ),
        pytest.param(
            NOTICED, "8 begins", SIGNALLED, [(SpotStep.REQUEUE, ("8",))], id="one that has not begun does not"
        ),
        pytest.param(NOTICED, "7 ends", SIGNALLED, [], id="the job moves, and its processes run"),
        pytest.param(NOTICED, "", SIGNALLED, [(SpotStep.RELEASE, ())], id="the job has moved"),
        pytest.param(LATE - SECOND, "7 runs", SIGNALLED, [], id="there is still time"),
        pytest.param(LATE, "7 runs", SIGNALLED, [(SpotStep.REQUEUE, ("7",))], id="the last safe second"),
        pytest.param(LATE, "7 runs, 8 runs", SIGNALLED, [(SpotStep.REQUEUE, ("7", "8"))], id="too late for a signal"),
        pytest.param(
            LATE,
            "7 runs",
            SpotProgress(),
            [(SpotStep.DRAIN, ()), (SpotStep.REQUEST_CHECKPOINT, ("7",))],
            id="a watch that comes late",
        ),
        pytest.param(LATE, "7 runs", MOVED, [], id="it is being requeued"),
        pytest.param(LATE + SECOND, "7 ends", MOVED, [], id="it saves on SIGTERM"),
        pytest.param(LATE + SECOND, "7 ends", SIGNALLED, [], id="it ends by itself, and is not requeued"),
        pytest.param(LAST - SECOND, "7 ends", MOVED, [], id="it may still save"),
        pytest.param(LAST, "7 ends", MOVED, [(SpotStep.RELEASE, ())], id="the end is near"),
        pytest.param(
            LAST, "7 runs", SIGNALLED, [(SpotStep.RELEASE, ())], id="the end is near, and Slurm requeued nothing"
        ),
        pytest.param(LAST, "", SpotProgress(drained=True, released=True), [], id="it was released"),
    ],
)
def test_the_next_steps(
    now: datetime, jobs: str, progress: SpotProgress, steps: Sequence[tuple[SpotStep, tuple[str, ...]]]
) -> None:
    assert list(spot_steps(END, now, here(jobs), progress)) == steps


def here(jobs: str) -> list[NodeJob]:
    words = (job.split() for job in jobs.split(", ") if job)
    return [NodeJob(job_id=number, batch=True, phase=Phase(phase)) for number, phase in words]


@pytest.mark.parametrize(
    ("states", "reason", "theirs"),
    [
        ({"IDLE", "DRAIN"}, "bad cable [ada@2026-11-21T12:00:00]", True),
        ({"IDLE", "DRAIN"}, "corral: spot, ends at 12:00:00 [root@2026-11-21T11:58:00]", False),
        ({"IDLE", "DRAIN"}, "Kill task failed [slurm@2026-11-21T11:58:00]", False),
        ({"IDLE"}, "", False),
        ({"DOWN"}, "bad cable", False),
    ],
    ids=["by hand", "by corral", "by Slurm", "nobody", "down"],
)
def test_who_has_drained_a_node(states: set[str], reason: str, theirs: bool) -> None:
    assert SlurmNode(name="train-1", states=frozenset(states), reason=reason).drained_by_hand is theirs


def test_a_notice_has_the_end_of_the_machine() -> None:
    assert reclaimed_at('{"action": "terminate", "time": "2026-11-21T12:02:00Z"}') == END


def test_no_document_is_no_notice() -> None:
    assert reclaimed_at(None) is None


@pytest.mark.parametrize("document", ["{}", "[]", "5", '{"time": 5}', '{"time": null}', '{"time": "soon"}', "{"])
def test_a_notice_without_a_time_is_an_error(document: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        reclaimed_at(document)


def test_a_hint_is_known_by_its_time() -> None:
    assert rebalance_at('{"noticeTime": "2026-11-21T08:22:00Z"}') == "2026-11-21T08:22:00Z"


@pytest.mark.parametrize("document", ["{}", "[]", "5", '{"noticeTime": 5}'])
def test_a_hint_without_a_time_is_an_error(document: str) -> None:
    with pytest.raises(ValueError, match="without 'noticeTime': "):
        rebalance_at(document)


@pytest.mark.parametrize(
    ("hint", "answered", "is_new"), [(None, None, False), ("1", None, True), ("1", "1", False), ("2", "1", True)]
)
def test_each_hint_signals_jobs_once(hint: str | None, answered: str | None, is_new: bool) -> None:
    assert is_new_hint(hint, answered) is is_new
