"""The steps of the cluster's people: their accounts, its login node under attack, and their containers.

ada is an ordinary user, grace an administrator. Both come from outside of the cluster, by ssh.
"""

from __future__ import annotations

import re
from functools import partial
from time import monotonic

from tools.vm_life.cluster import Person, VirtualCluster, expect
from tools.vm_life.recordings import LOGINS, LOGINS_FILE

from corral.agent.events import EVENTS
from corral.model.users import ADMIN_HOMES, HOMES

_LOGIN = "login-1"
_SLICE = "/sys/fs/cgroup/user.slice/user-2000.slice"  # ada's
_TASKS = 1024  # of one person
_DAEMONS = ("ssh", "munge", "dbus", "systemd-logind", "corral-login", "corral-credentials")
_STATES = ("systemctl", "show", "--property=Id,ActiveState,MainPID,NRestarts", *_DAEMONS)
# What a person does while another one attacks the machine: logs in, reads the cluster, submits, writes to /home.
# The job is held, so that no node boots for it.
_WORK = "sinfo --noheader --format=%R && job=$(sbatch --parsable --hold --wrap=true) && scancel $job && date >~/worked"
_WORK_S = 120  # on an emulated core, of which the attacker has the other half
# More than one person may use, and the shell remains to report how it ended.
_HOG = "python3 -c 'held = bytearray(3 << 30)'; echo ended with $?"
_KILLED = "journalctl --dmesg --boot --no-pager --output=cat --grep='Memory cgroup out of memory'"
_BOMB = "b() { b | b & }; b >/dev/null 2>&1 </dev/null; sleep 3600"
_CHANGE_OF_A_NODE = ("scontrol", "update", "nodename=cpu-1", "comment=seen")
_ADA, _GRACE = f"{HOMES}/ada", f"{HOMES}/grace"
# What root of a node leaves for an administrator: bash reads the file at a login, also without a terminal.
_MARK = "/etc/from-a-node"
_TRAP = f"echo 'sudo -n touch {_MARK}' >{_GRACE}/.bashrc"
_IMAGE = f"{_ADA}/image.sqsh"
# A small image from the programs of the login node, with a file that no machine has.
_MAKE_IMAGE = f"""set -e
umask 22
rm -rf ~/tree {_IMAGE}
mkdir -p ~/tree && cd ~/tree
mkdir -p etc home tmp proc sys dev run root var/tmp usr/bin
ln -s usr/bin bin
for program in sh cat id ls touch hostname; do
    cp "$(readlink -f "$(command -v $program)")" usr/bin/$program
    for library in $(ldd usr/bin/$program | grep -o '/[^ ]*'); do
        mkdir -p ."$(dirname "$library")"
        cp "$(readlink -f "$library")" ."$library"
    done
done
echo the image >inside
mksquashfs . {_IMAGE} -noappend -quiet -no-progress -no-xattrs -all-root >&2
stat --format=%s {_IMAGE}"""


def login_node(cluster: VirtualCluster) -> str:
    """Wait until the login node is complete, and come to it as an ordinary user."""
    node = cluster.booted_login_node()
    ada = cluster.person("ada")
    lines = ada.output("id -un; hostname; pwd").splitlines()
    expect(lines == ["ada", _LOGIN, _ADA], f"ada's key opens the login node: {lines}")
    partitions = ada.output("sinfo --noheader --format=%R").split()
    expect(partitions == ["cpu", "gpu"], f"sinfo shows the queues: {partitions}")
    job = ada.output("sbatch --parsable --output=out --wrap='id -un; hostname'")
    cluster.wait_until(lambda: "ada" in cluster.as_root(node, "cat", f"{_ADA}/out").stdout, f"job {job} has written")
    daemons = cluster.as_root(node, "pgrep", "--list-name", "-x", "slurmctld|slurmd|slurmdbd|mariadbd").stdout
    expect(not daemons, f"no daemon of Slurm runs there: {daemons}")
    return f"ada logs in, sees the queues, and reads what her job {job} has written"


