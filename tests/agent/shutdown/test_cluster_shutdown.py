"""The end of a cluster on its head: what is done in which order, what may fail meanwhile, and what takes it back.

Slurm's commands are small scripts over files. Every call goes into one story, in order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agent.autoscalers import autoscaler_fixture
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.cluster.models import Instance
from corral.agent.errors import AgentError
from corral.agent.events import EventLog
from corral.agent.shutdown.cluster_shutdown import ClusterShutdown
from corral.agent.slurm import SlurmError
from corral.model.cluster import LifetimePlan
from render.plans import cpu, deployed, dev, train

NOW = 1_790_000_000.0
END, LATER = "2026-09-21T14:13:20Z", "2026-09-21T18:13:20Z"  # NOW, and four hours on
SCRIPTS = {
    "squeue": """case "$*" in
*--states=pending*) grep PENDING "$HERE/jobs" | cut -d' ' -f1;;
*--states=running*) grep RUNNING "$HERE/jobs";;
*) cut -d' ' -f1 "$HERE/jobs";;
esac; true""",
    "scontrol": """case "$*" in
"--oneliner show partition") cat "$HERE/partitions";;
"--oneliner show nodes") cat "$HERE/nodes";;
"write batch_script"*) echo "trap save USR1";;
"update partitionname="*) name=${2#*=}; state=$(echo "${3#*=}" | tr a-z A-Z)
  sed -i "s/^PartitionName=$name State=.*/PartitionName=$name State=$state/" "$HERE/partitions"
  echo "queue $name $state" >>"$HERE/story";;
"update nodename="*state=power_down_force*) : >"$HERE/nodes"; echo "end machines" >>"$HERE/story";;
"update jobid=5 "*) exit 1;;
"update jobid="*) echo "comment on job ${2#*=}" >>"$HERE/story";;
esac""",
    "scancel": """echo "ask job $3 for a checkpoint" >>"$HERE/story"
sed -i "s/^$3 1 RUNNING/$3 1 PENDING/" "$HERE/jobs" """,
}


class Offline(AgentError):
    """What a service says that does not answer."""


@dataclass
class Head:
    """A head whose cluster ends. `fails`: what does not work there; `bucket`: the end as the bucket has it.

    `stuck`: its machine does not end.
    """

    work_dir: Path
    autoscaler: Autoscaler
    now: float = NOW
    bucket: str | None = END
    fails: set[str] = field(default_factory=set)
    stuck: bool = False
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart(first_look_s=0.0)

    def restart(self, first_look_s: float = 300.0) -> None:
        """Another autoscaler's process."""
        self.autoscaler.is_closing = False
        self.closing = ClusterShutdown(
            ec2=self,  # type: ignore[arg-type]
            host=self,  # type: ignore[arg-type]
            journal=EventLog(self.work_dir / "events"),
            publish=lambda subject, text: self._do("publish", subject),
            save=lambda: self._do("save"),
            ship=lambda: self._do("ship"),
            newest=self._newest,
            min_uptime_s=first_look_s,
            mark=self.work_dir / "run/closing",
            clock=lambda: self.now,
            sleep=self.slept.append,
        )

    def check(self) -> list[str]:
        """What happened at one look."""
        before = len(self.story)
        self.closing.check(self.autoscaler)
        return self.story[before:]

    def have(self, file: str, *lines: str) -> None:
        (self.work_dir / file).write_text("".join(f"{line}\n" for line in lines))

    def instances(self) -> tuple[Instance, ...]:
        """EC2's: the machine of the node that is up."""
        if not (self.stuck or (self.work_dir / "nodes").read_text()):
            return ()
        return (Instance(instance_id="i-1", node="train-1", address="10.0.0.1", state="running"),)

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """EC2's."""
        self._do("terminate", " ".join(instance_ids))
        self.have("nodes")

    def power_off(self) -> None:
        """The host's."""
        self._do("power off")

    @property
    def story(self) -> list[str]:
        return (self.work_dir / "story").read_text().splitlines()

    @property
    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in (self.work_dir / "events").read_text().splitlines()]

    def _newest(self) -> str | None:
        if "bucket" in self.fails:
            raise Offline("no way to the bucket")
        return self.bucket

    def _do(self, what: str, subject: str = "") -> None:
        if what in self.fails:
            raise Offline(f"{what} does not work")
        with (self.work_dir / "story").open("a") as story:
            story.write(f"{what}: {subject}\n" if subject else f"{what}\n")


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    """A head with two queues and one machine at the end of its cluster; no job is there."""
    for name, script in SCRIPTS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    plan = replace(dev(train(), cpu()), lifetime=LifetimePlan(ttl_s=3600, idle_s=None))
    autoscaler = autoscaler_fixture(plan, replace(deployed(), ends_at=END), None, None).autoscaler  # type: ignore[arg-type]
    made = Head(work_dir=tmp_path, autoscaler=autoscaler)
    made.have("jobs")
    made.have("story")
    made.have("partitions", "PartitionName=train State=UP", "PartitionName=cpu State=UP")
    made.have("nodes", "NodeName=train-1 NodeAddr=10.0.0.1 State=IDLE+CLOUD Comment= Reason=")
    return made


