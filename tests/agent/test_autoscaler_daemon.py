"""The autoscaler as its own process, with the box's EC2 and a scontrol that only records its calls."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import boxes
from agent.offered import offering, tags, with_efa, without_efa
from agent.waiting import SOON_S, until
from box.vpc_fixtures import Clients, LaunchNetwork
from corral.agent.autoscaler.resume_program import wake, write_request
from corral.agent.events import timestamp
from corral.agent.process_lock import is_held
from corral.box import control
from corral.box.client import BoxStatus
from corral.model.deployed import Deployed
from corral.model.serialization import to_json
from render.plans import dev

MODULES = Path(__file__).parents[2] / "modules"
SCONTROL = """#!/bin/sh
[ "$1" != --oneliner ] || {{ cat {nodes} 2>/dev/null; exit 0; }}
echo "$*" >>{log}
[ ! -e {broken} ] || {{ echo "Unable to contact slurm controller" >&2; exit 1; }}
"""
NOT_OF_REQUESTS = (
    "INFO autoscaler-started",
    "ERROR node names",
    "ERROR node switches",
    "ERROR event shipping",
)
SQUEUE = """#!/bin/sh
cat {waiting} 2>/dev/null || true
"""


@dataclass(kw_only=True)
class Head:
    """What an autoscaler stands on, and the autoscalers that a test has started."""

    directory: Path
    environment: Mapping[str, str]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def request(self, verb: str, nodes: str, jobs: Mapping[int, str] | None = None) -> None:
        """Leaves a request and rings no wake_socket."""
        listed = [{"job_id": number, "nodes_resume": waited} for number, waited in (jobs or {}).items()]
        (self.directory / "resume.json").write_text(json.dumps({"jobs": listed}))
        write_request(verb, nodes, {"SLURM_RESUME_FILE": str(self.directory / "resume.json")}, str(self.spool))

    def wake(self) -> None:
        wake(str(self.directory / "wake_socket"))

    def keep(self, interval_s: float = 0.2, **environment: str) -> subprocess.Popen[bytes]:
        """A new autoscaler; it listens when this returns, or has ended."""
        options = {"records": "records", "spool": "spool", "wake-socket": "wake_socket", "state-dir": "state"}
        paths = [f"--{option}={self.directory / name}" for option, name in options.items()]
        command = [sys.executable, "-m", "corral.agent", "autoscaler", *paths, f"--interval={interval_s}"]
        with (self.directory / "log").open("ab") as log:
            autoscaler = subprocess.Popen(command, env={**self.environment, **environment}, stdout=log, stderr=log)
        self.started.append(autoscaler)
        until(lambda: (self.directory / "wake_socket").exists() or autoscaler.poll() is not None)
        return autoscaler

    @property
    def spool(self) -> Path:
        return self.directory / "spool"

    @property
    def log(self) -> list[str]:
        """The autoscaler's lines without their dates, and without those of its tasks and of its beginning."""
        lines = (self.directory / "log").read_text().splitlines()
        calls = (re.sub(r"^\S+ \S+ corral-agent ", "", line) for line in lines)
        return [line for line in calls if not line.startswith(NOT_OF_REQUESTS)]

    @property
    def calls(self) -> list[str]:
        """The calls of scontrol."""
        file = self.directory / "scontrol.log"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def left(self) -> list[str]:
        """The verbs of the requests that wait."""
        verbs = []
        for file in sorted(self.spool.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):  # the autoscaler has answered it meanwhile
                verbs.append(json.loads(file.read_text().partition("\n")[0])["verb"])
        return verbs

    def waits(self, *jobs: tuple[str, int, datetime, str]) -> None:
        """What squeue says of pending jobs: id, restarts, from when they may run, and why they wait."""
        lines = (f"{job} {restarts} {begin:%Y-%m-%dT%H:%M:%S} train {reason}" for job, restarts, begin, reason in jobs)
        (self.directory / "waiting").write_text("\n".join(lines) + "\n")

    def slurmctld(self, *, answers: bool) -> None:
        """From now on scontrol works, or it does not."""
        broken = self.directory / "broken"
        broken.unlink(missing_ok=True) if answers else broken.touch()


@pytest.fixture
def deployed(aws: Clients, launch_network: LaunchNetwork) -> Deployed:
    return offering(aws, launch_network, {"open": None, "full": 0})


