"""The keeper as a process of its own, with the box's EC2 and a scontrol that only writes down what it is told."""

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
from box.ground import Clients, Ground
from corral.agent.alone import is_held
from corral.agent.events import moment
from corral.agent.note import leave_note, ring
from corral.box.control import BoxStatus
from corral.model.deployed import Deployed
from corral.model.jsons import to_json
from render.plans import dev

MODULES = Path(__file__).parents[2] / "modules"
SCONTROL = """#!/bin/sh
[ "$1" != --oneliner ] || {{ cat {nodes} 2>/dev/null; exit 0; }}
echo "$*" >>{log}
[ ! -e {broken} ] || {{ echo "Unable to contact slurm controller" >&2; exit 1; }}
"""
NOT_OF_NOTES = (
    "INFO keeper-began",
    "ERROR names of nodes",
    "ERROR switches of nodes",
    "ERROR events to the log group",
)
SQUEUE = """#!/bin/sh
cat {waiting} 2>/dev/null || true
"""


@dataclass(kw_only=True)
class Head:
    """What a keeper stands on, and the keepers that a test has started."""

    directory: Path
    environment: Mapping[str, str]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def note(self, verb: str, nodes: str, jobs: Mapping[int, str] | None = None) -> None:
        """Leaves a note and rings no bell."""
        listed = [{"job_id": number, "nodes_resume": waited} for number, waited in (jobs or {}).items()]
        (self.directory / "resume.json").write_text(json.dumps({"jobs": listed}))
        leave_note(verb, nodes, {"SLURM_RESUME_FILE": str(self.directory / "resume.json")}, str(self.spool))

    def ring(self) -> None:
        ring(str(self.directory / "bell"))

    def keep(self, turn_s: float = 0.2, **environment: str) -> subprocess.Popen[bytes]:
        """A new keeper; it listens when this returns, or has ended."""
        places = [f"--{name}={self.directory / name}" for name in ("records", "spool", "bell", "state")]
        command = [sys.executable, "-m", "corral.agent", "keep", *places, f"--turn={turn_s}"]
        with (self.directory / "log").open("ab") as log:
            keeper = subprocess.Popen(command, env={**self.environment, **environment}, stdout=log, stderr=log)
        self.started.append(keeper)
        until(lambda: (self.directory / "bell").exists() or keeper.poll() is not None)
        return keeper

    @property
    def spool(self) -> Path:
        return self.directory / "spool"

    @property
    def log(self) -> list[str]:
        """The keeper's lines without their dates, and without those of its chores and of its beginning."""
        lines = (self.directory / "log").read_text().splitlines()
        told = (re.sub(r"^\S+ \S+ corral-agent ", "", line) for line in lines)
        return [line for line in told if not line.startswith(NOT_OF_NOTES)]

    @property
    def told(self) -> list[str]:
        """What scontrol was told."""
        file = self.directory / "scontrol.log"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def left(self) -> list[str]:
        """The verbs of the notes that wait."""
        verbs = []
        for file in sorted(self.spool.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):  # the keeper has answered it meanwhile
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
def deployed(aws: Clients, ground: Ground) -> Deployed:
    return offering(aws, ground, {"open": None, "full": 0})


@pytest.fixture
def head(tmp_path: Path, box: BoxStatus, deployed: Deployed) -> Iterator[Head]:
    """A head of a cluster whose queue `train` has room, and whose queue `cpu` has none."""
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
    for keeper in made.started:
        keeper.kill()
        keeper.wait()


def nodes(aws: Clients) -> list[str]:
    return [held["corral:nodes"] for held in tags(aws)]


def test_a_note_is_answered_when_the_bell_rings(head: Head, aws: Clients) -> None:
    head.note("suspend", "train-1")
    head.keep(turn_s=3600)
    until(lambda: not head.left)  # its first look is over
    head.note("resume", "train-1")
    head.ring()
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_a_keeper_writes_down_when_the_life_of_its_cluster_began(head: Head) -> None:
    head.keep()
    first = json.loads((head.directory / "state/events.jsonl").read_text().partition("\n")[0])
    assert moment(int((head.directory / "state/life").read_text())) == first["at"]


def test_a_note_whose_bell_nobody_heard_is_answered_at_the_next_turn(head: Head, aws: Clients) -> None:
    head.keep(turn_s=0.2)
    head.note("resume", "train-1")
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_notes_left_while_no_keeper_ran_are_answered_at_its_start(head: Head, aws: Clients) -> None:
    head.note("resume", "train-[1-2]", {1: "train-[1-2]"})
    head.note("suspend", "train-1")
    head.keep(turn_s=3600)
    until(lambda: not head.left)
    assert nodes(aws) == ["train-[1-2]"]


def test_slurmctld_is_told_where_the_nodes_are(head: Head) -> None:
    head.note("resume", "train-[1-2]", {1: "train-[1-2]"})
    head.keep()
    until(lambda: not head.left)
    assert head.told == [
        "update nodename=train-1,train-2 nodeaddr=10.64.1.4,10.64.1.5 nodehostname=ip-10-64-1-4,ip-10-64-1-5"
    ]


