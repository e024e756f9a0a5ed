"""What is broken on a living cluster, and what the cluster does then. Each fault cleans up after itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from tools.vm_life.cluster import VirtualCluster, expect

_NODE_UNITS = ("munge", "slurmd", "corral-credentials", "corral-watch")
_HEAD_UNITS = ("munge", "mariadb", "slurmdbd", "slurmctld", "corral-agent")
_AGAIN_S = 120.0  # RestartSec is 5 s; on emulated cores a daemon needs half a minute to start
_AWAY_S = 60.0
_OWN_CONF = "/etc/slurm/own.conf"
_PATIENT = "ResumeTimeout=5400"  # eight boots on emulated cores; Slurm replaces a node that has not booted by then
_WRITER = "i=0; while [ $i -lt 60 ]; do i=$((i + 1)); echo $i >>~/lines || exit 1; sleep 1; done"
# By ssh, so that no limit of a job holds it.
_HOG = """python3 -c 'held = []
while True: held.append(b"x" * (64 << 20))'"""
_OVER, _TO_COME = 3, 4  # exit codes; ssh has 255
# A boot in order, and how root sees on the machine that it has come so far.
_HEAD_STEPS = (
    ("cloud-init runs", "test -e /run/cloud-init/instance-data.json"),
    ("the agent is there", "test -e /opt/corral/agent/corral/agent/entry_point.py"),
    # By the name of the program: `pgrep -f` finds the shell that runs all these tests.
    ("apt fetches its lists", "ps -C apt-get -o args= | grep -qw update"),
    ("dpkg unpacks", "ps -C dpkg -o args= | grep -q -- --unpack"),
    ("dpkg configures", "ps -C dpkg -o args= | grep -q -- --configure"),
    ("the state volume is mounted", "mountpoint -q /var/lib/corral"),
    ("MariaDB runs", "systemctl is-active mariadb"),
    ("slurmctld runs", "systemctl is-active slurmctld"),
)
_NODE_STEPS = (
    *_HEAD_STEPS[:5],
    ("/home is mounted", "mountpoint -q /home"),
    ("munge runs", "systemctl is-active munge"),
    ("slurmd starts", "pgrep -x slurmd"),
)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault. `title`: what breaks; `expected`: what the cluster should do.

    `act` breaks it and returns what the cluster did; it raises Failed if the cluster does something else.
    """

    name: str
    title: str
    expected: str
    act: Callable[[VirtualCluster], str]


def two_nodes(cluster: VirtualCluster) -> None:
    """Wait until both nodes run and are free."""
    cluster.await_slurmctld()
    cluster.wait_until(
        lambda: cluster.on_head("srun", "-wcpu-[1-2]", "--immediate=600", "true").returncode == 0, "both nodes run"
    )


def _units_of_node(cluster: VirtualCluster) -> str:
    seconds = _kill_each(cluster, cluster.instance("cpu-1"), _NODE_UNITS)
    cluster.head("srun", "-wcpu-1", "true")
    return seconds


def _units_of_head(cluster: VirtualCluster) -> str:
    job = cluster.submit("sleep 120", "-n1")
    cluster.runs_on(job)
    seconds = _kill_each(cluster, cluster.instance("head"), _HEAD_UNITS)
    cluster.await_slurmctld()
    ended = cluster.job_end(job)
    expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0"), f"the running job goes on: {ended}")
    cluster.wait_until(
        lambda: f"{job}|COMPLETED" in cluster.on_head("sacct", "-nXP", "-ojobid,state").stdout, "sacct knows"
    )
    return seconds


def _kill_each(cluster: VirtualCluster, machine: str, units: Sequence[str]) -> str:
    """Kill each unit's processes; wait until it runs again; the seconds of each."""
    return ", ".join(f"{unit} {_kill(cluster, machine, unit):.0f} s" for unit in units)


def _kill(cluster: VirtualCluster, machine: str, unit: str) -> float:
    """Kill a unit's processes; the seconds until it runs again."""
    before = _main_pid(cluster, machine, unit)
    expect(before not in ("", "0"), f"{unit} runs")
    cluster.root_output(machine, "systemctl", "kill", "--signal=KILL", unit)
    began = monotonic()
    cluster.wait_until(lambda: _runs_again(cluster, machine, unit, before), f"{unit} runs again")
    expect(monotonic() - began < _AGAIN_S, f"{unit} runs again within {_AGAIN_S} s")
    return monotonic() - began


def _main_pid(cluster: VirtualCluster, machine: str, unit: str) -> str:
    return cluster.as_root(machine, "systemctl", "show", "--property=MainPID", "--value", unit).stdout.strip()