@pytest.fixture
def head(tmp_path: Path, box: BoxStatus, deployed: Deployed) -> Iterator[Head]:
    """A head of a cluster whose queue `train` has capacity, and whose queue `cpu` has none."""
    (tmp_path / "records").mkdir()
    (tmp_path / "spool").mkdir()
    (tmp_path / "state").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "records/cluster.json").write_text(to_json(dev(with_efa("open"), without_efa("full"))))
    (tmp_path / "records/deployed.json").write_text(to_json(deployed))
    scontrol = tmp_path / "bin/scontrol"
    scontrol.write_text(
        SCONTROL.format(log=tmp_path / "scontrol.log", broken=tmp_path / "broken", nodes=tmp_path / "nodes")
    )
    squeue = tmp_path / "bin/squeue"
    squeue.write_text(SQUEUE.format(waiting=tmp_path / "waiting"))
    for program in (scontrol, squeue):
        program.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    settings = {"PATH": path, "PYTHONPATH": str(MODULES), "AWS_MAX_ATTEMPTS": "1"}
    made = Head(directory=tmp_path, environment={**boxes.process_environment(box), **settings})
    yield made
    for autoscaler in made.started:
        autoscaler.kill()
        autoscaler.wait()


def nodes(aws: Clients) -> list[str]:
    return [held["corral:nodes"] for held in tags(aws)]


def test_a_request_is_served_when_the_autoscaler_is_woken(head: Head, aws: Clients) -> None:
    head.request("suspend", "train-1")
    head.keep(interval_s=3600)
    until(lambda: not head.left)  # its first look is over
    head.request("resume", "train-1")
    head.wake()
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_an_autoscaler_records_when_the_history_of_its_cluster_began(head: Head) -> None:
    head.keep()
    first = json.loads((head.directory / "state/events.jsonl").read_text().partition("\n")[0])
    assert timestamp(int((head.directory / "state/life").read_text())) == first["at"]


def test_a_request_whose_wake_up_was_lost_is_served_in_the_next_cycle(head: Head, aws: Clients) -> None:
    head.keep(interval_s=0.2)
    head.request("resume", "train-1")
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_requests_written_while_no_autoscaler_ran_are_served_at_its_start(head: Head, aws: Clients) -> None:
    head.request("resume", "train-[1-2]", {1: "train-[1-2]"})
    head.request("suspend", "train-1")
    head.keep(interval_s=3600)
    until(lambda: not head.left)
    assert nodes(aws) == ["train-2"]


def test_slurmctld_gets_the_addresses_of_the_nodes(head: Head) -> None:
    head.request("resume", "train-[1-2]", {1: "train-[1-2]"})
    head.keep()
    until(lambda: not head.left)
    assert head.calls == [
        "update nodename=train-1,train-2 nodeaddr=10.64.1.4,10.64.1.5 nodehostname=ip-10-64-1-4,ip-10-64-1-5"
    ]


@pytest.mark.parametrize("verb", ["suspend", "resume-failed"])
def test_machines_of_suspended_nodes_are_terminated(head: Head, aws: Clients, verb: str) -> None:
    head.request("resume", "train-[1-2]", {1: "train-[1-2]"})
    head.request(verb, "train-[1-2]")
    head.keep()
    until(lambda: not head.left)
    assert nodes(aws) == []


def test_nodes_without_capacity_are_powered_down_with_the_reason(head: Head) -> None:
    head.request("resume", "cpu-[1-2]", {1: "cpu-[1-2]"})
    head.keep()
    until(lambda: not head.left)
    why = "reason=corral: full: ReservationCapacityExceeded, tried again at "
    down, off = (f"update nodename=cpu-[1-2] state={state} {why}" for state in ("down", "power_down_force"))
    assert [line[: len(begin)] for line, begin in zip(head.calls, (down, off), strict=False)] == [down, off]


def test_nodes_whose_launch_is_refused_are_powered_down_with_the_reason(head: Head, box: BoxStatus) -> None:
    control.inject_fault(box.dir, "refuse", code="VcpuLimitExceeded")
    head.request("resume", "train-1")
    head.keep()
    until(lambda: not head.left)
    assert head.calls[1].startswith(
        "update nodename=train-1 state=power_down_force reason=corral: open: VcpuLimitExceeded, tried again at "
    )


def test_a_queue_without_capacity_does_not_block_another(head: Head, aws: Clients) -> None:
    head.request("resume", "cpu-1,train-1", {1: "cpu-1", 2: "train-1"})
    head.keep()
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_nodes_of_a_queue_that_is_gone_are_powered_down_with_the_reason(head: Head) -> None:
    head.request("resume", "old-[1-2]", {1: "old-[1-2]"})
    head.keep()
    until(lambda: not head.left)
    assert head.calls == [
        "update nodename=old-[1-2] state=down reason=corral: cluster dev has no such queue",
        "update nodename=old-[1-2] state=power_down_force reason=corral: cluster dev has no such queue",
    ]