WARNING = f"publish: cluster dev ends at {END}"
CLOSED = ["publish: cluster dev ends", "queue train DOWN", "queue cpu DOWN"]
LEFT = ["save", "publish: cluster dev has ended", "ship", "power off"]


def test_nothing_happens_long_before_the_end(head: Head) -> None:
    head.now = NOW - 901
    assert head.check() == []


def test_the_end_is_reported_to_the_topic_and_to_jobs_that_run_once(head: Head) -> None:
    head.now = NOW - 900
    head.have("jobs", "5 1 RUNNING", "7 1 RUNNING", "8 1 PENDING")
    assert (head.check(), head.check(), head.events) == ([WARNING, "comment on job 7"], [], ["ends-soon"])


def test_an_end_goes_from_queues_to_machines_to_records_to_the_head(head: Head) -> None:
    assert head.check() == [*CLOSED, "end machines", *LEFT]


def test_the_steps_of_an_end_follow_each_other_within_seconds(head: Head) -> None:
    head.check()
    assert head.slept == [5.0, 5.0]


def test_jobs_are_signalled_after_queues_close_and_before_machines_end(head: Head) -> None:
    head.have("jobs", "7 1 RUNNING")
    assert head.check() == [*CLOSED, "ask job 7 for a checkpoint", "end machines", *LEFT]


def test_static_nodes_are_powered_down_too(head: Head) -> None:
    head.check()
    assert head.autoscaler.is_closing


def test_a_head_waits_for_machines_that_do_not_end(head: Head) -> None:
    head.stuck = True
    assert head.check() == [*CLOSED, "end machines"]


@pytest.mark.parametrize(
    ("broken", "story"),
    [
        ("publish", ["queue train DOWN", "queue cpu DOWN", "end machines", "save", "ship", "power off"]),
        ("save", [*CLOSED, "end machines", "publish: cluster dev has ended", "ship", "power off"]),
        ("ship", [*CLOSED, "end machines", "save", "publish: cluster dev has ended", "power off"]),
        ("bucket", [*CLOSED, "end machines", *LEFT]),
    ],
)
def test_failed_steps_do_not_keep_the_head_alive(head: Head, broken: str, story: list[str]) -> None:
    head.fails = {broken}
    assert head.check() == story


def test_a_head_that_cannot_power_off_tries_again_and_saves_nothing_twice(head: Head) -> None:
    head.fails = {"power off"}
    with pytest.raises(Offline):
        head.check()
    head.fails = set()
    assert head.check() == ["ship", "power off"]


def test_an_end_that_was_just_moved_does_not_begin(head: Head) -> None:
    head.bucket = LATER
    assert head.check() == []


def test_a_moved_end_stays_moved_while_the_bucket_cannot_be_read(head: Head) -> None:
    head.bucket = LATER
    head.check()
    head.fails = {"bucket"}
    assert head.check() == []


def test_a_moved_end_is_announced_again(head: Head) -> None:
    head.now = NOW - 900
    head.check()
    head.bucket, head.now = LATER, NOW + 4 * 3600 - 900
    assert head.check() == [f"publish: cluster dev ends at {LATER}"]


def test_an_end_that_is_moved_while_it_happens_opens_the_queues(head: Head) -> None:
    head.stuck = True
    head.check()
    head.bucket = LATER
    found = head.check()
    assert (found, head.autoscaler.is_closing) == (
        ["queue train UP", "queue cpu UP", "publish: cluster dev continues"],
        False,
    )


def test_an_end_that_is_moved_when_it_has_half_begun_opens_the_queues(head: Head) -> None:
    head.have("scontrol", "#!/bin/sh", 'case "$*" in *=cpu*) exit 1;; esac', SCRIPTS["scontrol"])
    with pytest.raises(SlurmError):
        head.check()
    head.have("scontrol", "#!/bin/sh", SCRIPTS["scontrol"])
    head.bucket = LATER
    assert head.check() == ["queue train UP", "queue cpu UP", "publish: cluster dev continues"]