def people(cluster: VirtualCluster) -> str:
    """The declared people on a head, a login node and a node: ids, homes, and sudo; what they do becomes events."""
    machines = {name: cluster.instance(name) for name in ("head", _LOGIN, "cpu-1")}
    ids = [cluster.root_output(machine, "id", "-u", "ada").strip() for machine in machines.values()]
    expect(set(ids) == {"2000"}, f"ada has the same id on all: {ids}")
    may = {
        (name, user): cluster.as_root(machine, "runuser", "-u", user, "--", "sudo", "-n", "id", "-u").stdout.strip()
        for name, machine in machines.items()
        for user in ("ada", "grace")
    }
    becomes_root = sorted(who for who, printed in may.items() if printed == "0")
    expect(becomes_root == [("head", "grace"), (_LOGIN, "grace")], f"sudo is for administrators: {may}")
    run = partial(cluster.as_root, machines[_LOGIN], "runuser", "-u", "grace", "--")
    changes = [run(*sudo, *_CHANGE_OF_A_NODE).returncode == 0 for sudo in ((), ("sudo", "-n"))]
    expect(changes == [False, True], f"an administrator of the cluster is Slurm's by sudo alone: {changes}")
    hidden = cluster.as_root(machines[_LOGIN], "runuser", "-u", "grace", "--", "ls", _ADA).returncode
    expect(hidden != 0, "others do not see ada's home")
    for machine, event, user in ((_LOGIN, "login", "ada"), (_LOGIN, "sudo", "grace"), ("head", "sudo", "grace")):
        has_event = partial(_has_event, cluster, machines[machine], event, user)
        cluster.wait_until(has_event, f"{event} of {user} is an event of {machine}")
    journals = [cluster.root_output(machines[name], "sh", "-c", LOGINS) for name in (_LOGIN, "head")]
    (cluster.directory / LOGINS_FILE).write_text("".join(journals), encoding="utf-8")
    return "ada has one id and her own home; grace uses sudo on head and login node, not on a node; all are events"


def _has_event(cluster: VirtualCluster, machine: str, event: str, user: str) -> bool:
    pattern = f'"event": "{event}".*"user": "{user}"'
    return cluster.as_root(machine, "grep", "--quiet", pattern, str(EVENTS)).returncode == 0


def head_for_administrators(cluster: VirtualCluster) -> str:
    """Who comes to the head by ssh."""
    refused = cluster.person("ada", "head").run("id -un")
    reason = refused.stderr.strip()
    expect((refused.returncode, refused.stdout) == (255, ""), f"the head refuses ada: {refused}")
    expect("Permission denied (publickey" in reason, f"because of her key: {reason}")
    cluster.root_output(cluster.instance("cpu-1"), "runuser", "-u", "grace", "--", "sh", "-c", _TRAP)
    admitted = cluster.person("grace", "head").output("id -un; pwd; ls -d /home/grace").split()
    expect(
        admitted == ["grace", f"{ADMIN_HOMES}/grace", _GRACE],
        f"the head admits grace, to a home of its own: {admitted}",
    )
    cluster.person("grace").output("true")
    marked = [name for name in ("head", _LOGIN) if _is_marked(cluster, name)]
    expect(marked == [_LOGIN], f"what a node left in grace's shared home runs by sudo where she reads it: {marked}")
    cluster.person("grace").output("cp /etc/skel/.bashrc ~/.bashrc")
    return (
        f"ada: {reason.splitlines()[-1].strip()}; grace logs in, and what root of a node left in her home runs nothing"
    )


def _is_marked(cluster: VirtualCluster, machine: str) -> bool:
    return cluster.as_root(cluster.instance(machine), "test", "-e", _MARK).returncode == 0