def _runs_again(cluster: VirtualCluster, machine: str, unit: str, before: str) -> bool:
    active = cluster.as_root(machine, "systemctl", "is-active", unit).stdout.strip() == "active"
    return active and _main_pid(cluster, machine, unit) not in ("0", before)


def _full_disk_of_node(cluster: VirtualCluster) -> str:
    node = cluster.instance("cpu-1")
    running = cluster.submit("sleep 60", "-n1", "-wcpu-1")
    cluster.runs_on(running)
    _fill(cluster, node)
    waits = cluster.submit("true", "-n1", "-wcpu-1")
    ended = cluster.job_end(running)
    expect(ended["JobState"] == "COMPLETED", f"the running job goes on: {ended}")
    cluster.wait_until(lambda: cluster.instances("cpu-1") not in ([], [node]), "another machine takes its place")
    done = cluster.job_end(waits)
    expect(done["JobState"] == "COMPLETED", f"the job that waits runs on the next machine: {done}")
    return f"running job COMPLETED; the next one {done['JobState']} on another machine"


def _full_disk_of_head(cluster: VirtualCluster) -> str:
    head = cluster.instance("head")
    _fill(cluster, head)
    state = _job_on(cluster, "cpu-1")
    cluster.root_output(head, "rm", "-f", "/var/full")
    expect(state == "COMPLETED", f"a job that begins on a full disk ends: {state}")
    cluster.await_slurmctld()
    return "a job that began then COMPLETED"


def _fill(cluster: VirtualCluster, machine: str) -> None:
    cluster.as_root(
        machine,
        "sh",
        "-c",
        # Also root's reserve. To write gigabytes would take many minutes, and fill the disk of this machine as well.
        "fallocate -l $(($(stat -f -c '%f * %S' /) - (16 << 20))) /var/full;"
        " dd if=/dev/zero bs=64k >>/var/full 2>/dev/null; dd if=/dev/zero bs=1 >>/var/full 2>/dev/null",
    )
    free = cluster.root_output(machine, "sh", "-c", "df --output=avail / | tail -1").strip()
    expect(int(free) < 64, f"the root disk is full: {free} KiB free")


def _job_on(cluster: VirtualCluster, node: str) -> str:
    """The state in which a short job on the node ends, or waits after a minute."""
    job = cluster.submit("true", "-n1", f"-w{node}", "-o/dev/null")
    until = monotonic() + _AWAY_S
    while monotonic() < until and cluster.job(job).get("JobState") in (
        None,
        "PENDING",
        "RUNNING",
        "CONFIGURING",
        "COMPLETING",
    ):
        sleep(2)
    fields = cluster.job(job)
    if fields["JobState"] in ("PENDING", "RUNNING"):
        cluster.on_head("scancel", job)
    return fields["JobState"] if fields["JobState"] != "PENDING" else f"PENDING ({fields['Reason']})"


def _clock_of_node(cluster: VirtualCluster) -> str:
    node = cluster.instance("cpu-1")
    running = cluster.submit("sleep 90", "-n1", "-wcpu-1")
    cluster.runs_on(running)
    cluster.root_output(node, "sh", "-c", "systemctl stop systemd-timesyncd; date -s '+10 minutes'")
    state = _job_on(cluster, "cpu-1")
    cluster.root_output(node, "sh", "-c", "date -s '-10 minutes'; systemctl start systemd-timesyncd")
    ended = cluster.job_end(running)
    expect(ended["JobState"] == "COMPLETED", f"the running job goes on: {ended}")
    cluster.wait_until(lambda: _job_on(cluster, "cpu-1") == "COMPLETED", "cpu-1 takes jobs again")
    return f"running job COMPLETED; a job that began then: {state}; taken again once the clock was right"


def _memory_of_node(cluster: VirtualCluster) -> str:
    node = cluster.instance("cpu-1")
    running = cluster.submit("sleep 90", "-n1", "-wcpu-1", "--mem=200M")
    cluster.runs_on(running)
    daemons = {unit: _main_pid(cluster, node, unit) for unit in _NODE_UNITS}
    code = cluster.on_head("ssh", "-oBatchMode=yes", "cpu-1", _HOG).returncode
    expect(code in (137, 255), f"the kernel kills the process or its session: {code}")
    after = {unit: _main_pid(cluster, node, unit) for unit in _NODE_UNITS}
    ended = cluster.job_end(running)
    expect(after == daemons, f"no daemon is killed: {daemons}, then {after}")
    expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0"), f"the running job goes on: {ended}")
    next_job = _job_on(cluster, "cpu-1")
    expect(next_job == "COMPLETED", f"the node takes jobs: {next_job}")
    return f"ssh ended with {code}; the daemons and the running job went on; the next one COMPLETED"


