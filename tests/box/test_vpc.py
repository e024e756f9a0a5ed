"""A VPC in namespaces: machines with addresses, names, clocks, disks and ends of their own, on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from corral.box import vpc as package
from corral.box.vpc.network import Keeper, MachineError, Vpc, furnish, open_vpc
from corral.box.vpc.probe import Users, probe

pytestmark = pytest.mark.box
NETWORK = IPv4Network("10.64.0.0/16")
ONE, OTHER = IPv4Address("10.64.1.11"), IPv4Address("10.64.1.12")
SLEEP = ("/bin/sh", "-c", "echo up; trap 'exit 0' TERM; sleep 600 & wait")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
# Connects to port 5 of another machine: refused says that it is there, a timeout that it is not reached.
REACH = "import socket, sys; s = socket.socket(); s.settimeout(1); sys.exit(s.connect_ex((sys.argv[1], 5)))"
REFUSED = 111


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    assert probe().users, probe().problem
    with tempfile.TemporaryDirectory(prefix="corral-") as sockets:
        keeper = open_vpc(Path(sockets), NETWORK, probe())
        try:
            yield keeper
        finally:
            keeper.close()


@pytest.fixture
def vpc(keeper: Keeper, tmp_path: Path) -> Vpc:
    """A VPC with two machines."""
    for name, address in (("one", ONE), ("other", OTHER)):
        furnish(tmp_path / name)
        keeper.vpc.start(name, f"host-{name}", address, tmp_path / name, SLEEP)
    return keeper.vpc


def reaches(vpc: Vpc, name: str, address: IPv4Address) -> bool:
    return vpc.run(name, ["/usr/bin/python3", "-c", REACH, str(address)]).returncode == REFUSED


def test_a_machine_has_its_own_name_and_address(vpc: Vpc) -> None:
    found = vpc.run("one", ["sh", "-c", "hostname; ip -4 -o address show eth0"]).stdout.split()
    assert (found[0], found[4]) == ("host-one", "10.64.1.11/16")


def test_machines_reach_each_other(vpc: Vpc) -> None:
    assert reaches(vpc, "one", OTHER)


def test_nothing_outside_the_vpc_is_reached(vpc: Vpc) -> None:
    links = vpc.run("one", ["ip", "-o", "link"]).stdout.splitlines()
    assert [line.split(":")[1].split("@")[0].strip() for line in links] == ["lo", "eth0"]


def test_a_machine_booted_when_it_was_started(vpc: Vpc) -> None:
    assert float(vpc.run("one", ["cat", "/proc/uptime"]).stdout.split()[0]) < 60


def running(vpc: Vpc, name: str) -> set[str]:
    """The programs that run on a machine. Those that have ended and that its init did not hear of yet do not count."""
    lines = vpc.run(name, ["sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null"]).stdout.splitlines()
    return {command.strip("()") for _, command, state, *_ in map(str.split, lines) if state != "Z"}


def test_a_machine_sees_its_own_processes_alone(vpc: Vpc) -> None:
    assert running(vpc, "one") <= {"sh", "sleep", "cat"}


def test_a_machine_cannot_write_below_usr(vpc: Vpc) -> None:
    assert "Read-only file system" in vpc.run("one", ["touch", "/usr/new"]).stderr


def test_the_secrets_of_this_system_are_on_no_disk(vpc: Vpc) -> None:
    passwords = vpc.run("one", ["cut", "-d:", "-f2", "/etc/shadow"]).stdout.split()
    keys = vpc.run("one", ["ls", "/etc/ssl/private"]).returncode
    assert (set(passwords), keys) == ({"*"}, 2)


def test_the_exit_code_of_a_command_is_the_callers(vpc: Vpc) -> None:
    assert vpc.run("one", ["sh", "-c", "echo out; echo err >&2; exit 7"]).returncode == 7


def test_a_name_that_was_told_is_resolved(vpc: Vpc) -> None:
    vpc.tell_names({"train-1.dev.corral.internal": ["10.64.1.12"]})
    assert vpc.run("one", ["getent", "ahostsv4", "train-1.dev.corral.internal"]).stdout.split()[0] == "10.64.1.12"


def test_a_machine_looks_names_up_in_its_own_domain(keeper: Keeper, tmp_path: Path) -> None:
    furnish(tmp_path / "one")
    keeper.vpc.start("one", "ip-10-64-1-11.ec2.internal", ONE, tmp_path / "one", SLEEP)
    keeper.vpc.tell_names({"ip-10-64-1-12.ec2.internal": ["10.64.1.12"]})
    found = keeper.vpc.run("one", ["getent", "ahostsv4", "ip-10-64-1-12"]).stdout.split()[0]
    assert (keeper.vpc.run("one", ["hostname"]).stdout, found) == ("ip-10-64-1-11\n", "10.64.1.12")


def test_an_unknown_name_is_refused_at_once(vpc: Vpc) -> None:
    began = time.monotonic()
    assert vpc.run("one", ["getent", "hosts", "unknown.internal"]).returncode == 2
    assert time.monotonic() - began < 2  # a resolver that is silent costs five seconds a question


def test_the_routers_link_address_is_the_same_whoever_comes_and_goes(vpc: Vpc) -> None:
    """A bridge's own is that of one of its ports: machines would look for the router in vain when that one ends."""
    router = IPv4Address("10.64.0.1")
    vpc.run("one", ["/usr/bin/python3", "-c", REACH, str(router)])
    known = vpc.run("one", ["ip", "neigh", "show", str(router)]).stdout.split()
    assert known[known.index("lladdr") + 1] == "02:00:00:00:00:01"