def memory_hog(cluster: VirtualCluster) -> str:
    """ada fills the memory of the login node; grace works there meanwhile."""
    node = cluster.instance(_LOGIN)
    grace, ada = cluster.person("grace"), cluster.person("ada")
    before, usual = _daemons(cluster, node), _seconds_of_work(grace)
    began = monotonic()
    with ada.start(_HOG) as session:
        worked = [_seconds_of_work(grace)]
        while session.poll() is None and monotonic() - began < _WORK_S * 5:
            worked.append(_seconds_of_work(grace))
        is_alive = session.poll() is None
        session.terminate()
        printed = session.communicate()[0].strip()
    seconds = monotonic() - began
    expect(not is_alive, f"the hog ends within {_WORK_S * 5} s")
    expect("ended with 137" in printed, f"the kernel kills the hog, and her shell goes on: {printed!r}")
    killed = cluster.as_root(node, "sh", "-c", _KILLED).stdout.splitlines()
    owners = {found[1] if (found := re.search(r"UID:(\d+)", line)) else line for line in killed}
    expect(owners == {"2000"}, f"nothing of others is killed: {killed}")
    _expect_health(cluster, node, before, worked)
    return (
        f"killed after {seconds:.0f} s; grace's login with sinfo and sbatch took {usual:.0f} s "
        f"before and {max(worked):.0f} s at most meanwhile; {len(_DAEMONS)} daemons run on"
    )


def fork_bomb(cluster: VirtualCluster) -> str:
    """ada's shell forks without end; grace works there meanwhile, and ends it as an administrator."""
    node = cluster.instance(_LOGIN)
    grace, ada = cluster.person("grace"), cluster.person("ada")
    before, usual = _daemons(cluster, node), _seconds_of_work(grace)
    with ada.start(_BOMB) as session:
        cluster.wait_until(lambda: _pids(cluster, node, "events") > 0, "the kernel refuses a process of the bomb")
        worked = [_seconds_of_work(grace) for _ in range(3)]
        most = _pids(cluster, node, "peak")
        ended = grace.run("sudo -n systemctl kill --signal=KILL user-2000.slice")
        session.terminate()  # the box's way to sshd does not end by itself
    expect(ended.returncode == 0, f"grace ends the bomb: {ended.stderr}")
    expect(most == _TASKS, f"ada has {_TASKS} processes at most: {most}")
    _expect_health(cluster, node, before, worked)
    again = ada.output("id -un")
    expect(again == "ada", f"ada logs in again: {again}")
    return (
        f"{most} processes at most; grace's login with sinfo and sbatch took {usual:.0f} s before and "
        f"{max(worked):.0f} s at most meanwhile; she ended the bomb by sudo; {len(_DAEMONS)} daemons run on"
    )


def _pids(cluster: VirtualCluster, node: str, file: str) -> int:
    """The last number of a file of ada's slice; 0 while she has none."""
    words = cluster.as_root(node, "cat", f"{_SLICE}/pids.{file}").stdout.split()
    return int(words[-1]) if words else 0


def _daemons(cluster: VirtualCluster, node: str) -> str:
    """Root's daemons on the node: their processes, and how often systemd has started them again."""
    states = cluster.root_output(node, *_STATES)
    expect(states.count("ActiveState=active") == len(_DAEMONS), f"all daemons run: {states}")
    return states


def _expect_health(cluster: VirtualCluster, node: str, before: str, worked: list[float]) -> None:
    """Raise Failed if a daemon has ended or others had to wait for long."""
    after = _daemons(cluster, node)
    expect(after == before, f"the daemons have run on: {before} became {after}")
    expect(max(worked) <= _WORK_S, f"others work within {_WORK_S} s: {worked}")


def _seconds_of_work(person: Person) -> float:
    """How long a login with the usual commands takes. Raises Failed if they fail."""
    began = monotonic()
    person.output(_WORK)
    return monotonic() - began