def test_an_autoscaler_that_was_restarted_opens_what_its_former_had_closed(head: Head) -> None:
    head.stuck = True
    head.check()
    head.bucket = LATER
    head.restart()
    assert head.check() == ["queue train UP", "queue cpu UP", "publish: cluster dev continues"]


def test_a_restarted_autoscaler_continues_the_shutdown(head: Head) -> None:
    head.stuck = True
    head.check()
    head.stuck = False
    head.restart()
    assert head.check() == ["publish: cluster dev ends", *LEFT]


def test_a_new_head_of_an_expired_cluster_stays_for_a_while(head: Head) -> None:
    head.restart()
    assert head.check() == [WARNING]


def test_a_queue_that_somebody_had_stopped_before_stays_so(head: Head) -> None:
    head.stuck = True
    head.have("partitions", "PartitionName=train State=UP", "PartitionName=cpu State=DOWN")
    head.check()
    head.bucket = LATER
    assert head.check() == ["queue train UP", "publish: cluster dev continues"]


def test_a_cancelled_shutdown_starts_again_from_the_beginning(head: Head) -> None:
    head.stuck = True
    head.check()
    head.bucket = LATER
    head.check()
    head.stuck, head.now = False, NOW + 4 * 3600
    assert head.check() == [*CLOSED, *LEFT]


def idle(head: Head) -> Head:
    """The same head with no end but an hour without a job, which was just used."""
    head.autoscaler.plan = replace(head.autoscaler.plan, lifetime=LifetimePlan(ttl_s=None, idle_s=3600))
    head.autoscaler.deployed = replace(head.autoscaler.deployed, ends_at=None)
    head.check()
    return head


def test_a_cluster_without_a_job_ends_after_its_idle_time(head: Head) -> None:
    idle(head).now += 3600
    assert head.check() == [*CLOSED, "end machines", *LEFT]


def test_a_job_that_waits_keeps_a_cluster_alive(head: Head) -> None:
    idle(head).have("jobs", "8 1 PENDING")
    head.now += 3600
    assert head.check() == []


def test_a_job_submitted_while_an_idle_cluster_ends_opens_its_queues(head: Head) -> None:
    idle(head).now += 3600
    head.stuck = True
    head.check()
    head.have("jobs", "8 1 PENDING")
    assert head.check() == ["queue train UP", "queue cpu UP", "publish: cluster dev continues"]


def silent(head: Head, name: str = "squeue") -> Head:
    """The same head, whose slurmctld does not answer this program from now on."""
    head.have(name, "#!/bin/sh", "echo Unable to contact slurm controller >&2", "exit 1")
    with pytest.raises(SlurmError):
        head.check()
    return head


@pytest.mark.parametrize("name", ["squeue", "scontrol"])
def test_without_slurm_machines_are_terminated_through_ec2_five_minutes_later(head: Head, name: str) -> None:
    silent(head, name)
    before = len(head.story)
    head.now = NOW + 299
    with pytest.raises(SlurmError):
        head.check()
    head.now = NOW + 300
    for _ in range(3):
        head.check()
    calls = [line for line in head.story[before:] if line != CLOSED[0]]
    assert calls == ["terminate: i-1", *LEFT]


def test_a_slurm_that_answers_again_ends_the_cluster_itself(head: Head) -> None:
    silent(head)
    head.have("squeue", "#!/bin/sh", SCRIPTS["squeue"])
    head.now = NOW + 300
    assert head.check() == [*CLOSED, "end machines", *LEFT]


def test_a_moved_end_is_respected_without_slurm(head: Head) -> None:
    silent(head).bucket = LATER
    head.now = NOW + 300
    with pytest.raises(SlurmError):
        head.check()


def test_a_cluster_that_was_idle_when_slurm_fell_silent_ends(head: Head) -> None:
    silent(idle(head)).now += 3900
    for _ in range(3):
        head.check()
    assert head.story == ["terminate: i-1", *LEFT]


def test_a_cluster_whose_jobs_slurm_never_reported_does_not_end_for_being_idle(head: Head) -> None:
    head.autoscaler.plan = replace(head.autoscaler.plan, lifetime=LifetimePlan(ttl_s=None, idle_s=3600))
    head.autoscaler.deployed = replace(head.autoscaler.deployed, ends_at=None)
    silent(head).now += 86400
    with pytest.raises(SlurmError):
        head.check()