def test_a_link_that_is_pulled_cuts_a_machine_off_until_it_is_put_back(vpc: Vpc) -> None:
    vpc.link("other", up=False)
    cut = reaches(vpc, "one", OTHER)
    vpc.link("other", up=True)
    assert (cut, reaches(vpc, "one", OTHER)) == (False, True)


def test_a_machine_that_ends_is_told(vpc: Vpc) -> None:
    heard: list[str] = []
    listening = threading.Event()

    def listen() -> None:
        ends = vpc.ends()
        listening.set()
        heard.append(next(ends))

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    listening.wait()
    time.sleep(0.2)  # until the keeper has the listener
    vpc.ask_to_end("other")
    listener.join(5)
    assert heard == ["other"]


def test_a_machine_that_was_killed_is_gone_with_all_its_processes(vpc: Vpc) -> None:
    vpc.end("other")
    while "other" in vpc.machines():
        time.sleep(0.05)
    assert (vpc.machines(), reaches(vpc, "one", OTHER)) == ({"one": ONE}, False)


def test_a_disk_outlives_its_machine(vpc: Vpc, tmp_path: Path) -> None:
    vpc.run("other", ["sh", "-c", "echo kept >/var/lib/kept"])
    vpc.end("other")
    while "other" in vpc.machines():
        time.sleep(0.05)
    vpc.start("other", "host-other", OTHER, tmp_path / "other", SLEEP)
    assert vpc.run("other", ["cat", "/var/lib/kept"]).stdout == "kept\n"