def job_in_containers(cluster: VirtualCluster) -> str:
    """ada runs an image that she made on the login node, over two nodes; others' files are closed to her."""
    ada, grace = cluster.person("ada"), cluster.person("grace")
    size = int(ada.output(_MAKE_IMAGE))
    two = f"srun --nodes=2 --ntasks-per-node=1 --label --container-image={_IMAGE}"
    tasks = ada.output(f"{two} sh -c 'cat /inside; id -u; hostname; touch {_ADA}/from-$SLURM_PROCID'").splitlines()
    seen = [sorted(line.partition(": ")[2] for line in tasks if line.startswith(f"{rank}: ")) for rank in (0, 1)]
    expect(all({"the image", "2000"} <= set(lines) for lines in seen), f"both tasks run in the image as ada: {tasks}")
    expect(seen[0] != seen[1], f"on two machines: {tasks}")
    head = cluster.instance("head")
    files = [f"{_ADA}/from-{rank}" for rank in (0, 1)]
    owners = cluster.root_output(head, "stat", "--format=%u %n", *files).splitlines()
    expect(owners == [f"2000 {file}" for file in files], f"what they write is hers: {owners}")
    grace.output("umask 77; echo hidden >~/secret; chmod 755 ~; chmod 644 ~/.profile; cat ~/secret")
    one = f"srun --nodelist=cpu-1 --container-image={_IMAGE}"
    for options, user in (("", "2000"), ("--container-remap-root", "0")):
        lines = ada.run(f"{one} {options} sh -c 'id -u; cat {_GRACE}/secret' 2>&1").stdout.splitlines()
        denied = f"cat: {_GRACE}/secret: Permission denied"
        expect({user, denied} <= set(lines), f"user {user} of the container does not read grace's file: {lines}")
    ada.output("chmod 711 ~")
    read = grace.output(f"{one} cat {_GRACE}/secret").splitlines()
    expect("hidden" in read, f"grace reads it, in the same image: {read}")
    closed = grace.run("srun --nodelist=cpu-1 ls /var/lib/enroot/2000")
    expect("Permission denied" in closed.stderr, f"she does not enter ada's containers: {closed}")
    for person in (ada, grace):
        person.output("chmod 750 ~")
    return f"an image of {size >> 10:,} KiB, made by ada; what its tasks write is hers; grace's file is closed to them"


def person_leaves(cluster: VirtualCluster) -> str:
    """Ada is removed under a job of hers, with a process on the login node and another on the job's node."""
    ada = cluster.person("ada")
    job = ada.output("sbatch --parsable -n1 -wcpu-1 --mem=200M --output=/dev/null --wrap='sleep 240'")
    cluster.runs_on(job)
    machines = [cluster.instance(name) for name in (_LOGIN, "head", "cpu-1")]
    processes = [(machine, _left_running(cluster, machine)) for machine in machines]
    text = cluster.cluster_file.read_text(encoding="utf-8")
    kept = "".join(line for line in text.splitlines(keepends=True) if "ada:" not in line)
    cluster.cluster_file.write_text(kept, encoding="utf-8")
    cluster.corral("up", "vm", "--box", "--yes")
    began = monotonic()
    for machine, process in processes:
        gone = partial(_has_left, cluster, machine, process)
        cluster.wait_until(gone, f"ada is locked on {machine}, and her process {process} has ended")
    seconds = monotonic() - began
    refused = ada.run("id -un")
    expect((refused.returncode, refused.stdout) == (255, ""), f"ada's key opens nothing: {refused}")
    ended = cluster.job_end(job)
    expect(ended["JobState"] == "COMPLETED", f"her job ends as declared: {ended}")
    return (
        f"locked on login node, head and a node {seconds:.0f} s after `corral up`; processes ended, her job completed"
    )


def _left_running(cluster: VirtualCluster, machine: str) -> str:
    """A process of ada's outside of any job; its id."""
    start = ("runuser", "-u", "ada", "--", "sh", "-c", "setsid sleep 3600 </dev/null >/dev/null 2>&1 & echo $!")
    return cluster.root_output(machine, *start).strip()


def _has_left(cluster: VirtualCluster, machine: str, process: str) -> bool:
    look = f"getent shadow ada | cut -d: -f8; test -e /proc/{process} && echo running"
    return cluster.as_root(machine, "sh", "-c", look).stdout.split() == ["1"]