def test_a_request_stays_while_slurmctld_does_not_answer(head: Head) -> None:
    head.slurmctld(answers=False)
    head.request("resume", "train-1")
    head.keep()
    until(lambda: len(head.calls) > 2)
    assert head.left == ["resume"]


def test_a_retry_launches_nothing_twice(head: Head, aws: Clients) -> None:
    head.slurmctld(answers=False)
    head.request("resume", "train-[1-2]", {1: "train-[1-2]"})
    head.keep()
    until(lambda: len(head.calls) > 2)
    head.slurmctld(answers=True)
    until(lambda: not head.left)
    assert nodes(aws) == ["train-[1-2]", "train-[1-2]"]


def test_a_node_that_slurmctld_requests_twice_is_launched_once(head: Head, aws: Clients) -> None:
    head.request("resume", "train-1")
    head.request("resume", "train-1")
    head.keep()
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_a_node_that_was_suspended_meanwhile_is_not_launched(head: Head, aws: Clients) -> None:
    head.slurmctld(answers=False)
    head.request("resume", "train-1")
    head.request("suspend", "train-1")
    head.keep()
    until(lambda: not head.left)
    assert nodes(aws) == []


def test_a_failed_request_does_not_block_other_nodes(head: Head) -> None:
    head.slurmctld(answers=False)
    head.request("resume", "train-1")
    head.request("suspend", "train-2")
    head.keep()
    until(lambda: head.left == ["resume"])
    assert [line for line in head.log if "suspend" in line] == ["INFO ended train-2 (suspend): no machine"]


def test_an_expired_request_is_not_launched(head: Head, aws: Clients) -> None:
    old_ns = time.time_ns() - 1300 * 10**9
    (head.spool / f"{old_ns}-1.json").write_text('{"verb": "resume", "nodes": "train-1", "slurm": {}}')
    head.keep()
    until(lambda: not head.left)
    assert (nodes(aws), head.log) == ([], ["WARNING give up train-1: requested more than 1200 s ago"])


def test_an_old_suspend_request_is_served(head: Head, aws: Clients) -> None:
    head.request("resume", "train-1")
    head.keep()
    until(lambda: not head.left)
    (head.spool / "1-1.json").write_text('{"verb": "suspend", "nodes": "train-1", "slurm": {}}')
    until(lambda: not head.left)
    assert nodes(aws) == []


def test_an_invalid_request_does_not_end_the_autoscaler(head: Head, aws: Clients) -> None:
    (head.spool / "1-1.json").write_text("{")
    head.request("resume", "train-1")
    head.keep()
    until(lambda: not list(head.spool.glob("*.json")))
    assert nodes(aws) == ["train-1"]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, 'Could not connect to the endpoint URL: "http://127.0.0.1:9/"'),
        (
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"},
            "Unable to locate credentials",
        ),
    ],
    ids=["unreachable", "without-credentials"],
)
def test_an_unreachable_ec2_is_one_line_a_cycle_and_retried(
    head: Head, setting: Mapping[str, str], problem: str
) -> None:
    head.request("suspend", "train-1")
    head.keep(**setting)
    until(lambda: len(head.log) > 2)
    compared = f"ERROR compare Slurm and EC2: cannot reach EC2: {problem}"
    assert set(head.log) - {compared} == {f"ERROR suspend train-1: cannot reach EC2: {problem}; will retry"}


def test_a_second_autoscaler_exits_at_once(head: Head) -> None:
    first = head.keep()
    second = head.keep()
    assert (first.poll(), second.wait(SOON_S), head.log) == (
        None,
        0,
        ["INFO autoscaler: another one is already running"],
    )


def test_an_autoscaler_starts_where_one_was_killed(head: Head, aws: Clients) -> None:
    first = head.keep()
    first.kill()
    first.wait()
    head.keep()
    head.request("resume", "train-1")
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_an_autoscaler_exits_silently_on_sigterm(head: Head) -> None:
    autoscaler = head.keep()
    autoscaler.send_signal(signal.SIGTERM)
    assert (autoscaler.wait(SOON_S), head.log) == (0, [])