def test_a_directory_can_be_plugged_into_a_running_machine(vpc: Vpc, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume/data").write_text("here\n")
    vpc.plug("one", "vol-1", tmp_path / "volume")
    assert vpc.run("one", ["cat", "/box/volumes/vol-1/data"]).stdout == "here\n"


def test_a_directory_that_is_plugged_in_twice_is_there_once(vpc: Vpc, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    for _ in range(2):
        vpc.plug("one", "vol-1", tmp_path / "volume")
    assert vpc.run("one", ["grep", "-c", "/box/volumes/.vol-1 ", "/proc/self/mountinfo"]).stdout == "1\n"


def test_what_cannot_be_plugged_in_has_no_name_in_the_machine(vpc: Vpc, tmp_path: Path) -> None:
    """Who waits for the name would write into a place that the mount then hides."""
    with pytest.raises(MachineError):
        vpc.plug("one", "vol-1", tmp_path / "missing")
    assert vpc.run("one", ["ls", "/box/volumes"]).stdout == ""


def test_what_is_plugged_in_is_there_after_a_reboot(vpc: Vpc, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    vpc.plug("one", "vol-1", tmp_path / "volume")
    vpc.end("one")
    while "one" in vpc.machines():
        time.sleep(0.05)
    vpc.start("one", "host-one", ONE, tmp_path / "one", SLEEP)
    vpc.run("one", ["touch", "/box/volumes/vol-1/data"])
    assert (tmp_path / "volume/data").exists()


def test_a_directory_that_is_unplugged_vanishes_while_it_is_used(vpc: Vpc, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    vpc.plug("one", "vol-1", tmp_path / "volume")
    vpc.run("one", ["sh", "-c", "cd /box/volumes/vol-1 && sleep 600 >/dev/null 2>&1 &"])
    vpc.unplug("one", "vol-1")
    assert vpc.run("one", ["ls", "/box/volumes"]).stdout == ""


def test_many_names_can_be_told_at_once(vpc: Vpc) -> None:
    vpc.tell_names(
        {f"train-{number}.a-long-name-of-a-cluster.corral.internal": ["10.64.1.12"] for number in range(5000)}
    )
    name = "train-4999.a-long-name-of-a-cluster.corral.internal"
    assert vpc.run("one", ["getent", "ahostsv4", name]).stdout.split()[0] == "10.64.1.12"


def test_a_name_that_is_told_no_more_is_unknown(vpc: Vpc) -> None:
    for names in ({"one.internal": ["10.64.1.11"], "other.internal": ["10.64.1.12"]}, {"one.internal": ["10.64.1.11"]}):
        vpc.tell_names(names)
    asked = [vpc.run("one", ["getent", "hosts", name]).returncode for name in ("one.internal", "other.internal")]
    assert asked == [0, 2]


def test_a_command_ends_with_whoever_asked_for_it(vpc: Vpc) -> None:
    program = "import sys; from pathlib import Path; from corral.box.vpc.network import Vpc\n"
    program += "Vpc(directory=Path(sys.argv[1])).attach('one', ['tail', '-f', '/dev/null'])"
    with subprocess.Popen([sys.executable, "-c", program, str(vpc.directory)]) as caller:
        while "tail" not in running(vpc, "one"):
            time.sleep(0.05)
        caller.kill()
    while "tail" in running(vpc, "one"):
        time.sleep(0.05)
    assert "sleep" in running(vpc, "one")


def test_a_frozen_machine_answers_again_when_it_is_thawed(vpc: Vpc) -> None:
    vpc.freeze("other")
    states = vpc.run("one", ["true"]).returncode, reaches(vpc, "one", OTHER)  # its kernel still refuses
    vpc.thaw("other")
    assert (*states, vpc.run("other", ["true"]).returncode) == (0, True, 0)


def test_a_second_machine_of_the_same_name_is_refused(vpc: Vpc, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="machine 'one' runs already"):
        vpc.start("one", "host-one", ONE, tmp_path / "one", SLEEP)


def test_what_becomes_no_machine_says_so(vpc: Vpc, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="its first process ended with"):
        vpc.start("third", "host-third", IPv4Address("10.64.1.13"), tmp_path, SLEEP)


def test_two_vpcs_with_the_same_addresses_do_not_meet(vpc: Vpc, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="corral-") as sockets:
        second = open_vpc(Path(sockets), NETWORK, probe())
        try:
            furnish(tmp_path / "twin")
            second.vpc.start("twin", "host-twin", OTHER, tmp_path / "twin", SLEEP)
            names = vpc.run("other", ["hostname"]).stdout, second.vpc.run("twin", ["hostname"]).stdout
        finally:
            second.close()
    assert names == ("host-other\n", "host-twin\n")


def test_all_machines_end_with_their_vpc(keeper: Keeper, vpc: Vpc) -> None:
    inside = vpc.run("one", ["readlink", "/proc/self/ns/pid"]).stdout.strip()
    keeper.close()
    assert inside not in {_namespace(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


def test_an_ordinary_user_can_have_one_too(tmp_path: Path) -> None:
    """From a copy of the package, since such a user may not reach this checkout."""
    program = (
        "import sys; from ipaddress import *; from pathlib import Path; from corral.box.vpc.network import *\n"
        "from corral.box.vpc.probe import probe; place = Path(sys.argv[1]); furnish(place / 'd')\n"
        "keeper = open_vpc(place / 's', IPv4Network('10.64.0.0/16'), probe())\n"
        "keeper.vpc.start('m', 'host-m', IPv4Address('10.64.1.11'), place / 'd', ['/bin/sh', '-c', 'sleep 600'])\n"
        "print(probe().users, keeper.vpc.run('m', ['hostname']).stdout); keeper.close()"
    )
    with tempfile.TemporaryDirectory(prefix="corral-") as name:
        target = Path(name) / "corral/box/vpc"
        shutil.copytree(Path(package.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__"))
        for directory in (target.parent, target.parent.parent):
            (directory / "__init__.py").touch()
        shutil.copytree(Path(__import__("dnslib").__file__).parent, Path(name) / "dnslib")
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        place = Path(name) / "place"
        place.mkdir(mode=0o777)
        place.chmod(0o777)
        command = [*AS_NOBODY, "/usr/bin/python3", "-c", program, str(place)]
        done = subprocess.run(command, env={"PYTHONPATH": name}, capture_output=True, text=True, timeout=60)
        subprocess.run([*AS_NOBODY, "chmod", "-R", "u+rwX", str(place)], check=False)
    assert (done.stderr, done.stdout.split()) == ("", [Users.ONE.value, "host-m"])


def _namespace(entry: Path) -> str:
    try:
        return str((entry / "ns/pid").readlink())
    except OSError:  # it has ended meanwhile
        return ""
