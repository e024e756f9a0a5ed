"""Faults of real machines: kills, freezes, network cuts and slow boots, without Pulumi and Slurm."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from machine_fixtures import MachineBox, running_machine_box, until

import boxes
from corral.box import client, control
from corral.box.vpc.virtual_network import MachineError

pytestmark = pytest.mark.box
TICKS = "#!/bin/sh\nwhile :; do date +%s.%N >/var/tick; sleep 0.1; done &\n"
BOOTED = "#!/bin/sh\necho booted >/var/booted\n"
UPTIME = "#!/bin/sh\ncut -d' ' -f1 /proc/uptime >/var/booted\n"

READ_HINT = """
from urllib.request import Request, urlopen
service = "http://169.254.169.254/latest"
asked = Request(f"{service}/api/token", method="PUT", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"})
token = {"X-aws-ec2-metadata-token": urlopen(asked).read().decode()}
print(urlopen(Request(f"{service}/meta-data/events/recommendations/rebalance", headers=token)).read().decode())
"""


@pytest.fixture(scope="module")
def machine_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineBox]:
    """A box with machines that all tests of this module share."""
    with running_machine_box(tmp_path_factory.mktemp("faults") / "box") as machine_box:
        yield machine_box


@pytest.fixture
def ticking(machine_box: MachineBox) -> str:
    """A machine that writes the time ten times a second."""
    instance_id = machine_box.launch(TICKS)
    machine_box.reads(instance_id, "/var/tick")
    return instance_id


def ticks(machine_box: MachineBox, instance_id: str) -> bool:
    """True if the machine's processes run: its file changes within a second."""
    path = machine_box.disk(instance_id) / "var/tick"
    before = path.read_text()
    time.sleep(1)
    return path.read_text() != before


def test_a_killed_machine_ends_at_once_and_its_instance_soon_after(machine_box: MachineBox, ticking: str) -> None:
    control.inject_fault(machine_box.box.dir, "kill", target=ticking)
    until(lambda: not machine_box.runs(ticking))
    assert until(lambda: machine_box.state(ticking) == "terminated" and machine_box.described(ticking))["StateReason"][
        "Code"
    ] == ("Server.InternalError")


def test_a_machine_reads_its_rebalance_recommendation(machine_box: MachineBox) -> None:
    instance_id = machine_box.launch(BOOTED, InstanceMarketOptions={"MarketType": "spot"})
    machine_box.reads(instance_id, "/var/booted")
    control.inject_fault(machine_box.box.dir, "rebalance", target=instance_id)
    assert "noticeTime" in machine_box.run(instance_id, "/usr/bin/python3", "-c", READ_HINT).stdout


def test_a_frozen_machine_stops_and_seems_to_run(machine_box: MachineBox, ticking: str) -> None:
    control.inject_fault(machine_box.box.dir, "freeze", target=ticking)
    until(lambda: not ticks(machine_box, ticking))
    assert (machine_box.state(ticking), machine_box.runs(ticking)) == ("running", True)


def test_a_frozen_machine_continues_when_the_fault_is_cleared(machine_box: MachineBox, ticking: str) -> None:
    control.inject_fault(machine_box.box.dir, "freeze", target=ticking)
    until(lambda: not ticks(machine_box, ticking))
    control.clear_faults(machine_box.box.dir, "freeze")
    assert until(lambda: ticks(machine_box, ticking))


def test_a_frozen_machine_can_be_terminated(machine_box: MachineBox, ticking: str) -> None:
    control.inject_fault(machine_box.box.dir, "freeze", target=ticking)
    until(lambda: not ticks(machine_box, ticking))
    machine_box.aws("ec2").terminate_instances(InstanceIds=[ticking])
    assert until(lambda: not machine_box.runs(ticking))


def reached(machine_box: MachineBox, instance_id: str, other: str) -> bool:
    """True if the other machine's kernel responds at a closed port."""
    address = machine_box.described(other)["PrivateIpAddress"]
    code = f"import socket; socket.create_connection(('{address}', 9), 1)"
    return "Connection refused" in machine_box.run(instance_id, "/usr/bin/python3", "-c", code).stderr


def test_a_disconnected_machine_runs_and_is_unreachable(machine_box: MachineBox, ticking: str) -> None:
    other = machine_box.launch(TICKS)
    machine_box.reads(other, "/var/tick")
    before = reached(machine_box, other, ticking)
    control.inject_fault(machine_box.box.dir, "network-cut", target=ticking)
    until(lambda: not reached(machine_box, other, ticking))
    assert (before, until(lambda: ticks(machine_box, ticking))) == (True, True)


def test_a_disconnected_machine_is_reachable_when_the_fault_is_cleared(machine_box: MachineBox, ticking: str) -> None:
    other = machine_box.launch(TICKS)
    machine_box.reads(other, "/var/tick")
    control.inject_fault(machine_box.box.dir, "network-cut", target=ticking)
    until(lambda: not reached(machine_box, other, ticking))
    control.clear_faults(machine_box.box.dir, "network-cut")
    assert until(lambda: reached(machine_box, other, ticking))


def test_user_data_waits_during_a_slow_boot(machine_box: MachineBox) -> None:
    control.inject_fault(machine_box.box.dir, "slow-boot", after="8s", hits_left="1")
    instance_id = machine_box.launch(UPTIME)
    assert float(machine_box.reads(instance_id, "/var/booted")) >= 8


def test_user_data_never_runs_in_a_hung_boot(machine_box: MachineBox) -> None:
    control.inject_fault(machine_box.box.dir, "hang-boot", hits_left="1")
    hangs, boots = machine_box.launch(BOOTED), machine_box.launch(BOOTED)
    machine_box.reads(boots, "/var/booted")
    assert machine_box.run(hangs, "cat", "/var/booted").stdout == ""


def test_a_machine_boots_before_ec2_shows_its_instance(machine_box: MachineBox) -> None:
    control.inject_fault(machine_box.box.dir, "delayed-visibility", after="1h", hits_left="1")
    instance_id = machine_box.launch(BOOTED)
    assert machine_box.reads(instance_id, "/var/booted") == "booted\n"


def test_an_instance_that_fails_after_launch_is_never_a_machine(machine_box: MachineBox) -> None:
    control.inject_fault(machine_box.box.dir, "fail-after-launch", after="4s", hits_left="1")
    instance_id = machine_box.launch(BOOTED)
    until(lambda: machine_box.state(instance_id) == "terminated")
    assert not machine_box.disk(instance_id).exists()


def test_a_rebooted_machine_ends_its_processes_and_boots_again_from_its_disk(
    machine_box: MachineBox, ticking: str
) -> None:
    before = _began(machine_box, ticking)
    machine_box.aws("ec2").reboot_instances(InstanceIds=[ticking])
    until(lambda: machine_box.runs(ticking) and _began(machine_box, ticking) not in ("", before))
    assert (
        machine_box.state(ticking),
        ticks(machine_box, ticking),
        (machine_box.disk(ticking) / "var/tick").exists(),
    ) == (
        "running",
        False,
        True,
    )


def _began(machine_box: MachineBox, instance_id: str) -> str:
    """When the first process began, in hundredths of a second: a reboot may last less than a second (proc(5))."""
    try:
        return machine_box.run(instance_id, "cut", "-d ", "-f22", "/proc/1/stat").stdout
    except (MachineError, AssertionError):
        return ""


def test_a_frozen_machine_stays_frozen_after_a_restart_of_the_box(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("again") / "box"
    with running_machine_box(directory) as machine_box:
        instance_id = machine_box.launch("#!/bin/sh\nmkdir -p /var/lib/cloud/scripts/per-boot\n"
                                  "printf '#!/bin/sh\\nwhile :; do date +%%s.%%N >/var/tick; sleep 0.1; done &\\n'"
                                  " >/var/lib/cloud/scripts/per-boot/tick\n"
                                  "chmod +x /var/lib/cloud/scripts/per-boot/tick\n")  # fmt: skip
        machine_box.reads(instance_id, "/var/lib/cloud/scripts/per-boot/tick")
        control.inject_fault(directory, "freeze", target=instance_id)
        client.stop(directory)
        boxes.start(directory, machines=True)
        until(lambda: machine_box.runs(instance_id))
        stat = until(
            lambda: machine_box.run(instance_id, "sh", "-c", "cut -d' ' -f3 /proc/1/stat").stdout.strip() == "T"
        )
        assert stat
