"""A login node: people work on it and not on the head, it follows the spec within a minute, and loses nothing.

People come from outside by `ssh -F` with what `corral ssh-config` prints.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from clusters import UP_IN_S, Cluster, tag
from people import Person, make_key, person_outside

import boxes
from corral.box.vpc.capabilities import probe_host
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
LOGIN, HEAD = "dev-login-1", "dev-head"
ADA = "        ada: {{uid: 2000, ssh_keys: ['{key}']}}\n"
SPEC = "    login: {{}}\n    access:\n      users:\n        grace: {{uid: 2001, admin: true, ssh_keys: ['{key}']}}\n"
ENDS = "while squeue --noheader --jobs=$job | grep -q .; do sleep 0.2; done"
BOOTS_IN_S = 120.0
LOCKED_IN_S = 60.0


def test_people_work_on_a_login_node_and_not_on_the_head(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("login")
    with boxes.running_box(directory / "box", machines=True) as box:
        cluster = Cluster(life=begin(directory, box), name="dev")
        ada = come(cluster, directory)
        work(ada)
        stay_off_the_head(cluster, directory)
        look_at_what_is_there(cluster)
        replace_the_login_node(cluster, directory)
        leave(cluster, directory)
        cluster.life.done("down", "dev")
        with step("nothing of the cluster is left"):
            assert [kind for kind, ids in cluster.life.inventory().items() if "login" in str(ids)] == []
            assert cluster.machines() == []


def come(cluster: Cluster, directory: Path) -> Person:
    """The cluster, a person, and an administrator."""
    ada, grace = (make_key(directory, name) for name in ("ada", "grace"))
    with cluster.spec.open("a") as spec:
        spec.write(SPEC.format(key=grace) + ADA.format(key=ada))
    cluster.life.done("up", "dev")
    cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
    cluster.until(lambda: cluster.on(login_node(cluster), "id", "ada"), BOOTS_IN_S)
    cluster.until(lambda: cluster.on(login_node(cluster), "sinfo", "--noheader"), BOOTS_IN_S)
    return person_outside(cluster, directory, "ada")


def login_node(cluster: Cluster) -> str | None:
    """The instance that is the login node."""
    return next((one["InstanceId"] for one in cluster.machines() if tag(one, "corral:login") == "login-1"), None)


def work(ada: Person) -> None:
    """What an ordinary person does with Slurm, without a key or a right more."""
    with step("ssh with the printed entry opens the login node as that person"):
        assert ada.on(LOGIN, "id -un; hostname").splitlines() == ["ada", "login-1"]
    with step("sinfo shows the queue"):
        assert ada.on(LOGIN, "sinfo --noheader --format='%R %D %t'") == "train 4 idle~"
    with step("srun on the login node runs on a node, and its output comes back"):
        assert ada.on(LOGIN, "srun --nodes=1 printenv SLURMD_NODENAME") == "train-1"
    with step("a job that is submitted from the login node runs as her in the shared home"):
        submit = "sbatch --parsable --output=out --wrap='sleep 2; echo $SLURMD_NODENAME; id -un; pwd'"
        shown = ada.on(LOGIN, f"job=$({submit}); squeue --me --noheader --format='%i %u'; {ENDS}; cat out; echo $job")
        *lines, job = shown.splitlines()
        assert lines == [f"{job} ada", "train-1", "ada", "/home/ada"]
    with step("sacct on the login node has her jobs"):
        assert ada.on(LOGIN, f"sacct --noheader --parsable2 -X --jobs={job} --format=user,state") == "ada|COMPLETED"


def stay_off_the_head(cluster: Cluster, directory: Path) -> None:
    """The head, for both."""
    refused, admitted = (at(cluster, directory, name, "head").run(HEAD, "hostname; pwd") for name in ("ada", "grace"))
    with step("a person cannot log in to the head"):
        assert (refused.returncode, refused.stdout) == (255, "")
        assert "ada@" in refused.stderr and "Permission denied (publickey" in refused.stderr
    with step("an administrator can"):
        assert (admitted.returncode, admitted.stdout) == (0, "dev-head\n/var/lib/corral/homes/grace\n"), admitted.stderr
    with step(
        "what root of a node leaves in an administrator's shared home runs on the login node and not on the head"
    ):
        trap = "echo 'touch /var/tmp/from-a-node' >~/.bashrc"
        cluster.on(cluster.instance_of("train-1"), "runuser", "--login", "grace", "--command", trap)
        for name, host in (("head", HEAD), ("login-1", LOGIN)):
            at(cluster, directory, "grace", name).run(host, "true")
        look = ("sh", "-c", "test -e /var/tmp/from-a-node && echo left || echo nothing")
        assert (cluster.on_head(*look), cluster.on(login_node(cluster), *look)) == ("nothing", "left")


def at(cluster: Cluster, directory: Path, name: str, machine: str) -> Person:
    """The person with the present entry of this machine."""
    return person_outside(cluster, directory, name, "--to", machine)


def look_at_what_is_there(cluster: Cluster) -> None:
    """The machine itself, as root."""
    node = login_node(cluster)
    with step("no daemon of Slurm runs there, and no state of the head is there"):
        daemons = "pgrep -x 'slurmctld|slurmd|slurmdbd|mariadbd' || echo none"
        assert cluster.on(node, "sh", "-c", daemons) == "none"
        files = "/var/lib/corral/slurmctld /etc/slurm/slurmdbd.conf /var/lib/corral/mariadb"
        assert cluster.on(node, "sh", "-c", f"ls -d {files} 2>/dev/null || true") == ""
    with step("the other machines find it by its name"):
        address = cluster.on(node, "hostname", "-I").split()[0]
        assert cluster.on_head("getent", "hosts", "login-1").split() == [address, "login-1.dev.corral.internal"]


def replace_the_login_node(cluster: Cluster, directory: Path) -> None:
    """The machine is lost; the next up makes another one."""
    lost = login_node(cluster)
    cluster.life.client("ec2").terminate_instances(InstanceIds=[lost])
    cluster.until(lambda: login_node(cluster) is None)
    cluster.life.done("up", "dev")
    cluster.until(lambda: cluster.on(login_node(cluster), "sinfo", "--noheader"), BOOTS_IN_S)
    ada = at(cluster, directory, "ada", "login-1")
    with step("a replaced login node has what she wrote on the former one, and Slurm"):
        assert login_node(cluster) != lost
        assert ada.on(LOGIN, "head -1 out; sinfo --noheader --format=%R").splitlines() == ["train-1", "train"]


def leave(cluster: Cluster, directory: Path) -> None:
    """She is removed while a session of hers is open."""
    ada = at(cluster, directory, "ada", "login-1")
    session = subprocess.Popen(["ssh", *ada.options, LOGIN, "sleep 600"])
    node = login_node(cluster)
    cluster.until(lambda: cluster.on(node, "pgrep", "-u", "ada", "sleep"))
    spec, line = cluster.spec, next(one for one in cluster.spec.read_text().splitlines() if " ada: " in one)
    spec.write_text(spec.read_text().replace(f"{line}\n", ""))
    cluster.life.done("up", "dev")
    with step("who is removed is locked on the login node within a minute of the apply, and her session has ended"):
        cluster.until(lambda: cluster.on(node, "getent", "shadow", "ada").split(":")[7:8] == ["1"], LOCKED_IN_S)
        assert cluster.on(node, "sh", "-c", "pgrep -u 2000 || echo none") == "none"
    session.terminate()  # the box's way to sshd does not end by itself
    session.wait()
    with step("she cannot log in again"):
        assert "Permission denied" in ada.run(LOGIN, "true").stderr
    with step("the event is in the login node's own log"):
        stream = {"logGroupName": "/corral/dev", "logStreamName": "login-1"}
        events = cluster.until(lambda: log_lines(cluster, stream))
        assert '"event": "user-removed", "text": "ada, uid 2000"' in events


def log_lines(cluster: Cluster, stream: dict[str, str]) -> str:
    logs = cluster.life.client("logs")
    try:
        return "\n".join(event["message"] for event in logs.get_log_events(**stream)["events"])
    except logs.exceptions.ResourceNotFoundException:
        return ""
