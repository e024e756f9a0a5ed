"""The jobs of the metrics, from rows of squeue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.metrics.readings import job
from corral.agent.metrics.slurm_jobs import OTHER, RequeueCounter, read_jobs
from corral.agent.slurm import SlurmError

PENDING = ["7", "train", "PENDING", "1795521000", "Resources", "0", "vision"]


def read(**changes: str) -> object:
    names = ("job_id", "queue", "state", "eligible", "reason", "restarts", "account")
    (found,) = read_jobs([[changes.get(name, cell) for name, cell in zip(names, PENDING, strict=True)]], ["train"])
    return found


def test_a_job_that_waits_for_a_machine_waits_since_it_was_eligible() -> None:
    assert read() == replace(job(7, "pending"), waits_since=1795521000)


@pytest.mark.parametrize("reason", ["Resources", "Priority", "None", "ReqNodeNotAvail, UnavailableNodes:train-1"])
def test_these_reasons_are_waits_for_machines(reason: str) -> None:
    assert read(reason=reason) == replace(job(7, "pending"), waits_since=1795521000)


@pytest.mark.parametrize("reason", ["JobHeldUser", "Dependency", "BeginTime", "QOSMaxGRESPerUser", "AssocGrpCpuLimit"])
def test_a_job_that_waits_for_its_own_limit_time_or_user_does_not_wait_for_a_machine(reason: str) -> None:
    assert read(reason=reason) == job(7, "pending")


def test_a_job_that_is_not_eligible_yet_does_not_wait() -> None:
    assert read(eligible="N/A") == job(7, "pending")


def test_a_running_job_does_not_wait() -> None:
    assert read(state="RUNNING", reason="None") == job(7)


def test_a_job_of_several_queues_counts_for_the_first() -> None:
    assert read(queue="train,spare") == replace(job(7, "pending"), waits_since=1795521000)


def test_a_job_of_a_queue_that_the_plan_lacks_is_of_another() -> None:
    assert read(queue="gone") == replace(job(7, "pending"), queue=OTHER, waits_since=1795521000)


def test_a_job_without_an_account_has_an_empty_one() -> None:
    assert read(account="(null)") == replace(job(7, "pending", account=""), waits_since=1795521000)


def test_accounts_beyond_the_hundred_most_frequent_are_one() -> None:
    rows = [[*PENDING[:6], f"a{number}"] for number in range(150)]
    assert len({one.account for one in read_jobs(rows, ["train"])}) == 101


def test_a_row_of_another_form_is_an_error() -> None:
    with pytest.raises(SlurmError, match="unknown form"):
        read(restarts="many")


def test_a_requeue_counts_once_and_those_before_the_first_reading_do_not() -> None:
    counter = RequeueCounter()
    counter.add([replace(job(1), restarts=4)])
    counter.add([replace(job(1), restarts=5), job(2)])
    counter.add([replace(job(1), restarts=5)])
    assert dict(counter.counts) == {"train": 1}
