"""The steps of the cluster: each acts, checks what it claims, and returns what it found, in a few words."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep

from tools.vm_life.cluster import VirtualCluster, expect
from tools.vm_life.directory_steps import people_of_a_directory, who_leaves_loses_processes
from tools.vm_life.job_attacks import (
    AS_ADA,
    ATTACKER,
    NO_ROUTE_TO_IPV6,
    ON_A_NODE,
    ON_THE_HEAD,
    ROOT,
    ROUTE_TO_IPV6,
    VICTIM,
    script,
)
from tools.vm_life.people_steps import (
    fork_bomb,
    head_for_administrators,
    job_in_containers,
    login_node,
    memory_hog,
    people,
    person_leaves,
)
from tools.vm_life.root_steps import (
    no_program_of_a_node_runs_on_the_head,
    no_user_becomes_root,
    nobody_removed_becomes_root,
)

from corral.model.job_role import URI

_HOG = "python3 -c 'import time; held = bytearray(900 << 20); time.sleep(5)'"
_CORES = "grep Cpus_allowed_list /proc/self/status; sleep 15"
# Counts to 40. On SIGUSR1 it writes how far it is, and requeues itself, as the job templates do.
_TRAINING = """n=$(cat ~/saved 2>/dev/null || echo 0); echo "$SLURMD_NODENAME from $n" >>~/training
save() { echo $n >~/saved; echo "$SLURMD_NODENAME saved $n" >>~/training; scontrol requeue $SLURM_JOB_ID; }
trap save USR1
while [ $n -lt 40 ]; do sleep 1; n=$((n + 1)); done; echo "$SLURMD_NODENAME ended at $n" >>~/training"""
# Who may open a device of nobody gets "No such device or address", another "Operation not permitted".
_OPEN_GPUS = "for n in 0 1 2 3 4 5 6 7; do (: </dev/nvidia$n) 2>&1; done; df --output=size -BG /nvme | tail -1"
_GPU_OUTPUT = "/home/admin/gpu"
_RELOADS = "journalctl --boot --no-pager --output=cat | grep --count 'Reload requested'"
_MAX_RELOADS = 10  # each takes six emulated seconds; without our care there were 34
# The IPv6 address of the metadata service, in a network namespace behind a pair of interfaces.
_IPV6_SERVER = """set -e
ip netns add imds
ip link add imds0 type veth peer name imds1 netns imds
ip -6 address add fd00:ec2::1/64 dev imds0 nodad
ip link set imds0 up
ip -n imds -6 address add fd00:ec2::254/64 dev imds1 nodad
ip -n imds link set imds1 up
systemd-run --quiet --collect --unit=imds-ipv6 ip netns exec imds python3 -m http.server --bind fd00:ec2::254 80
for second in $(seq 60); do curl --silent --globoff -o /dev/null 'http://[fd00:ec2::254]/' && exit; sleep 1; done"""
_IPV6_CURL = ("curl", "--silent", "--globoff", "--max-time", "5", "--output", "/dev/null", "http://[fd00:ec2::254]/")
_REBOOT_S = 30  # until systemd has stopped slurmctld, under load


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step. `title`: what happens, as a row of the page. `act`: does it; raises Failed.

    `booted`: the head and nodes that have booted when it ends. `is_needed`: without it no later step can be taken.
    """

    title: str
    act: Callable[[VirtualCluster], str]
    booted: tuple[str, ...] = ()
    is_needed: bool = False


def _up(cluster: VirtualCluster) -> str:
    cluster.corral("up", "vm", "--box", "--yes")
    return f"head {cluster.instance('head')}"


def _head_boots(cluster: VirtualCluster) -> str:
    cluster.await_slurmctld()
    reloads = cluster.root_output(cluster.instance("head"), "sh", "-c", _RELOADS).strip()
    expect(int(reloads) <= _MAX_RELOADS, f"systemd reads all its units {_MAX_RELOADS} times at most: {reloads}")
    return f"{cluster.head('scontrol', '--version')}; systemd read all its units {reloads} times"


