"""What a spot machine does between notice and end: tables of facts and steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from corral.agent.jobs import NodeJob, Phase
from corral.agent.notice import Progress, Step, ends_at, hinted_at, next_steps, to_ask
from corral.agent.world import SlurmNode

END = datetime(2026, 11, 21, 12, 2, tzinfo=UTC)
NOTICED, LATE, LAST = (END - timedelta(seconds=ahead) for ahead in (118, 25, 5))
SECOND = timedelta(seconds=1)
ASKED = Progress(drained=True, asked=frozenset({"7"}))
MOVED = Progress(drained=True, asked=frozenset({"7"}), requeued=frozenset({"7"}))


@pytest.mark.parametrize(
    ("now", "jobs", "progress", "steps"),
    [
        pytest.param(NOTICED, "7 runs", Progress(), [(Step.DRAIN, ()), (Step.ASK, ("7",))], id="at once"),
        pytest.param(NOTICED, "", Progress(), [(Step.DRAIN, ()), (Step.ASK, ())], id="without a job"),
        pytest.param(NOTICED, "7 ends", Progress(), [(Step.DRAIN, ()), (Step.ASK, ())], id="its job just ends"),
        pytest.param(NOTICED, "7 runs", ASKED, [], id="it writes its checkpoint"),
        pytest.param(NOTICED, "7 runs, 8 runs", ASKED, [(Step.ASK, ("8",))], id="a job came in between"),
        pytest.param(NOTICED, "8 begins", ASKED, [(Step.REQUEUE, ("8",))], id="one that has not begun does not"),
        pytest.param(NOTICED, "7 ends", ASKED, [], id="the job moves, and its processes live"),
        pytest.param(NOTICED, "", ASKED, [(Step.LET_GO, ())], id="the job has moved"),
        pytest.param(LATE - SECOND, "7 runs", ASKED, [], id="there is still time"),
        pytest.param(LATE, "7 runs", ASKED, [(Step.REQUEUE, ("7",))], id="the last safe second"),
        pytest.param(LATE, "7 runs, 8 runs", ASKED, [(Step.REQUEUE, ("7", "8"))], id="too late to be asked"),
        pytest.param(LATE, "7 runs", Progress(), [(Step.DRAIN, ()), (Step.ASK, ("7",))], id="a watch that comes late"),
        pytest.param(LATE, "7 runs", MOVED, [], id="it is being requeued"),
        pytest.param(LATE + SECOND, "7 ends", MOVED, [], id="it saves on SIGTERM"),
        pytest.param(LATE + SECOND, "7 ends", ASKED, [], id="it ends by itself, and is not requeued"),
        pytest.param(LAST - SECOND, "7 ends", MOVED, [], id="it may still save"),
        pytest.param(LAST, "7 ends", MOVED, [(Step.LET_GO, ())], id="the end is near"),
        pytest.param(LAST, "7 runs", ASKED, [(Step.LET_GO, ())], id="the end is near, and Slurm requeued nothing"),
        pytest.param(LAST, "", Progress(drained=True, let_go=True), [], id="it was let go"),
    ],
)
def test_what_is_next(
    now: datetime, jobs: str, progress: Progress, steps: Sequence[tuple[Step, tuple[str, ...]]]
) -> None:
    assert list(next_steps(END, now, here(jobs), progress)) == steps


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


def test_a_notice_says_when_the_machine_ends() -> None:
    assert ends_at('{"action": "terminate", "time": "2026-11-21T12:02:00Z"}') == END


def test_no_document_is_no_notice() -> None:
    assert ends_at(None) is None


@pytest.mark.parametrize("document", ["{}", "[]", "5", '{"time": 5}', '{"time": null}', '{"time": "soon"}', "{"])
def test_a_notice_that_says_no_time_is_an_error(document: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        ends_at(document)


def test_a_hint_is_known_by_its_time() -> None:
    assert hinted_at('{"noticeTime": "2026-11-21T08:22:00Z"}') == "2026-11-21T08:22:00Z"


@pytest.mark.parametrize("document", ["{}", "[]", "5", '{"noticeTime": 5}'])
def test_a_hint_that_says_no_time_is_an_error(document: str) -> None:
    with pytest.raises(ValueError, match="without its time"):
        hinted_at(document)


@pytest.mark.parametrize(
    ("hint", "answered", "ask"), [(None, None, False), ("1", None, True), ("1", "1", False), ("2", "1", True)]
)
def test_each_hint_leads_to_one_question(hint: str | None, answered: str | None, ask: bool) -> None:
    assert to_ask(hint, answered) is ask
