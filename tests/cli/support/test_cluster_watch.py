"""The watch of a cluster: what a failed answer keeps, and that nothing is queried while nobody looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from corral.cli.support.cluster_watch import ClusterWatch, Source, joined_events
from corral.cli.support.exit_codes import Failure
from corral.cli.support.remote import HeadUnreachable
from corral.report.dashboard.cluster_document import ClusterView
from corral.report.timeline.event_lines import ClusterEvent

VIEW = ClusterView(environment="dev", region="us-east-1", queues=())


def source(*answers: Mapping[str, Any] | Exception, every_s: float = 10.0) -> Source:
    """A source that gives these answers one after the other."""
    left = list(answers)

    def query(view: ClusterView) -> Mapping[str, Any]:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Source(answer="of_head", every_s=every_s, query=query)


def event(second: int, text: str) -> ClusterEvent:
    return ClusterEvent(at=datetime(2026, 11, 28, 12, 0, second, tzinfo=UTC), kind="launched", text=text)


def test_an_answer_has_its_time_and_its_values() -> None:
    one = source({"region": "us-west-2"})
    watch = ClusterWatch(VIEW, [one])
    watch.query(one)
    found = watch.peek()
    assert (found.region, found.of_head.problem, found.of_head.at is None) == ("us-west-2", "", False)


def test_a_failed_answer_keeps_the_last_one_and_its_time() -> None:
    one = source({"region": "us-west-2"}, HeadUnreachable("the head i-1 did not answer within 15 s"))
    watch = ClusterWatch(VIEW, [one])
    watch.query(one)
    before = watch.peek()
    watch.query(one)
    problem = "the head i-1 did not answer within 15 s"
    assert watch.peek() == replace(before, of_head=replace(before.of_head, problem=problem))


def test_the_next_answer_clears_the_problem() -> None:
    one = source(Failure("no"), {})
    watch = ClusterWatch(VIEW, [one])
    watch.query(one)
    watch.query(one)
    assert watch.peek().of_head.problem == ""


def test_an_exception_that_nobody_foresaw_is_shown_and_ends_nothing() -> None:
    one = source(ZeroDivisionError("division by zero"))
    watch = ClusterWatch(VIEW, [one])
    watch.query(one)
    assert watch.peek().of_head.problem == "ZeroDivisionError: division by zero"


def test_nothing_is_queried_before_somebody_reads() -> None:
    queried = threading.Event()
    watch = ClusterWatch(VIEW, [Source(answer="of_head", every_s=0.0, query=lambda _: queried.set() or {})])
    watch.start()
    assert not queried.wait(0.6)
    watch.read()
    assert queried.wait(10)


def test_nothing_is_queried_once_nobody_reads_any_more() -> None:
    times: list[float] = []
    one = Source(answer="of_head", every_s=0.0, query=lambda _: times.append(time.monotonic()) or {})
    watch = ClusterWatch(VIEW, [one], unread_s=0.5)
    watch.start()
    watch.read()
    time.sleep(1.5)
    number = len(times)
    time.sleep(0.8)
    assert (number > 0, len(times)) == (True, number)


def test_new_events_replace_those_of_the_second_that_was_read_before() -> None:
    held = (event(1, "a"), event(2, "b"))
    newest = (event(2, "b"), event(2, "c"), event(3, "d"))
    assert [one.text for one in joined_events(held, newest)] == ["a", "b", "c", "d"]
