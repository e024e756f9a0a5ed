"""A cluster that is to end: which jobs it stops for, what they are asked, and what becomes of those that stay.

Slurm's commands are small scripts over one file that holds the jobs, a line each: number, 1 for a batch job, state. A
job that was requeued or cancelled is COMPLETING as long as its processes live, here for as many seconds as stand there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from corral.agent.events import EventLog
from corral.agent.shutdown.drain import drain_before_down, drain_cluster, is_draining
from corral.model.head_report import DrainResult

SCRIPTS = {
    # It shows the states that it is asked for, word by word.
    "squeue": """for word; do case "$word" in --states=*) states=${word#*=};; --F*) columns=1-3;; esac; done
while read -r job batch state more; do
  case ",$states," in *",$(echo "$state" | tr A-Z a-z),"*) echo "$job $batch $state";; esac
done <"$HERE/jobs" | cut -d' ' -f"${columns:-1}" """,
    "scontrol": """case "$*" in
"--oneliner show partition") cat "$HERE/partitions";;
"write batch_script 6 "*) echo "sleep 60";;
"write batch_script"*) echo "trap save USR1";;
"update partitionname="*) name=${2#*=}; state=$(echo "${3#*=}" | tr a-z A-Z)
  sed -i "s/^PartitionName=$name State=.*/PartitionName=$name State=$state/" "$HERE/partitions";;
"requeue "*) ! grep -q "^$2 .*no-requeue" "$HERE/jobs" || exit 1
  sed -i "s/^$2 1 [A-Z]*.*/$2 1 COMPLETING 3 PENDING/" "$HERE/jobs";;
esac""",
    "scancel": """case "$*" in
*--signal=USR1*) sed -i "/^$3 . RUNNING saves/d; s/^$3 1 RUNNING moves/$3 1 COMPLETING 9 PENDING/" "$HERE/jobs";;
*) sed -i "s/^$1 \\(.\\) .*/$1 \\1 COMPLETING 3/" "$HERE/jobs";;
esac""",
}


@dataclass
class Cluster:
    """Slurm's files, and a clock that only sleeping moves."""

    work_dir: Path
    now: float = 0.0

    def drain(self, *, now: bool, grace_s: float = 5.0) -> DrainResult:
        return drain_cluster(
            ["cpu", "train"],
            EventLog(self.work_dir / "events"),
            now=now,
            grace_s=grace_s,
            sleep=self._sleep,
            clock=lambda: self.now,
        )

    def have(self, *jobs: str) -> None:
        (self.work_dir / "jobs").write_text("".join(f"{job}\n" for job in jobs))

    @property
    def partitions(self) -> list[str]:
        return (self.work_dir / "partitions").read_text().split()[1::2]

    @property
    def calls(self) -> list[str]:
        return (self.work_dir / "calls").read_text().splitlines()

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        jobs = (self.work_dir / "jobs").read_text().splitlines()
        self.have(*(after for job in jobs if (after := _a_second_later(job))))