@pytest.mark.parametrize("verb", ["suspend", "resume-failed"])
def test_nodes_that_slurm_wants_no_more_are_ended(head: Head, aws: Clients, verb: str) -> None:
    head.note("resume", "train-[1-2]", {1: "train-[1-2]"})
    head.note(verb, "train-[1-2]")
    head.keep()
    until(lambda: not head.left)
    assert nodes(aws) == []


def test_nodes_without_room_are_powered_down_with_the_reason(head: Head) -> None:
    head.note("resume", "cpu-[1-2]", {1: "cpu-[1-2]"})
    head.keep()
    until(lambda: not head.left)
    why = "reason=corral: full: ReservationCapacityExceeded, tried again at "
    down, off = (f"update nodename=cpu-[1-2] state={state} {why}" for state in ("down", "power_down_force"))
    assert [line[: len(begin)] for line, begin in zip(head.told, (down, off), strict=False)] == [down, off]


def test_nodes_whose_launch_is_refused_are_powered_down_with_the_reason(
    head: Head, aws: Clients, deployed: Deployed
) -> None:
    aws("ec2").delete_launch_template(LaunchTemplateId=deployed.templates["open"].id)
    head.note("resume", "train-1")
    head.keep()
    until(lambda: not head.left)
    assert head.told[1].startswith(
        "update nodename=train-1 state=power_down_force"
        " reason=corral: open: InvalidLaunchTemplateId.NotFound, tried again at "
    )


def test_a_queue_without_room_does_not_keep_another_from_its_nodes(head: Head, aws: Clients) -> None:
    head.note("resume", "cpu-1,train-1", {1: "cpu-1", 2: "train-1"})
    head.keep()
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_nodes_of_a_queue_that_is_gone_are_powered_down_with_the_reason(head: Head) -> None:
    head.note("resume", "old-[1-2]", {1: "old-[1-2]"})
    head.keep()
    until(lambda: not head.left)
    assert head.told == [
        "update nodename=old-[1-2] state=down reason=corral: cluster dev has no such queue",
        "update nodename=old-[1-2] state=power_down_force reason=corral: cluster dev has no such queue",
    ]


def test_a_note_stays_while_slurmctld_does_not_answer(head: Head) -> None:
    head.slurmctld(answers=False)
    head.note("resume", "train-1")
    head.keep()
    until(lambda: len(head.told) > 2)
    assert head.left == ["resume"]


def test_what_is_tried_again_launches_nothing_twice(head: Head, aws: Clients) -> None:
    head.slurmctld(answers=False)
    head.note("resume", "train-[1-2]", {1: "train-[1-2]"})
    head.keep()
    until(lambda: len(head.told) > 2)
    head.slurmctld(answers=True)
    until(lambda: not head.left)
    assert nodes(aws) == ["train-[1-2]", "train-[1-2]"]


def test_a_node_that_slurmctld_asks_for_twice_is_launched_once(head: Head, aws: Clients) -> None:
    head.note("resume", "train-1")
    head.note("resume", "train-1")
    head.keep()
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_a_node_is_not_ended_before_its_launch_is_done(head: Head) -> None:
    head.slurmctld(answers=False)
    head.note("resume", "train-1")
    head.note("suspend", "train-1")
    head.keep()
    until(lambda: len(head.told) > 2)
    assert head.left == ["resume", "suspend"]


def test_a_note_that_fails_does_not_keep_other_nodes_waiting(head: Head) -> None:
    head.slurmctld(answers=False)
    head.note("resume", "train-1")
    head.note("suspend", "train-2")
    head.keep()
    until(lambda: head.left == ["resume"])
    assert [line for line in head.log if "suspend" in line] == ["INFO ended train-2 (suspend): there is no machine"]


def test_a_wish_that_slurmctld_has_given_up_is_not_launched(head: Head, aws: Clients) -> None:
    old_ns = time.time_ns() - 1300 * 10**9
    (head.spool / f"{old_ns}-1.json").write_text('{"verb": "resume", "nodes": "train-1", "slurm": {}}')
    head.keep()
    until(lambda: not head.left)
    assert (nodes(aws), head.log) == ([], ["WARNING give up train-1: wanted more than 1200 s ago"])


def test_an_old_note_that_ends_nodes_is_answered(head: Head, aws: Clients) -> None:
    head.note("resume", "train-1")
    head.keep()
    until(lambda: not head.left)
    (head.spool / "1-1.json").write_text('{"verb": "suspend", "nodes": "train-1", "slurm": {}}')
    until(lambda: not head.left)
    assert nodes(aws) == []


def test_a_broken_note_does_not_end_the_keeper(head: Head, aws: Clients) -> None:
    (head.spool / "1-1.json").write_text("{")
    head.note("resume", "train-1")
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
def test_an_ec2_that_cannot_be_asked_is_one_line_a_turn_and_asked_again(
    head: Head, setting: Mapping[str, str], problem: str
) -> None:
    head.note("suspend", "train-1")
    head.keep(**setting)
    until(lambda: len(head.log) > 2)
    compared = f"ERROR compare Slurm and EC2: EC2 cannot be asked: {problem}"
    assert set(head.log) - {compared} == {f"ERROR suspend train-1: EC2 cannot be asked: {problem}; tried again"}