def test_an_autoscaler_that_waits_for_ec2_exits_on_sigterm(head: Head) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        head.request("suspend", "train-1")
        autoscaler = head.keep(AWS_ENDPOINT_URL=f"http://127.0.0.1:{mute.getsockname()[1]}")
        with mute.accept()[0]:
            autoscaler.send_signal(signal.SIGTERM)
            assert (autoscaler.wait(SOON_S), head.log) == (0, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root: run the tests as root")
def test_the_wake_socket_belongs_to_the_owner_of_the_requests(head: Head) -> None:
    os.chown(head.spool, 64030, 64030)
    head.keep()
    until(lambda: (head.directory / "wake_socket").stat().st_uid)  # the socket is root's for a moment
    assert (
        (head.directory / "wake_socket").stat().st_uid,
        (head.directory / "wake_socket").stat().st_mode & 0o777,
    ) == (64030, 0o755)


def test_a_requeued_job_that_waits_only_for_slurms_delay_is_started(head: Head) -> None:
    soon, later = datetime.now() + timedelta(seconds=100), datetime.now() + timedelta(hours=1)
    head.waits(
        ("5", 1, soon, "BeginTime"),
        ("6", 0, soon, "BeginTime"),  # submitted with --begin
        ("7", 1, later, "BeginTime"),  # its user set a begin time
        ("8", 1, soon, "Resources"),
    )
    head.keep()
    until(lambda: bool(head.calls))
    assert head.calls[0] == "update jobid=5 StartTime=now AdminComment="


def test_a_directory_instead_of_a_request_does_not_end_the_autoscaler(head: Head, aws: Clients) -> None:
    (head.spool / "1-1.json").mkdir()
    head.request("resume", "train-1")
    head.keep()
    until(lambda: not list(head.spool.glob("*.json")))
    assert nodes(aws) == ["train-1"]


def test_a_pipe_instead_of_a_request_does_not_block_the_autoscaler(head: Head, aws: Clients) -> None:
    os.mkfifo(head.spool / "1-1.json")
    head.request("resume", "train-1")
    head.keep()
    until(lambda: not list(head.spool.glob("*.json")))
    assert nodes(aws) == ["train-1"]


def test_a_failing_step_is_logged_once_and_does_not_end_the_autoscaler(head: Head) -> None:
    head.waits(("5", 1, datetime.now(), "BeginTime"))
    waiting = head.directory / "waiting"
    waiting.write_text(waiting.read_text().replace(" 1 ", " one "))
    autoscaler = head.keep(interval_s=0.1)
    until(lambda: any("check waiting jobs" in line for line in head.log))
    went_round(head, times=3)
    output = [line for line in head.log if "check waiting jobs" in line]
    assert (autoscaler.poll(), output) == (None, ["ERROR check waiting jobs failed"])


def test_an_autoscaler_touches_its_heartbeat(head: Head) -> None:
    head.keep(interval_s=0.1)
    went_round(head, times=2)
    assert is_held(head.directory / "wake_socket.lock")


def went_round(head: Head, times: int) -> None:
    """Waits until the autoscaler has gone round so often."""
    sign, seen = head.directory / "wake_socket.heartbeat", set[int]()
    until(lambda: sign.exists() and (seen.add(sign.stat().st_mtime_ns) or len(seen) > times))


def test_requests_for_a_queue_that_a_later_up_added_use_the_new_records(head: Head, aws: Clients) -> None:
    former = dev(without_efa("full"))
    new = (head.directory / "records/cluster.json").read_text()
    (head.directory / "records/cluster.json").write_text(to_json(former))
    head.keep(interval_s=3600)
    draft = head.directory / "draft.json"  # renamed, as a boot and an apply install it: nobody reads half of it
    draft.write_text(new)
    draft.replace(head.directory / "records/cluster.json")
    head.request("resume", "train-1")
    head.wake()
    until(lambda: not head.left)
    assert (nodes(aws), head.calls[:1]) == (
        ["train-1"],
        ["update nodename=train-1 nodeaddr=10.64.1.4 nodehostname=ip-10-64-1-4"],
    )


def test_unreadable_records_leave_the_former_ones_in_effect_with_one_line(head: Head, aws: Clients) -> None:
    head.keep(interval_s=0.1)
    (head.directory / "records/cluster.json").write_text("{")
    until(lambda: bool(head.log))
    head.request("resume", "train-1")
    until(lambda: not head.left)
    output = [line for line in head.log if line.startswith("ERROR read the records: ")]
    assert (nodes(aws), len(output), output[0].endswith("; the former records stay in effect")) == (
        ["train-1"],
        1,
        True,
    )