def _job_on_two_nodes(cluster: VirtualCluster) -> str:
    output = cluster.head("srun", "--nodes=2", "sh", "-c", "echo $SLURMD_NODENAME $(uname -r)")
    lines = sorted(output.splitlines())
    expect([line.split()[0] for line in lines] == ["cpu-1", "cpu-2"], f"cpu-1 and cpu-2 answer: {lines}")
    return "; ".join(lines)


def _no_metadata_for_users(cluster: VirtualCluster) -> str:
    curl = ("curl", "--silent", "--max-time", "5", "http://169.254.169.254/latest/meta-data/instance-id")
    code = cluster.on_head("srun", "-wcpu-1", *curl).returncode
    expect(code == 7, f"curl of a job cannot connect (7): {code}")
    node = cluster.instance("cpu-1")
    expect(cluster.root_output(node, "sh", "-c", _with_token(curl)) == node, "root of the node reads its own id")
    # The service has no IPv6 address, as the launch template says: a server of ours gets it for a moment.
    cluster.root_output(node, "sh", "-c", _IPV6_SERVER)
    codes = [cluster.on_head("srun", "-wcpu-1", *_IPV6_CURL).returncode, cluster.as_root(node, *_IPV6_CURL).returncode]
    cluster.root_output(node, "sh", "-c", "systemctl stop imds-ipv6; ip netns delete imds")
    expect(codes == [7, 0], f"curl of a job cannot connect to the IPv6 address (7), root's can (0): {codes}")
    return "curl of a job ends with 7, by IPv4 and IPv6; root reads the node's id"


def _with_token(curl: Sequence[str]) -> str:
    token = "curl -s -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token"
    return f'{" ".join(curl)} -H "X-aws-ec2-metadata-token: $({token})"'


def _limited_daemons(cluster: VirtualCluster) -> str:
    """The agent's daemons run with their limits: on a node, its endpoint still gives a job's user credentials."""
    _key_of_a_job(cluster)
    cluster.booted_login_node()
    found = []
    for machine, name, most in (
        ("head", "corral-agent", 8.0),
        ("login-1", "corral-login", 8.0),
        ("cpu-1", "corral-watch", 8.0),
        ("cpu-1", "corral-credentials", 3.0),
    ):
        instance = cluster.instance(machine)
        state = cluster.root_output(instance, "systemctl", "show", "--property=ActiveState,NRestarts", name)
        expect(
            sorted(state.split()) == ["ActiveState=active", "NRestarts=0"], f"{name} has run since its start: {state!r}"
        )
        exposure = cluster.root_output(instance, "sh", "-c", f"systemd-analyze security {name} | grep Overall")
        value = float(exposure.rpartition(": ")[2].split()[0])
        expect(value <= most, f"systemd-analyze security {name} is {most} at most: {value}")
        found.append(f"{name} {value}")
    return f"exposure by systemd-analyze security: {', '.join(found)}; a job has its credentials"


def _key_of_a_job(cluster: VirtualCluster) -> str:
    """The id of the key that the endpoint of cpu-1 gives a job of the image's user."""
    given = cluster.head("srun", "-n1", "-wcpu-1", "--mem=200M", "curl", "--silent", "--max-time", "10", URI)
    expect("AccessKeyId" in given, f"a job on cpu-1 gets the job role's credentials: {given!r}")
    return str(json.loads(given)["AccessKeyId"])


