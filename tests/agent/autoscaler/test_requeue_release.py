"""Which requeued jobs start now, and which when their queue can get machines."""

from __future__ import annotations

from datetime import datetime, timedelta

from corral.agent.autoscaler.requeue_release import ClosedQueue, JobStart, RequeuedJob, to_start

NOW = datetime(2026, 11, 21, 12)
LONG_AGO = NOW - timedelta(seconds=3)
SPOT = ClosedQueue(until=NOW + timedelta(minutes=10), reason="spot: InsufficientInstanceCapacity: no")
LATER = ClosedQueue(until=NOW + timedelta(minutes=20), reason="od: VcpuLimitExceeded: no")


def job(number: str, *queues: str, restarts: int = 1, eligible_in_s: int = 100) -> RequeuedJob:
    eligible = NOW + timedelta(seconds=eligible_in_s)
    return RequeuedJob(job_id=number, restarts=restarts, eligible=eligible, queues=queues or ("train",))


def started(*jobs: RequeuedJob, closed: dict[str, ClosedQueue] | None = None) -> list[JobStart]:
    """The starts of jobs that have waited for long enough."""
    seen = {one.job_id: LONG_AGO for one in jobs}
    return list(to_start(jobs, seen, closed or {}, NOW)[0])


def test_jobs_that_only_slurm_delays_start_now_with_one_call() -> None:
    assert started(job("5"), job("6")) == [JobStart(job_ids=("5", "6"), at=None, reason="")]


def test_a_job_is_not_started_while_its_old_run_may_not_be_over() -> None:
    found, seen = to_start((job("5"),), {"5": NOW - timedelta(seconds=2)}, {}, NOW)
    assert (found, seen) == ((), {"5": NOW - timedelta(seconds=2)})


def test_a_job_with_a_later_start_time_waits() -> None:
    assert started(job("5", eligible_in_s=3600), job("6", restarts=0)) == []


def test_a_job_without_machines_waits_with_a_reason() -> None:
    assert started(job("5"), closed={"train": SPOT}) == [
        JobStart(job_ids=("5",), at=SPOT.until, reason="corral: spot: InsufficientInstanceCapacity: no")
    ]


def test_a_job_of_two_queues_starts_where_one_has_machines() -> None:
    assert started(job("5", "train", "cpu"), closed={"train": SPOT}) == [JobStart(job_ids=("5",), at=None, reason="")]


def test_a_job_of_two_queues_without_machines_waits_for_the_first_of_them() -> None:
    found = started(job("5", "cpu", "train"), closed={"train": SPOT, "cpu": LATER})
    assert [one.at for one in found] == [SPOT.until]


def test_a_queue_whose_backoffs_have_ended_is_open() -> None:
    closed_queue = ClosedQueue(until=NOW, reason="spot: no")
    assert started(job("5"), closed={"train": closed_queue}) == [JobStart(job_ids=("5",), at=None, reason="")]


def test_a_job_whose_queue_is_stopped_is_left_alone_until_it_is_open() -> None:
    seen = {"5": LONG_AGO}
    stopped, later = (to_start((job("5"),), seen, {}, NOW, queues) for queues in (["train"], ["cpu"]))
    assert (stopped, list(later[0])) == (((), seen), [JobStart(job_ids=("5",), at=None, reason="")])


def test_a_job_of_two_queues_starts_where_one_is_not_stopped() -> None:
    found, _ = to_start((job("5", "train", "cpu"),), {"5": LONG_AGO}, {}, NOW, ["train"])
    assert list(found) == [JobStart(job_ids=("5",), at=None, reason="")]
