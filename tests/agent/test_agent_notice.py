"""What a spot machine does between notice and end: tables of facts and steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from corral.agent.notice import Progress, Step, ends_at, hinted_at, next_steps, to_ask

END = datetime(2026, 11, 21, 12, 2, tzinfo=UTC)
NOTICED, LATE = END - timedelta(seconds=118), END - timedelta(seconds=25)
ASKED = Progress(drained=True, asked=frozenset({"7"}))


@pytest.mark.parametrize(
    ("now", "jobs", "progress", "steps"),
    [
        pytest.param(NOTICED, ["7"], Progress(), [(Step.DRAIN, ()), (Step.ASK, ("7",))], id="at once"),
        pytest.param(NOTICED, [], Progress(), [(Step.DRAIN, ()), (Step.ASK, ())], id="without a job"),
        pytest.param(NOTICED, ["7"], ASKED, [], id="it writes its checkpoint"),
        pytest.param(NOTICED, ["7", "8"], ASKED, [(Step.ASK, ("8",))], id="a job came in between"),
        pytest.param(NOTICED, [], ASKED, [(Step.LET_GO, ())], id="the job has moved"),
        pytest.param(LATE - timedelta(seconds=1), ["7"], ASKED, [], id="there is still time"),
        pytest.param(LATE, ["7"], ASKED, [(Step.REQUEUE, ("7",))], id="the last safe second"),
        pytest.param(LATE, ["7"], Progress(), [(Step.DRAIN, ()), (Step.ASK, ("7",))], id="a watch that comes late"),
        pytest.param(
            LATE,
            ["7"],
            Progress(drained=True, asked=frozenset({"7"}), requeued=frozenset({"7"})),
            [],
            id="it is being requeued",
        ),
    ],
)
def test_what_is_next(
    now: datetime, jobs: Sequence[str], progress: Progress, steps: Sequence[tuple[Step, tuple[str, ...]]]
) -> None:
    assert list(next_steps(END, now, jobs, progress)) == steps


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