def _no_way_to_others(cluster: VirtualCluster) -> str:
    """A user's job on a node where another's runs, and a user on the head, try what only others may."""
    machines = {"cpu-1": cluster.instance("cpu-1"), "head": cluster.instance("head")}
    for instance in machines.values():
        cluster.root_output(instance, "sh", "-c", "id ada 2>/dev/null || useradd --uid=2000 --no-create-home ada")
    cluster.head("sh", "-c", "echo mine >~/secret && chmod 600 ~/secret && rm -f ~/running")
    process = "cat /home/admin/running"
    job = cluster.submit("echo $$ >~/running; exec sleep 1200", "-n1", "-wcpu-1", "--mem=200M", "-o", "/dev/null")
    cluster.wait_until(lambda: bool(cluster.on_head("sh", "-c", process).stdout), f"job {job} runs")
    variables = {
        "JOB": job,
        "PID": cluster.head("sh", "-c", process),
        "FILE": "/home/admin/secret",
        "USER": "admin",
        "NODE": "cpu-1",
        "ADDRESS": cluster.head("getent", "hosts", "cpu-1").split()[0],
        "KEY": _key_of_a_job(cluster),
    }
    job_of_ada = (*AS_ADA, "srun", "-n1", "-wcpu-1", "--mem=200M", "--chdir=/")
    users = {ROOT: (), VICTIM: ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"), ATTACKER: AS_ADA}
    for name, acts in (("cpu-1", ON_A_NODE), ("head", ON_THE_HEAD)):
        prefix = job_of_ada if name == "cpu-1" else AS_ADA
        cluster.root_output(machines[name], *ROUTE_TO_IPV6)
        reached = cluster.root_output(machines["head"], *prefix, "sh", "-c", script(acts, variables)).splitlines()
        expect(not reached, f"an ordinary user reaches nothing of others on {name}: {reached}")
        done = [
            cluster.root_output(machines[name], *user, "sh", "-c", script(acts, variables, by=by)).splitlines()
            for by, user in users.items()
        ]
        cluster.root_output(machines[name], *NO_ROUTE_TO_IPV6)
        missing = {act.name for act in acts} - {one for lines in done for one in lines}
        expect(not missing, f"who may do so reaches everything on {name}, but not: {sorted(missing)}")
    cluster.head("scancel", job)
    count = len(ON_A_NODE) + len(ON_THE_HEAD)
    return f"{count} acts of a user's job and on the head fail; each succeeds for who may"


def _shared_home(cluster: VirtualCluster) -> str:
    cluster.head("srun", "-wcpu-1", "sh", "-c", "echo $SLURMD_NODENAME >~/written")
    read = cluster.head("srun", "-wcpu-2", "cat", "/home/admin/written")
    expect(read == "cpu-1", f"cpu-2 reads what cpu-1 has written: {read!r}")
    kind = cluster.root_output(cluster.instance("cpu-2"), "stat", "--file-system", "--format=%T", "/home").strip()
    expect(kind == "nfs", f"/home is on NFS: {kind}")
    return "cpu-2 reads what cpu-1 has written, by NFS"


def _ssh(cluster: VirtualCluster) -> str:
    to_node = cluster.head("ssh", "-oBatchMode=yes", "cpu-1", "hostname")
    between = cluster.head("srun", "-wcpu-1", "ssh", "-oBatchMode=yes", "cpu-2", "hostname")
    names = [cluster.root_output(cluster.instance(node), "hostname").strip() for node in ("cpu-1", "cpu-2")]
    expect([to_node, between] == names, f"head to cpu-1 and cpu-1 to cpu-2 reach {names}: {to_node}, {between}")
    return f"head to cpu-1 is {to_node}, cpu-1 to cpu-2 is {between}"


def _request_gpu(cluster: VirtualCluster) -> str:
    cluster.submit(_OPEN_GPUS, "--partition=gpu", "--gpus=1", "--job-name=gpu", "-o", _GPU_OUTPUT)
    return "its p4d.24xlarge boots while the next steps run"


def _one_gpu(cluster: VirtualCluster) -> str:
    accounted = ("sacct", "-nXP", "--name=gpu", "-ostate")  # squeue forgets a job after five minutes
    # Not the end of one whose node took longer to boot than ResumeTimeout: it is requeued.
    cluster.wait_until(
        lambda: cluster.on_head(*accounted).stdout.strip() == "COMPLETED", "the job with a GPU completes"
    )
    *opened, store = cluster.head("cat", _GPU_OUTPUT).splitlines()
    allowed, denied = (sum(text in line for line in opened) for text in ("No such device", "not permitted"))
    expect((allowed, denied) == (1, 7), f"the job may open one of eight GPUs: {opened}")
    expect(int(store.strip().removesuffix("G")) > 7000, f"/nvme has the instance stores: {store}")
    declared = cluster.head("scontrol", "--oneliner", "show", "node", "gpu-1")
    expect(" CPUTot=96 " in declared and " Gres=gpu:a100:8" in declared, f"gpu-1 is a p4d: {declared}")
    return f"it may open 1 of 8 devices; /nvme has {store.strip()}; the node has 96 CPUs for Slurm"


def _memory_limit(cluster: VirtualCluster) -> str:
    limits = ("--mem=300M", "-n1", "-wcpu-1")
    neighbour = cluster.submit("sleep 40", *limits)
    cluster.runs_on(neighbour)
    hog = cluster.submit(_HOG, *limits)
    ends = cluster.job_end(hog)["JobState"], cluster.job_end(neighbour)["JobState"]
    expect(ends == ("OUT_OF_MEMORY", "COMPLETED"), f"the hog and its neighbour end as {ends}")
    return "OUT_OF_MEMORY; its neighbour on the node: COMPLETED"


def _cores(cluster: VirtualCluster) -> str:
    files = [f"/home/admin/cores-{number}" for number in (1, 2)]
    jobs = [cluster.submit(_CORES, "-n1", "-wcpu-1", "--mem=200M", "-o", file) for file in files]
    for job in jobs:
        cluster.job_end(job)
    starts = [cluster.job(job)["StartTime"] for job in jobs]
    lists = [cluster.head("cat", file).split()[-1] for file in files]
    expect(not cpus(lists[0]) & cpus(lists[1]), f"the jobs share no CPU: {lists}")
    expect(all(len(cpus(text)) == 2 for text in lists), f"each job has both threads of one core: {lists}")
    return f"CPUs {lists[0]} and {lists[1]}; started {starts[0]} and {starts[1]}"


def _spot_notice(cluster: VirtualCluster) -> str:
    job = cluster.submit(_TRAINING, "-n1", "--requeue")
    node = cluster.runs_on(job)
    sleep(5)
    cluster.corral("box", "fault", "spot-notice", node)
    ended = cluster.job_end(job)
    lines = cluster.head("cat", "/home/admin/training").splitlines()
    expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), f"the job ends after one restart: {ended}")
    expect(len(lines) == 4, f"the job begins, saves, begins and ends: {lines}")
    first, saved, second, last = (line.split() for line in lines)
    expect(first[1:] == ["from", "0"] and saved[1] == "saved" and 0 < int(saved[2]) < 40, f"it saves a part: {lines}")
    expect(second[1:] == ["from", saved[2]] and last[1:] == ["ended", "at", "40"], f"it continues: {lines}")
    return "; ".join(lines)