def _a_second_later(job: str) -> str:
    number, batch, state, *more = job.split()
    if state != "COMPLETING":
        return job
    left, *after = more
    if left == "1":
        return " ".join((number, batch, *after)) if after else ""
    return " ".join((number, batch, state, str(int(left) - 1), *after))


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    for name, script in SCRIPTS.items():
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"$HERE/calls"\n{script}\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / "partitions").write_text("PartitionName=cpu State=UP\nPartitionName=train State=UP\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    made = Cluster(work_dir=tmp_path)
    made.have()
    return made


def test_an_idle_cluster_is_drained_and_its_queues_stay_closed(cluster: Cluster) -> None:
    assert (cluster.drain(now=False), cluster.partitions) == (DrainResult(refused=False), ["State=DOWN", "State=DOWN"])


def test_a_running_job_refuses_it_and_the_queues_are_open_again(cluster: Cluster) -> None:
    cluster.have("7 1 RUNNING", "8 1 PENDING")
    assert (cluster.drain(now=False), cluster.partitions) == (
        DrainResult(refused=True, waiting=1),
        ["State=UP", "State=UP"],
    )


@pytest.mark.parametrize(("jobs", "is_silent"), [((), True), (("7 1 RUNNING",), False)])
def test_alerts_are_silent_once_a_cluster_is_drained_and_not_if_that_is_refused(
    cluster: Cluster, jobs: tuple[str, ...], is_silent: bool
) -> None:
    cluster.have(*jobs)
    mark = cluster.work_dir / "run/draining"
    drain_before_down(["cpu", "train"], EventLog(cluster.work_dir / "events"), now=False, grace_s=5.0, mark=mark)
    assert is_draining(mark) is is_silent


def test_alerts_are_back_half_an_hour_after_a_drain_that_nothing_followed(cluster: Cluster) -> None:
    mark = cluster.work_dir / "draining"
    drain_before_down(["cpu", "train"], EventLog(cluster.work_dir / "events"), now=False, grace_s=5.0, mark=mark)
    assert not is_draining(mark, lambda: mark.stat().st_mtime + 1801)


def test_a_queue_that_was_stopped_before_stays_so_when_it_is_refused(cluster: Cluster) -> None:
    (cluster.work_dir / "partitions").write_text("PartitionName=cpu State=DOWN\nPartitionName=train State=UP\n")
    cluster.have("7 1 RUNNING")
    cluster.drain(now=False)
    assert cluster.partitions == ["State=DOWN", "State=UP"]


def test_queues_are_closed_before_jobs_are_listed(cluster: Cluster) -> None:
    cluster.drain(now=False)
    states = [call.split()[0] for call in cluster.calls if "squeue" in call or "state=down" in call]
    assert states[:3] == ["scontrol", "scontrol", "squeue"]


def test_a_job_that_saves_and_ends_is_not_ended(cluster: Cluster) -> None:
    cluster.have("7 1 RUNNING saves")
    assert cluster.drain(now=True) == DrainResult(refused=False, signalled=("7",), ended=("7",))


def test_a_job_that_continues_is_requeued_after_the_grace_period(cluster: Cluster) -> None:
    cluster.have("7 1 RUNNING")
    assert (cluster.drain(now=True), cluster.now) == (
        DrainResult(refused=False, signalled=("7",), requeued=("7",)),
        8.0,
    )


def test_a_job_whose_script_handles_no_signal_is_not_signalled_and_gets_sigterm(cluster: Cluster) -> None:
    cluster.have("6 1 RUNNING")
    assert (cluster.drain(now=True), cluster.now) == (DrainResult(refused=False, requeued=("6",)), 3.0)


def test_an_srun_job_is_cancelled_at_once_and_gets_sigterm(cluster: Cluster) -> None:
    cluster.have("9 0 RUNNING")
    assert (cluster.drain(now=True), cluster.now) == (DrainResult(refused=False, cancelled=("9",)), 3.0)


def test_a_job_that_just_ends_refuses_nothing_and_is_waited_for(cluster: Cluster) -> None:
    cluster.have("7 1 COMPLETING 20")
    assert (cluster.drain(now=False), cluster.now) == (DrainResult(refused=False), 20.0)


def test_a_job_that_does_not_end_is_waited_for_a_minute(cluster: Cluster) -> None:
    cluster.have("7 1 COMPLETING 900")
    assert (cluster.drain(now=True), cluster.now) == (DrainResult(refused=False), 60.0)


def test_a_job_whose_nodes_still_boot_is_requeued_without_a_signal(cluster: Cluster) -> None:
    cluster.have("7 1 CONFIGURING")
    assert cluster.drain(now=True) == DrainResult(refused=False, requeued=("7",))


def test_a_job_that_requeues_itself_in_its_grace_is_not_ended(cluster: Cluster) -> None:
    cluster.have("7 1 RUNNING moves")
    assert cluster.drain(now=True) == DrainResult(refused=False, signalled=("7",), ended=("7",))


def test_the_jobs_are_in_the_event(cluster: Cluster) -> None:
    cluster.have("7 1 RUNNING saves", "9 0 RUNNING")
    cluster.drain(now=True)
    (line,) = (cluster.work_dir / "events").read_text().splitlines()
    assert (json.loads(line)["event"], json.loads(line)["jobs"]) == ("draining", ["7", "9"])


def test_a_job_that_slurm_does_not_requeue_is_cancelled_and_reported(cluster: Cluster) -> None:
    cluster.have("6 1 RUNNING no-requeue")
    assert (cluster.drain(now=True), (cluster.work_dir / "jobs").read_text()) == (
        DrainResult(refused=False, cancelled=("6",)),
        "",
    )