def test_a_second_keeper_ends_at_once(head: Head) -> None:
    first = head.keep()
    second = head.keep()
    assert (first.poll(), second.wait(SOON_S), head.log) == (None, 0, ["INFO keep: another keeper runs"])


def test_a_keeper_starts_where_one_was_killed(head: Head, aws: Clients) -> None:
    first = head.keep()
    first.kill()
    first.wait()
    head.keep()
    head.note("resume", "train-1")
    until(lambda: not head.left)
    assert nodes(aws) == ["train-1"]


def test_a_keeper_that_is_told_to_end_ends_without_a_word(head: Head) -> None:
    keeper = head.keep()
    keeper.send_signal(signal.SIGTERM)
    assert (keeper.wait(SOON_S), head.log) == (0, [])


def test_a_keeper_that_waits_for_ec2_ends_when_it_is_told_to(head: Head) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        head.note("suspend", "train-1")
        keeper = head.keep(AWS_ENDPOINT_URL=f"http://127.0.0.1:{mute.getsockname()[1]}")
        with mute.accept()[0]:
            keeper.send_signal(signal.SIGTERM)
            assert (keeper.wait(SOON_S), head.log) == (0, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root: run the tests as root")
def test_the_bell_belongs_to_whom_the_notes_belong_to(head: Head) -> None:
    os.chown(head.spool, 64030, 64030)
    head.keep()
    assert ((head.directory / "bell").stat().st_uid, (head.directory / "bell").stat().st_mode & 0o777) == (64030, 0o755)


def test_a_requeued_job_that_waits_for_slurms_delay_alone_is_started(head: Head) -> None:
    soon, later = datetime.now() + timedelta(seconds=100), datetime.now() + timedelta(hours=1)
    head.waits(
        ("5", 1, soon, "BeginTime"),
        ("6", 0, soon, "BeginTime"),  # its user said --begin
        ("7", 1, later, "BeginTime"),  # somebody told it to wait
        ("8", 1, soon, "Resources"),
    )
    head.keep()
    until(lambda: bool(head.told))
    assert head.told[0] == "update jobid=5 StartTime=now AdminComment="


def test_a_directory_in_a_notes_place_does_not_end_the_keeper(head: Head, aws: Clients) -> None:
    (head.spool / "1-1.json").mkdir()
    head.note("resume", "train-1")
    head.keep()
    until(lambda: not list(head.spool.glob("*.json")))
    assert nodes(aws) == ["train-1"]


def test_a_pipe_in_a_notes_place_does_not_stop_the_keeper(head: Head, aws: Clients) -> None:
    os.mkfifo(head.spool / "1-1.json")
    head.note("resume", "train-1")
    head.keep()
    until(lambda: not list(head.spool.glob("*.json")))
    assert nodes(aws) == ["train-1"]


def test_what_a_round_cannot_do_is_told_once_and_does_not_end_the_keeper(head: Head) -> None:
    head.waits(("5", 1, datetime.now(), "BeginTime"))
    waiting = head.directory / "waiting"
    waiting.write_text(waiting.read_text().replace(" 1 ", " one "))
    keeper = head.keep(turn_s=0.1)
    until(lambda: any("look at waiting jobs" in line for line in head.log))
    turned(head, times=3)
    said = [line for line in head.log if "look at waiting jobs" in line]
    assert (keeper.poll(), said) == (None, ["ERROR look at waiting jobs failed"])


def test_a_keeper_shows_that_it_goes_round(head: Head) -> None:
    head.keep(turn_s=0.1)
    turned(head, times=2)
    assert is_held(head.directory / "bell.lock")


def turned(head: Head, times: int) -> None:
    """Waits until the keeper has gone round so often."""
    sign, seen = head.directory / "bell.turned", set[int]()
    until(lambda: sign.exists() and (seen.add(sign.stat().st_mtime_ns) or len(seen) > times))


def test_notes_of_a_queue_that_came_with_an_up_are_answered_by_the_new_records(head: Head, aws: Clients) -> None:
    former = dev(without_efa("full"))
    new = (head.directory / "records/cluster.json").read_text()
    (head.directory / "records/cluster.json").write_text(to_json(former))
    head.keep(turn_s=3600)
    (head.directory / "records/cluster.json").write_text(new)
    head.note("resume", "train-1")
    head.ring()
    until(lambda: not head.left)
    assert (nodes(aws), head.told[:1]) == (
        ["train-1"],
        ["update nodename=train-1 nodeaddr=10.64.1.4 nodehostname=ip-10-64-1-4"],
    )


def test_records_that_cannot_be_read_leave_the_former_ones_with_one_line(head: Head, aws: Clients) -> None:
    head.keep(turn_s=0.1)
    (head.directory / "records/cluster.json").write_text("{")
    until(lambda: bool(head.log))
    head.note("resume", "train-1")
    until(lambda: not head.left)
    said = [line for line in head.log if line.startswith("ERROR read the records: ")]
    assert (nodes(aws), len(said), said[0].endswith("; the former ones count")) == (["train-1"], 1, True)