def _home_away(cluster: VirtualCluster) -> str:
    job = cluster.submit(_WRITER, "-n1")
    cluster.runs_on(job)
    sleep(10)
    with _stopped_nfs(cluster):
        sleep(_AWAY_S)
    ended = cluster.job_end(job)
    lines = cluster.head("cat", "/home/admin/lines").split()
    cluster.head("rm", "/home/admin/lines")
    expect(ended["JobState"] == "COMPLETED", f"the job that writes there ends: {ended}")
    expect(lines == [str(number) for number in range(1, 61)], f"each line is there once: {lines}")
    return f"the job waited and COMPLETED after {ended['RunTime']}; its 60 lines are there"


def _reboot_without_home(cluster: VirtualCluster) -> str:
    node = cluster.instance("cpu-1")
    with _stopped_nfs(cluster):
        cluster.as_root(node, "systemctl", "reboot", "--force")
        sleep(240)
    cluster.wait_until(lambda: _job_on(cluster, "cpu-1") == "COMPLETED", "cpu-1 takes jobs again")
    kind = cluster.head("srun", "-wcpu-1", "stat", "--file-system", "--format=%T", "/home")
    expect(kind == "nfs", f"a job sees /home by NFS: {kind}")
    return f"jobs on {'the same' if cluster.instance('cpu-1') == node else 'another'} machine see /home by NFS"


@contextmanager
def _stopped_nfs(cluster: VirtualCluster) -> Iterator[None]:
    """The box's server of NFS stands still."""
    servers = [int(path.name) for path in Path("/proc").glob("[0-9]*") if _is_server(path, cluster.box)]
    expect(bool(servers), "a server of NFS runs")
    for server in servers:
        os.kill(server, signal.SIGSTOP)
    try:
        yield
    finally:
        for server in servers:
            os.kill(server, signal.SIGCONT)


def _is_server(process: Path, box: Path) -> bool:
    try:
        command = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(b"ganesha.nfsd" in word for word in command) and any(str(box).encode() in word for word in command)


def _updates(cluster: VirtualCluster) -> str:
    found = []
    for name in ("head", "cpu-1"):
        machine = cluster.instance(name)
        units = ("apt-daily.timer", "apt-daily-upgrade.timer")
        states = cluster.as_root(machine, "systemctl", "is-enabled", *units).stdout.split()
        expect(states == ["masked", "masked"], f"the timers on {name} are masked: {states}")
        held = set(cluster.root_output(machine, "apt-mark", "showhold").split())
        expect("munge" in held, f"{name} holds its packages: {held}")
        plan = cluster.root_output(machine, "apt-get", "--simulate", "dist-upgrade")
        touched = [line for line in plan.splitlines() if line.startswith("Inst ") and line.split()[1] in held]
        expect(not touched, f"an upgrade by hand leaves the held packages: {touched}")
        found.append(f"{name} holds {len(held)} packages")
    return "timers masked; " + ", ".join(found)


def _old_configuration(cluster: VirtualCluster) -> str:
    text = cluster.cluster_file.read_text(encoding="utf-8")
    newer = text.replace("max: 4", "max: 5") if "max: 4" in text else text.replace("max: 5", "max: 4")
    cluster.cluster_file.write_text(newer, encoding="utf-8")
    with_cut = cluster.instance("cpu-2")
    cluster.corral("box", "fault", "network-cut", "cpu-2")
    cluster.corral("up", "vm", "--box", "--yes")
    cluster.corral("box", "fault", "clear", "network-cut")
    cluster.as_root(with_cut, "systemctl", "reboot")
    sleep(30)
    cluster.wait_until(lambda: _job_on(cluster, "cpu-2") == "COMPLETED", "cpu-2 takes jobs again")
    return f"{'the same' if cluster.instance('cpu-2') == with_cut else 'another'} machine takes jobs again"


def _mirror(cluster: VirtualCluster) -> str:
    cluster.corral("box", "fault", "mirror-error", "--target", "cpu-4", "--count", "1")
    job = cluster.submit("true", "-n2", "-N2", "-wcpu-[3-4]", "-o/dev/null")
    cluster.wait_until(lambda: len(cluster.instances("cpu-4")) == 1, "cpu-4 is launched")
    first = cluster.instance("cpu-4")
    ended = cluster.job_end(job)
    expect(ended["JobState"] == "COMPLETED", f"the job ends: {ended}")
    expect(cluster.instances("cpu-4") != [first], "another machine is cpu-4")
    return f"{first} ended; the job COMPLETED with another machine as cpu-4"


