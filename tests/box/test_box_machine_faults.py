"""Faults of real machines: what runs there stops, hangs, is cut off or boots late. No Pulumi and no Slurm."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from machine_park import Park, running_park, until

from corral.box import control
from corral.box.vpc.network import MachineError

pytestmark = pytest.mark.box
TICKS = "#!/bin/sh\nwhile :; do date +%s.%N >/var/tick; sleep 0.1; done &\n"
BOOTED = "#!/bin/sh\necho booted >/var/booted\n"

READ_HINT = """
from urllib.request import Request, urlopen
service = "http://169.254.169.254/latest"
asked = Request(f"{service}/api/token", method="PUT", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"})
token = {"X-aws-ec2-metadata-token": urlopen(asked).read().decode()}
print(urlopen(Request(f"{service}/meta-data/events/recommendations/rebalance", headers=token)).read().decode())
"""


@pytest.fixture(scope="module")
def park(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Park]:
    """A box with machines that all tests of this module share."""
    with running_park(tmp_path_factory.mktemp("faults") / "box") as park:
        yield park


@pytest.fixture
def ticking(park: Park) -> str:
    """A machine that writes the time ten times a second."""
    instance_id = park.launch(TICKS)
    park.reads(instance_id, "/var/tick")
    return instance_id


def ticks(park: Park, instance_id: str) -> bool:
    """Whether the machine's processes go on: what it writes changes within a second."""
    place = park.disk(instance_id) / "var/tick"
    before = place.read_text()
    time.sleep(1)
    return place.read_text() != before


def test_a_killed_machine_is_gone_at_once_and_its_instance_a_moment_later(park: Park, ticking: str) -> None:
    control.make_fault(park.box.dir, "kill", of=ticking)
    until(lambda: not park.runs(ticking))
    assert until(lambda: park.state(ticking) == "terminated" and park.described(ticking))["StateReason"]["Code"] == (
        "Server.InternalError"
    )


def test_a_machine_that_may_be_taken_back_finds_the_recommendation(park: Park) -> None:
    instance_id = park.launch(BOOTED, InstanceMarketOptions={"MarketType": "spot"})
    park.reads(instance_id, "/var/booted")
    control.make_fault(park.box.dir, "rebalance", of=instance_id)
    assert "noticeTime" in park.run(instance_id, "/usr/bin/python3", "-c", READ_HINT).stdout


def test_a_machine_that_hangs_stands_still_and_seems_to_run(park: Park, ticking: str) -> None:
    control.make_fault(park.box.dir, "hang", of=ticking)
    until(lambda: not ticks(park, ticking))
    assert (park.state(ticking), park.runs(ticking)) == ("running", True)


def test_a_machine_that_hung_goes_on_when_the_fault_is_cleared(park: Park, ticking: str) -> None:
    control.make_fault(park.box.dir, "hang", of=ticking)
    until(lambda: not ticks(park, ticking))
    control.clear_faults(park.box.dir, "hang")
    assert until(lambda: ticks(park, ticking))


def test_a_machine_that_hangs_can_be_terminated(park: Park, ticking: str) -> None:
    control.make_fault(park.box.dir, "hang", of=ticking)
    until(lambda: not ticks(park, ticking))
    park.aws("ec2").terminate_instances(InstanceIds=[ticking])
    assert until(lambda: not park.runs(ticking))


def reached(park: Park, instance_id: str, other: str) -> bool:
    """True if the other one's kernel answers, at a port where nobody listens."""
    address = park.described(other)["PrivateIpAddress"]
    code = f"import socket; socket.create_connection(('{address}', 9), 1)"
    return "Connection refused" in park.run(instance_id, "/usr/bin/python3", "-c", code).stderr


def test_a_machine_that_is_cut_off_goes_on_and_is_reached_by_nobody(park: Park, ticking: str) -> None:
    other = park.launch(TICKS)
    park.reads(other, "/var/tick")
    before = reached(park, other, ticking)
    control.make_fault(park.box.dir, "partition", of=ticking)
    until(lambda: not reached(park, other, ticking))
    assert (before, ticks(park, ticking)) == (True, True)


def test_a_machine_that_was_cut_off_is_reached_when_the_fault_is_cleared(park: Park, ticking: str) -> None:
    other = park.launch(TICKS)
    park.reads(other, "/var/tick")
    control.make_fault(park.box.dir, "partition", of=ticking)
    until(lambda: not reached(park, other, ticking))
    control.clear_faults(park.box.dir, "partition")
    assert until(lambda: reached(park, other, ticking))


def test_user_data_of_a_slow_boot_wait(park: Park) -> None:
    control.make_fault(park.box.dir, "slow-boot", after="3s", left="1")
    instance_id = park.launch(BOOTED)
    up = park.run(instance_id, "cat", "/var/booted").stdout
    assert (up, park.reads(instance_id, "/var/booted")) == ("", "booted\n")


def test_user_data_of_a_boot_that_hangs_never_run(park: Park) -> None:
    control.make_fault(park.box.dir, "hang-boot", left="1")
    hangs, boots = park.launch(BOOTED), park.launch(BOOTED)
    park.reads(boots, "/var/booted")
    assert park.run(hangs, "cat", "/var/booted").stdout == ""


def test_a_late_machine_boots_before_ec2_shows_it(park: Park) -> None:
    control.make_fault(park.box.dir, "late", after="1h", left="1")
    instance_id = park.launch(BOOTED)
    assert park.reads(instance_id, "/var/booted") == "booted\n"


def test_an_instance_that_dies_after_its_launch_is_never_a_machine(park: Park) -> None:
    control.make_fault(park.box.dir, "dies-after-launch", after="4s", left="1")
    instance_id = park.launch(BOOTED)
    until(lambda: park.state(instance_id) == "terminated")
    assert not park.disk(instance_id).exists()


def test_a_rebooted_machine_ends_its_processes_and_boots_again_from_its_disk(park: Park, ticking: str) -> None:
    before = park.run(ticking, "stat", "-c", "%Y", "/proc/1").stdout
    park.aws("ec2").reboot_instances(InstanceIds=[ticking])
    until(lambda: park.runs(ticking) and _began(park, ticking) not in ("", before))
    assert (park.state(ticking), ticks(park, ticking), (park.disk(ticking) / "var/tick").exists()) == (
        "running",
        False,
        True,
    )


def _began(park: Park, instance_id: str) -> str:
    try:
        return park.run(instance_id, "stat", "-c", "%Y", "/proc/1").stdout
    except (MachineError, AssertionError):
        return ""


def test_a_machine_that_hung_still_hangs_after_a_restart_of_the_box(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("again") / "box"
    with running_park(directory) as park:
        instance_id = park.launch("#!/bin/sh\nmkdir -p /var/lib/cloud/scripts/per-boot\n"
                                  "printf '#!/bin/sh\\nwhile :; do date +%%s.%%N >/var/tick; sleep 0.1; done &\\n'"
                                  " >/var/lib/cloud/scripts/per-boot/tick\n"
                                  "chmod +x /var/lib/cloud/scripts/per-boot/tick\n")  # fmt: skip
        park.reads(instance_id, "/var/lib/cloud/scripts/per-boot/tick")
        control.make_fault(directory, "hang", of=instance_id)
        control.stop(directory)
        control.start(directory, machines=True)
        until(lambda: park.runs(instance_id))
        stat = until(lambda: park.run(instance_id, "sh", "-c", "cut -d' ' -f3 /proc/1/stat").stdout.strip() == "T")
        assert stat
