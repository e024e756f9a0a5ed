"""Which requeued jobs start again now, and which when their queue can have machines: decided on literals."""

from __future__ import annotations

from datetime import datetime, timedelta

from corral.agent.requeued import Closed, Start, Waiting, to_start

NOW = datetime(2026, 11, 21, 12)
LONG_AGO = NOW - timedelta(seconds=3)
SPOT = Closed(until=NOW + timedelta(minutes=10), why="spot: InsufficientInstanceCapacity: no")
LATER = Closed(until=NOW + timedelta(minutes=20), why="od: VcpuLimitExceeded: no")


def job(number: str, *queues: str, restarts: int = 1, eligible_in_s: int = 100) -> Waiting:
    eligible = NOW + timedelta(seconds=eligible_in_s)
    return Waiting(job_id=number, restarts=restarts, eligible=eligible, queues=queues or ("train",))


def started(*jobs: Waiting, closed: dict[str, Closed] | None = None) -> list[Start]:
    """What is told to jobs that have been seen waiting for long enough."""
    seen = {one.job_id: LONG_AGO for one in jobs}
    return list(to_start(jobs, seen, closed or {}, NOW)[0])


def test_jobs_that_slurm_alone_delays_start_now_by_one_call() -> None:
    assert started(job("5"), job("6")) == [Start(job_ids=("5", "6"), at=None, why="")]


def test_a_job_is_not_started_while_its_old_run_may_not_be_over() -> None:
    found, seen = to_start((job("5"),), {"5": NOW - timedelta(seconds=2)}, {}, NOW)
    assert (found, seen) == ((), {"5": NOW - timedelta(seconds=2)})


def test_a_job_that_was_told_to_wait_waits() -> None:
    assert started(job("5", eligible_in_s=3600), job("6", restarts=0)) == []


def test_a_job_whose_queue_has_no_machines_waits_for_them_and_says_why() -> None:
    assert started(job("5"), closed={"train": SPOT}) == [
        Start(job_ids=("5",), at=SPOT.until, why="corral: spot: InsufficientInstanceCapacity: no")
    ]


def test_a_job_of_two_queues_starts_where_one_has_machines() -> None:
    assert started(job("5", "train", "cpu"), closed={"train": SPOT}) == [Start(job_ids=("5",), at=None, why="")]


def test_a_job_of_two_queues_without_machines_waits_for_the_first_of_them() -> None:
    found = started(job("5", "cpu", "train"), closed={"train": SPOT, "cpu": LATER})
    assert [one.at for one in found] == [SPOT.until]


def test_a_queue_whose_offers_have_rested_is_open() -> None:
    rested = Closed(until=NOW, why="spot: no")
    assert started(job("5"), closed={"train": rested}) == [Start(job_ids=("5",), at=None, why="")]


def test_a_job_whose_queue_is_stopped_is_left_alone_until_it_is_open() -> None:
    seen = {"5": LONG_AGO}
    stopped, later = (to_start((job("5"),), seen, {}, NOW, queues) for queues in (["train"], ["cpu"]))
    assert (stopped, list(later[0])) == (((), seen), [Start(job_ids=("5",), at=None, why="")])


def test_a_job_of_two_queues_starts_where_one_is_not_stopped() -> None:
    found, _ = to_start((job("5", "train", "cpu"),), {"5": LONG_AGO}, {}, NOW, ["train"])
    assert list(found) == [Start(job_ids=("5",), at=None, why="")]