def _power_off_from_within(cluster: VirtualCluster) -> str:
    # Longer than an emulated machine needs to shut down, the first time.
    job = cluster.submit('test -n "$SLURM_RESTART_COUNT" || sleep 600', "-n1", "--requeue")
    node = cluster.runs_on(job)
    before = cluster.instance(node)
    cluster.as_root(before, "systemctl", "poweroff")
    ended = cluster.job_end(job)
    expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), f"the job ends after one restart: {ended}")
    expect(before not in cluster.instances(node), f"{before} has ended")
    return f"{node} ended; the job completed on {ended['NodeList']} after one restart"


def _apply(cluster: VirtualCluster) -> str:
    job = cluster.submit("sleep 45", "-n1")
    cluster.runs_on(job)
    text = cluster.cluster_file.read_text(encoding="utf-8")
    cluster.cluster_file.write_text(text.replace("max: 4", "max: 6"), encoding="utf-8")
    cluster.corral("up", "vm", "--box", "--yes")
    cluster.wait_until(
        lambda: cluster.on_head("sinfo", "-hpcpu", "-o%D").stdout.split() == ["6"], "the queue has 6 nodes"
    )
    ended = cluster.job_end(job)
    expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0"), f"the job goes on: {ended}")
    return "the queue has 6 nodes instead of 4; the job went on"


def _head_reboots(cluster: VirtualCluster) -> str:
    job = cluster.submit("sleep 60", "-n1")
    cluster.runs_on(job)
    head = cluster.instance("head")
    boot = cluster.root_output(head, "cat", "/proc/sys/kernel/random/boot_id")
    cluster.as_root(head, "systemctl", "reboot")
    sleep(_REBOOT_S)
    cluster.await_slurmctld()
    expect(cluster.root_output(head, "cat", "/proc/sys/kernel/random/boot_id") != boot, "the kernel is a new one")
    ended = cluster.job_end(job)
    expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0"), f"the job goes on: {ended}")
    return "the job that ran completed without a restart"


