"""A VPC in namespaces: machines with their own addresses, names, clocks, disks and lifetimes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from agent.waiting import until
from corral.box import vpc as package
from corral.box.vpc import virtual_network
from corral.box.vpc.capabilities import Users, checks, probe_host
from corral.box.vpc.virtual_network import MachineError, Vpc, VpcProcess, create_disk, start_vpc

pytestmark = pytest.mark.box
NETWORK = IPv4Network("10.64.0.0/16")
ONE, OTHER = IPv4Address("10.64.1.11"), IPv4Address("10.64.1.12")
SLEEP = ("/bin/sh", "-c", "trap 'exit 0' TERM; echo up; sleep 600 & wait")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
# Connects to port 5 of another machine: refused says that it is there, a timeout that it is not reached.
REACH = (
    "import socket, sys; s = socket.socket(); s.settimeout(int(sys.argv[2])); sys.exit(s.connect_ex((sys.argv[1], 5)))"
)
REFUSED, TIMED_OUT = 111, 11


@pytest.fixture
def process(tmp_path: Path) -> Iterator[VpcProcess]:
    assert probe_host().users, probe_host().problem
    with tempfile.TemporaryDirectory(prefix="corral-") as sockets:
        process = start_vpc(Path(sockets), NETWORK, probe_host())
        try:
            yield process
        finally:
            process.close()


@pytest.fixture
def vpc(process: VpcProcess, tmp_path: Path) -> Vpc:
    """A VPC with two machines, whose init runs."""
    for name, address in (("one", ONE), ("other", OTHER)):
        create_disk(tmp_path / name)
        process.vpc.start(name, f"host-{name}", address, tmp_path / name, SLEEP)
    for name in ("one", "other"):
        while "up" not in (tmp_path / name / "console").read_text():
            time.sleep(0.01)
    return process.vpc


def reach(vpc: Vpc, name: str, address: IPv4Address, *, within_s: int = 10) -> int:
    return vpc.run(name, ["/usr/bin/python3", "-c", REACH, str(address), str(within_s)]).returncode


def reaches(vpc: Vpc, name: str, address: IPv4Address) -> bool:
    return reach(vpc, name, address) == REFUSED


def misses(vpc: Vpc, name: str, address: IPv4Address) -> bool:
    """Whether a machine gets no answer; one comes within a millisecond."""
    return reach(vpc, name, address, within_s=1) != REFUSED


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


def test_a_machine_sees_only_its_own_processes(vpc: Vpc) -> None:
    assert running(vpc, "one") <= {"sh", "sleep", "cat"}


def test_a_machine_cannot_write_below_usr(vpc: Vpc) -> None:
    assert "Read-only file system" in vpc.run("one", ["touch", "/usr/new"]).stderr


def test_the_hosts_secrets_are_not_on_a_disk(vpc: Vpc) -> None:
    passwords = vpc.run("one", ["cut", "-d:", "-f2", "/etc/shadow"]).stdout.split()
    keys = vpc.run("one", ["ls", "/etc/ssl/private"]).returncode
    assert (set(passwords), keys) == ({"*"}, 2)


def test_a_command_returns_its_exit_code(vpc: Vpc) -> None:
    assert vpc.run("one", ["sh", "-c", "echo out; echo err >&2; exit 7"]).returncode == 7


def test_a_command_may_write_much_to_both_outputs(vpc: Vpc) -> None:
    much = "head -c 300000 /dev/zero | tr '\\0' x"
    done = vpc.run("one", ["sh", "-c", f"{much} >&2; {much}"])
    assert (len(done.stderr), len(done.stdout)) == (300000, 300000)


def test_a_command_closes_no_descriptor_of_another_thread(vpc: Vpc, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def open_and_respond(connection: socket.socket) -> Mapping[str, Any]:
        # What another thread opens now has the numbers that the command's pipes had.
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(8))
        return respond(connection)

    respond = virtual_network._response
    monkeypatch.setattr(virtual_network, "_response", open_and_respond)
    vpc.run("one", ["true"])
    for descriptor in opened:
        os.close(descriptor)  # fails if it is closed


def test_a_set_name_resolves(vpc: Vpc) -> None:
    vpc.set_dns_names({"train-1.dev.corral.internal": ["10.64.1.12"]})
    assert vpc.run("one", ["getent", "ahostsv4", "train-1.dev.corral.internal"]).stdout.split()[0] == "10.64.1.12"


def test_a_machine_searches_its_own_domain(process: VpcProcess, tmp_path: Path) -> None:
    create_disk(tmp_path / "one")
    process.vpc.start("one", "ip-10-64-1-11.ec2.internal", ONE, tmp_path / "one", SLEEP)
    process.vpc.set_dns_names({"ip-10-64-1-12.ec2.internal": ["10.64.1.12"]})
    found = process.vpc.run("one", ["getent", "ahostsv4", "ip-10-64-1-12"]).stdout.split()[0]
    assert (process.vpc.run("one", ["hostname"]).stdout, found) == ("ip-10-64-1-11\n", "10.64.1.12")


def test_an_unknown_name_is_refused_at_once(vpc: Vpc) -> None:
    began = time.monotonic()
    assert vpc.run("one", ["getent", "hosts", "unknown.internal"]).returncode == 2
    assert time.monotonic() - began < 5  # what a resolver that is silent costs at least


def test_the_routers_link_address_does_not_change_with_the_machines(vpc: Vpc) -> None:
    """A bridge's own is that of one of its ports: machines would look for the router in vain when that one ends."""
    router = IPv4Address("10.64.0.1")
    reach(vpc, "one", router)
    known = vpc.run("one", ["ip", "neigh", "show", str(router)]).stdout.split()
    assert known[known.index("lladdr") + 1] == "02:00:00:00:00:01"