def _cuts_of_head(cluster: VirtualCluster) -> str:
    job = cluster.submit("sleep 30", "-n1")
    cluster.runs_on(job)
    cluster.corral("box", "fault", "kill-head", "vm")
    cluster.corral("up", "vm", "--box", "--yes")
    cut = _cut_at_each(cluster, "head", _HEAD_STEPS)
    cluster.await_slurmctld()
    ended = cluster.job_end(job)
    expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0"), f"the job goes on: {ended}")
    return cut


def _cuts_of_node(cluster: VirtualCluster) -> str:
    patient = f"grep -q {_PATIENT} {_OWN_CONF} || echo {_PATIENT} >>{_OWN_CONF}; scontrol reconfigure"
    cluster.root_output(cluster.instance("head"), "sh", "-c", patient)
    job = cluster.submit("true", "-n1", "-wcpu-3", "-o/dev/null")
    cluster.wait_until(lambda: len(cluster.instances("cpu-3")) == 1, "cpu-3 is launched")
    first = cluster.instance("cpu-3")
    cut = _cut_at_each(cluster, "cpu-3", _NODE_STEPS)
    ended = cluster.job_end(job)
    expect(ended["JobState"] == "COMPLETED", f"the job that waits for the node ends: {ended}")
    same = "the same machine" if cluster.instance("cpu-3") == first else "another machine"
    return f"{cut}; the job COMPLETED on {same}"


def _cut_at_each(cluster: VirtualCluster, name: str, steps: Sequence[tuple[str, str]]) -> str:
    """Cut the power of the head or of a node once at each step of its boot, in one boot; the steps that were seen.

    Raises Failed if another machine takes its place before.
    """
    seen: list[str] = []
    machine = cluster.instance(name)
    for number, (title, test) in enumerate(steps, 1):
        later = " || ".join(("false", *(f"({other})" for _, other in steps[number:])))
        both = f"({test}) && exit; ({later}) && exit {_OVER}; exit {_TO_COME}"
        until = monotonic() + 900
        while monotonic() < until and (code := cluster.as_root(machine, "sh", "-c", both).returncode):
            expect(cluster.instances(name) == [machine], f"{name} is still {machine} at step {number}, after {seen}")
            if code == _OVER:
                break  # before it was seen
        else:
            expect(monotonic() < until, f"{name} never came to step {number}, {title}, after {seen}")
            seen.append(f"{number} {title}")
            cluster.cut_power(machine)
    return "power cut at: " + ", ".join(seen)


FAULTS = (
    Fault(
        name="updates",
        title="Debian's updaters, and an upgrade by hand",
        expected="nothing that corral installed changes",
        act=_updates,
    ),
    Fault(
        name="units-node",
        title="each unit of a node is killed",
        expected="it runs again; the node takes jobs",
        act=_units_of_node,
    ),
    Fault(
        name="units-head",
        title="each unit of the head is killed under a job",
        expected="it runs again; the job goes on",
        act=_units_of_head,
    ),
    Fault(
        name="disk-node",
        title="a node's root disk is full",
        expected="the running job goes on; Slurm drains the node, and its machine is replaced",
        act=_full_disk_of_node,
    ),
    Fault(
        name="disk-head",
        title="the head's root disk is full",
        expected="jobs begin and end: Slurm's state is on its own volume",
        act=_full_disk_of_head,
    ),
    Fault(
        name="clock-node",
        title="a node's clock is ten minutes ahead",
        expected="the running job goes on; no other begins until the clock is right",
        act=_clock_of_node,
    ),
    Fault(
        name="memory-node",
        title="a user's process outside of a job takes all memory of a node",
        expected="the kernel kills it alone; the daemons and the running job go on",
        act=_memory_of_node,
    ),
    Fault(
        name="home-away",
        title="/home does not answer for a minute",
        expected="a job that writes there waits and completes",
        act=_home_away,
    ),
    Fault(
        name="home-reboot",
        title="a node reboots while /home does not answer for four minutes",
        expected="no job runs there without /home",
        act=_reboot_without_home,
    ),
    Fault(
        name="old-configuration",
        title="a node misses an apply, and reboots",
        expected="it takes jobs with the new configuration",
        act=_old_configuration,
    ),
    Fault(
        name="mirror",
        title="the mirror of packages fails for one of two new nodes",
        expected="another machine takes its place; the job completes",
        act=_mirror,
    ),
    Fault(
        name="cuts-node",
        title="a node's power is cut at eight steps of its first boot",
        expected="the job that waits for it completes",
        act=_cuts_of_node,
    ),
    Fault(
        name="cuts-head",
        title="a new head's power is cut at eight steps of its first boot",
        expected="it becomes the head; a running job goes on",
        act=_cuts_of_head,
    ),
)