def _head_is_lost(cluster: VirtualCluster) -> str:
    job = cluster.submit("sleep 60", "-n1")
    cluster.runs_on(job)
    lost = cluster.instance("head")
    cluster.corral("box", "fault", "kill-head", "vm")
    cluster.wait_until(lambda: not cluster.instances("head"), f"{lost} has ended")
    cluster.corral("up", "vm", "--box", "--yes")
    cluster.await_slurmctld()
    expect(cluster.instance("head") != lost, "another instance is the head")
    ended = cluster.job_end(job)
    expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0"), f"the job goes on: {ended}")
    known = cluster.head("sacct", "-nXP", "-ojobid,state").splitlines()
    expect(f"{job}|COMPLETED" in known and known[0].startswith("1|"), f"accounting knows all jobs: {known}")
    return f"the job that ran completed without a restart; sacct knows {len(known)} jobs"


def cpus(text: str) -> frozenset[int]:
    """The numbers of a CPU list as in /proc: `0-1,4`."""
    ranges = ((part.split("-")[0], part.split("-")[-1]) for part in text.split(","))
    return frozenset(number for low, high in ranges for number in range(int(low), int(high) + 1))


STEPS = (
    Step(title="`corral up`", act=_up, is_needed=True),
    Step(
        title="the head boots from its user data: packages, EBS, NFS, MariaDB, slurmctld",
        act=_head_boots,
        booted=("head",),
        is_needed=True,
    ),
    Step(
        title="srun over two nodes, which boot for it",
        act=_job_on_two_nodes,
        booted=("cpu-1", "cpu-2"),
        is_needed=True,
    ),
    # Early: a posed node that boots beside a third one does not register within ResumeTimeout on two emulated cores.
    Step(title="a job requests a GPU", act=_request_gpu),
    Step(title="users cannot reach the metadata service", act=_no_metadata_for_users),
    Step(title="the agent's daemons run with few rights", act=_limited_daemons),
    Step(title="no user becomes root, on the head, the login node or in a job", act=no_user_becomes_root),
    Step(title="a user's job reaches nothing of others", act=_no_way_to_others),
    Step(title="root of a node runs no program on the head by slurmdbd", act=no_program_of_a_node_runs_on_the_head),
    Step(title="/home is shared", act=_shared_home),
    Step(title="a user connects by ssh from the head to a node and between nodes", act=_ssh),
    Step(title="the job with a GPU: a small machine poses as its p4d.24xlarge", act=_one_gpu, booted=("gpu-1",)),
    Step(title="a job's memory is limited, and only that job is killed", act=_memory_limit),
    Step(title="two jobs on a node share no core", act=_cores),
    # Before cpu-1 is reclaimed.
    Step(title="people come to a login node by ssh", act=login_node, booted=("login-1",)),
    Step(title="people: their ids, homes, keys and sudo", act=people),
    Step(title="the head of a cluster with a login node admits administrators alone", act=head_for_administrators),
    Step(title="a memory hog on the login node is killed, and others work meanwhile", act=memory_hog),
    Step(title="a fork bomb on the login node stops at its limit, and others work meanwhile", act=fork_bomb),
    Step(title="an ordinary user's job in containers on two nodes", act=job_in_containers),
    Step(title="a person is removed by `corral up`", act=person_leaves),
    Step(title="no user becomes root who was removed", act=nobody_removed_becomes_root),
    Step(title="people of a directory come, work while it is away, and leave", act=people_of_a_directory),
    Step(title="who leaves the directory loses what they run on a login node", act=who_leaves_loses_processes),
    Step(title="a spot notice: the job saves, is requeued and continues", act=_spot_notice),
    Step(title="a node powers off from within, and its job is requeued", act=_power_off_from_within),
    Step(title="`corral up` applies another configuration under a running job", act=_apply),
    Step(title="the head reboots under a running job", act=_head_reboots),
    Step(title="the head is lost under a running job, and `corral up` replaces it", act=_head_is_lost),
)


def down(cluster: VirtualCluster) -> str:
    """Delete everything; nothing is left running."""
    cluster.corral("down", "vm", "--box", "--yes", "--delete-data", "vm")
    return "everything is deleted"