def test_a_disconnected_machine_is_unreachable_until_it_reconnects(vpc: Vpc) -> None:
    vpc.disconnect("other")
    cut = misses(vpc, "one", OTHER), misses(vpc, "other", ONE)
    vpc.reconnect("other")
    assert (*cut, reaches(vpc, "one", OTHER), reaches(vpc, "other", ONE)) == (True, True, True, True)


def test_packets_to_and_from_a_disconnected_machine_are_dropped(vpc: Vpc) -> None:
    """As on EC2. ARP failures would raise "No route to host" after three seconds, also right after a reconnection."""
    vpc.disconnect("other")
    ends = [reach(vpc, name, address, within_s=4) for name, address in (("one", OTHER), ("other", ONE))]
    assert ends == [TIMED_OUT, TIMED_OUT]


def test_a_disconnected_machine_keeps_its_carrier(vpc: Vpc) -> None:
    vpc.disconnect("other")
    assert vpc.run("other", ["cat", "/sys/class/net/eth0/carrier"]).stdout == "1\n"


def test_a_rebooted_machine_is_reachable_by_its_neighbors(vpc: Vpc, tmp_path: Path) -> None:
    """Its neighbors know its MAC address; they would look up a changed one only after most of a minute."""
    known = reaches(vpc, "one", OTHER)
    vpc.kill("other")
    while "other" in vpc.machines():
        time.sleep(0.05)
    vpc.start("other", "host-other", OTHER, tmp_path / "other", SLEEP)
    assert (known, reaches(vpc, "one", OTHER)) == (True, True)


def test_the_end_of_a_machine_is_reported(vpc: Vpc) -> None:
    ends = vpc.watch_exits()
    vpc.run("other", ["kill", "1"])
    assert next(ends) == "other"


def test_a_killed_machine_ends_with_all_its_processes(vpc: Vpc) -> None:
    vpc.kill("other")
    while "other" in vpc.machines():
        time.sleep(0.05)
    assert (vpc.machines(), misses(vpc, "one", OTHER)) == ({"one": ONE}, True)


def test_a_disk_outlives_its_machine(vpc: Vpc, tmp_path: Path) -> None:
    vpc.run("other", ["sh", "-c", "echo kept >/var/lib/kept"])
    vpc.kill("other")
    while "other" in vpc.machines():
        time.sleep(0.05)
    vpc.start("other", "host-other", OTHER, tmp_path / "other", SLEEP)
    assert vpc.run("other", ["cat", "/var/lib/kept"]).stdout == "kept\n"


def test_a_volume_can_be_attached_to_a_running_machine(vpc: Vpc, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume/data").write_text("here\n")
    vpc.attach_volume("one", "vol-1", tmp_path / "volume")
    assert vpc.run("one", ["cat", "/box/volumes/vol-1/data"]).stdout == "here\n"


def test_a_volume_attached_twice_is_mounted_once(vpc: Vpc, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    for _ in range(2):
        vpc.attach_volume("one", "vol-1", tmp_path / "volume")
    assert vpc.run("one", ["grep", "-c", "/box/volumes/.vol-1 ", "/proc/self/mountinfo"]).stdout == "1\n"


def test_a_failed_attachment_leaves_no_name_in_the_machine(vpc: Vpc, tmp_path: Path) -> None:
    """Who waits for the name would write into a directory that the mount then hides."""
    with pytest.raises(MachineError):
        vpc.attach_volume("one", "vol-1", tmp_path / "missing")
    assert vpc.run("one", ["ls", "/box/volumes"]).stdout == ""


def test_an_attached_volume_survives_a_reboot(vpc: Vpc, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    vpc.attach_volume("one", "vol-1", tmp_path / "volume")
    vpc.kill("one")
    while "one" in vpc.machines():
        time.sleep(0.05)
    vpc.start("one", "host-one", ONE, tmp_path / "one", SLEEP)
    vpc.run("one", ["touch", "/box/volumes/vol-1/data"])
    assert (tmp_path / "volume/data").exists()


def test_a_volume_can_be_detached_while_in_use(vpc: Vpc, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    vpc.attach_volume("one", "vol-1", tmp_path / "volume")
    vpc.run("one", ["sh", "-c", "cd /box/volumes/vol-1 && sleep 600 >/dev/null 2>&1 &"])
    vpc.detach_volume("one", "vol-1")
    assert vpc.run("one", ["ls", "/box/volumes"]).stdout == ""


def test_many_names_can_be_set_at_once(vpc: Vpc) -> None:
    vpc.set_dns_names(
        {f"train-{number}.a-long-name-of-a-cluster.corral.internal": ["10.64.1.12"] for number in range(5000)}
    )
    name = "train-4999.a-long-name-of-a-cluster.corral.internal"
    assert vpc.run("one", ["getent", "ahostsv4", name]).stdout.split()[0] == "10.64.1.12"


def test_a_removed_name_is_unknown(vpc: Vpc) -> None:
    for names in ({"one.internal": ["10.64.1.11"], "other.internal": ["10.64.1.12"]}, {"one.internal": ["10.64.1.11"]}):
        vpc.set_dns_names(names)
    parameters = [vpc.run("one", ["getent", "hosts", name]).returncode for name in ("one.internal", "other.internal")]
    assert parameters == [0, 2]


def test_a_command_ends_with_its_caller(vpc: Vpc) -> None:
    program = "import sys; from pathlib import Path; from corral.box.vpc.virtual_network import Vpc\n"
    program += "Vpc(directory=Path(sys.argv[1])).attach('one', ['tail', '-f', '/dev/null'])"
    with subprocess.Popen([sys.executable, "-c", program, str(vpc.directory)]) as caller:
        while "tail" not in running(vpc, "one"):
            time.sleep(0.05)
        caller.kill()
    while "tail" in running(vpc, "one"):
        time.sleep(0.05)
    assert "sleep" in running(vpc, "one")


def test_a_machine_whose_commands_lost_their_callers_ends_all_the_same(vpc: Vpc) -> None:
    """A process that nobody waits for keeps its namespace, and so the machine."""
    program = "import sys; from pathlib import Path; from corral.box.vpc.virtual_network import Vpc\n"
    program += "Vpc(directory=Path(sys.argv[1])).attach('other', ['sh', '-c', 'tail -f /dev/null; true'])"
    for _ in range(8):
        with subprocess.Popen([sys.executable, "-c", program, str(vpc.directory)]) as caller:
            until(lambda: "tail" in running(vpc, "other"))
            caller.kill()
        until(lambda: "tail" not in running(vpc, "other"))
    vpc.kill("other")
    until(lambda: "other" not in vpc.machines())


def test_a_thawed_machine_responds_again(vpc: Vpc) -> None:
    vpc.freeze("other")
    states = vpc.run("one", ["true"]).returncode, reaches(vpc, "one", OTHER)  # its kernel still refuses
    vpc.thaw("other")
    assert (*states, vpc.run("other", ["true"]).returncode) == (0, True, 0)


def test_a_second_machine_of_the_same_name_is_refused(vpc: Vpc, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="machine 'one' already runs"):
        vpc.start("one", "host-one", ONE, tmp_path / "one", SLEEP)


def test_a_machine_that_does_not_start_raises_an_error(vpc: Vpc, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="its first process ended with"):
        vpc.start("third", "host-third", IPv4Address("10.64.1.13"), tmp_path, SLEEP)


def test_two_vpcs_with_the_same_addresses_do_not_meet(vpc: Vpc, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="corral-") as sockets:
        second = start_vpc(Path(sockets), NETWORK, probe_host())
        try:
            create_disk(tmp_path / "twin")
            second.vpc.start("twin", "host-twin", OTHER, tmp_path / "twin", SLEEP)
            names = vpc.run("other", ["hostname"]).stdout, second.vpc.run("twin", ["hostname"]).stdout
        finally:
            second.close()
    assert names == ("host-other\n", "host-twin\n")


def test_all_machines_end_with_their_vpc(process: VpcProcess, vpc: Vpc) -> None:
    inside = vpc.run("one", ["readlink", "/proc/self/ns/pid"]).stdout.strip()
    process.close()
    assert inside not in {_namespace(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


def test_an_ordinary_user_can_have_one_too(tmp_path: Path) -> None:
    """From a copy of the package, since such a user may not reach this checkout."""
    program = (
        "import sys; from ipaddress import *; from pathlib import Path; from corral.box.vpc.virtual_network import *\n"
        "from corral.box.vpc.capabilities import probe_host\n"
        "directory = Path(sys.argv[1]); create_disk(directory / 'd')\n"
        "process = start_vpc(directory / 's', IPv4Network('10.64.0.0/16'), probe_host())\n"
        "process.vpc.start('m', 'host-m', IPv4Address('10.64.1.11'), directory / 'd', ['/bin/sh', '-c', 'sleep 600'])\n"
        "print(probe_host().users, process.vpc.run('m', ['hostname']).stdout); process.close()"
    )
    with tempfile.TemporaryDirectory(prefix="corral-") as name:
        target = Path(name) / "corral/box/vpc"
        shutil.copytree(Path(package.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__"))
        for directory in (target.parent, target.parent.parent):
            (directory / "__init__.py").touch()
        shutil.copytree(Path(__import__("dnslib").__file__).parent, Path(name) / "dnslib")
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        directory = Path(name) / "directory"
        directory.mkdir(mode=0o777)
        directory.chmod(0o777)
        command = [*AS_NOBODY, "/usr/bin/python3", "-c", program, str(directory)]
        done = subprocess.run(command, env={"PYTHONPATH": name}, capture_output=True, text=True, timeout=60)
        subprocess.run([*AS_NOBODY, "chmod", "-R", "u+rwX", str(directory)], check=False)
    assert (done.stderr, done.stdout.split()) == ("", [Users.ONE.value, "host-m"])


def _namespace(entry: Path) -> str:
    try:
        return str((entry / "ns/pid").readlink())
    except OSError:  # it has ended meanwhile
        return ""


def test_a_host_without_user_namespaces_has_no_machines_for_root() -> None:
    extra = set(checks(Users.ROOT, is_initial=True)) - set(checks(Users.ROOT, is_initial=False))
    assert [command for command, _ in extra] == [("--user", "true")]


def uid_of(vpc: Vpc, name: str) -> str:
    return vpc.run(name, ["cat", "/proc/self/uid_map"]).stdout.split()[1]


def test_root_of_a_machine_is_not_root_of_the_host(vpc: Vpc) -> None:
    assert uid_of(vpc, "one") == ("1879048192" if os.geteuid() == 0 else str(os.geteuid()))


@pytest.mark.parametrize(
    ("attack", "refused"),
    [
        ("echo '|/box/x' >/proc/sys/kernel/core_pattern", "Permission denied"),
        ("mknod /tmp/disk b 8 0", "Operation not permitted"),
        ("mkdir -p /tmp/d && mount -t debugfs debugfs /tmp/d", "ermission denied"),
        ("touch /usr/bin/x", "Read-only file system"),
        ("mount -o remount,bind,rw /usr && touch /usr/bin/x", "ermission denied"),
        ("date --set=2001-01-01", "Operation not permitted"),
    ],
    ids=lambda text: text.partition(" ")[0],
)
def test_root_of_a_machine_cannot(vpc: Vpc, attack: str, refused: str) -> None:
    done = vpc.run("one", ["/bin/sh", "-c", attack])
    assert (done.returncode != 0, refused in done.stderr) == (True, True), done.stderr


def test_root_of_a_machine_gives_its_files_to_other_users(vpc: Vpc, tmp_path: Path) -> None:
    done = vpc.run("one", ["/bin/sh", "-c", "touch /tmp/f && chown 12:34 /tmp/f && stat -c %u:%g /tmp/f"])
    assert (done.stdout, done.stderr) == ("12:34\n", "") if probe_host().users is not Users.ONE else ("", done.stderr)


GREETS = (
    "import socket, sys\n"
    "for caller, peer in iter(socket.create_server(('', 22)).accept, None):\n"
    "    caller.sendall(f'{sys.argv[1]} {peer[0]}'.encode()); caller.close()\n"
)
FRONT = IPv4Address("10.64.224.5")
LISTENER, TARGETS = f"{FRONT}:22", (f"{ONE}:22", f"{OTHER}:22")


def greeting(vpc: Vpc) -> str:
    """What a server behind the load balancer says: its name, and whom it sees."""
    with vpc.connect(FRONT, 22) as connection:
        return connection.makefile().read()


@pytest.fixture
def balanced(vpc: Vpc) -> Vpc:
    """Two machines with a server each, and a load balancer before them."""
    for name in ("one", "other"):
        start = 'python3 -c "$0" "$1" </dev/null >/dev/null 2>&1 &'
        vpc.run(name, ["sh", "-c", start, GREETS, name])
    vpc.set_listeners({LISTENER: TARGETS[1:]})
    until(lambda: greeting(vpc) == f"other {FRONT}")
    vpc.set_listeners({LISTENER: TARGETS})
    until(lambda: greeting(vpc) == f"one {FRONT}")
    return vpc


def test_a_load_balancer_passes_connections_on_from_its_own_address(balanced: Vpc) -> None:
    assert greeting(balanced) == f"one {FRONT}"


def test_a_load_balancer_skips_a_target_that_does_not_answer(balanced: Vpc) -> None:
    balanced.kill("one")
    until(lambda: "one" not in balanced.machines())
    assert greeting(balanced) == f"other {FRONT}"


def test_a_load_balancer_follows_its_targets(balanced: Vpc) -> None:
    balanced.set_listeners({LISTENER: TARGETS[1:]})
    assert greeting(balanced) == f"other {FRONT}"


def test_a_deleted_load_balancer_accepts_nothing(balanced: Vpc) -> None:
    balanced.set_listeners({})
    with pytest.raises(MachineError):
        balanced.connect(FRONT, 22)
