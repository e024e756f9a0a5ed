"""A cluster on virtual machines, as the steps see it: corral's commands, its machines, its jobs, AWS in the box."""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from corral.box import client, control
from corral.box.daemon.daemon_process import send_request
from corral.box.vpc.qmp import QmpCommand, execute
from corral.box.vpc.virtual_network import MachineError, Vpc
from corral.model.node_names import expand
from corral.model.tags import LOGIN_TAG, NODES_TAG

CHECKOUT = Path(__file__).resolve().parents[2]
ENVIRONMENT = Path(__file__).with_name("environment")
PEOPLE = ("ada", "grace")
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
_SSH_S = 600  # a login and its command, on a machine that is emulated and under attack
_SLURMCTLD = 6817  # its port
_LIMIT_S = 1800  # a head takes ten minutes on two busy cores that emulate it
_STEP_S, _MAX_STEP_S = 2.0, 15.0


class Failed(Exception):
    """A step found something else than it should; the text names both."""


def expect(holds: bool, claim: str) -> None:
    """Raise Failed with the claim if it does not hold."""
    if not holds:
        raise Failed(f"expected that {claim}")


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody outside of the cluster, with a key and what `corral ssh-config` prints. `options`: of ssh."""

    options: Sequence[str]
    host: str

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command on the machine, after a login. Raises Failed if it takes too long."""
        try:
            return subprocess.run(self._line(command), capture_output=True, text=True, check=False, timeout=_SSH_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"not within {_SSH_S} s by ssh on {self.host}: {command}") from None

    def output(self, command: str) -> str:
        """What a command prints. Raises Failed if it fails."""
        done = self.run(command)
        if done.returncode:
            raise Failed(f"{command} on {self.host} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def start(self, command: str) -> subprocess.Popen[str]:
        """A session in which a command runs; whoever starts it ends it."""
        return subprocess.Popen(self._line(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def _line(self, command: str) -> list[str]:
        return ["ssh", *self.options, self.host, command]


@dataclass(frozen=True, kw_only=True)
class VirtualCluster:
    """The environment `vm` of the project in `directory`, in a box of its own."""

    directory: Path

    @property
    def box(self) -> Path:
        """The box's state directory."""
        return self.directory / "box"

    @property
    def cluster_file(self) -> Path:
        """The cluster's spec."""
        return self.directory / "stacks" / "cluster" / "Pulumi.vm.yaml"

    def key(self, name: str) -> Path:
        """The private key of one of the cluster's people."""
        return self.directory / f"key-{name}"

    def person(self, name: str, machine: str = "login-1", key: str = "") -> Person:
        """One of the cluster's people, who comes to this machine by ssh, as it is named now, with this or their key."""
        entries = self.directory / f"ssh-{name}-{machine}"
        shown = self.corral("ssh-config", "vm", "--box", "--user", name, "--to", machine)
        entries.write_text(shown, encoding="utf-8")
        settings = ("BatchMode=yes", "LogLevel=ERROR", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
        options = ["-F", str(entries), "-i", str(self.key(key or name)), *(f"-o{setting}" for setting in settings)]
        return Person(options=options, host=f"vm-{machine}")

    def corral(self, *words: str) -> str:
        """The output of a corral command that succeeds. Raises Failed."""
        environment = {**os.environ, "CORRAL_BOX_DIR": str(self.box)}
        command = [sys.executable, "-m", "corral.cli", *words]
        done = subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"corral {shlex.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def head(self, *command: str) -> str:
        """The output of a command that the image's user runs on the head. Raises Failed if it fails."""
        done = self.on_head(*command)
        if done.returncode:
            raise Failed(f"{shlex.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def on_head(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command that the image's user runs on the head after a login; without a head it fails."""
        heads = self.instances("head")
        if not heads:
            return subprocess.CompletedProcess(command, 1, "", "no head runs")
        return self.as_root(heads[0], "runuser", "--login", "admin", "--command", shlex.join(command))

    def as_root(self, instance: str, *command: str) -> subprocess.CompletedProcess[str]:
        """A command that root runs on an instance; on one without a machine it fails."""
        directory = control.machines(self.box).get(instance)
        if not directory:
            return subprocess.CompletedProcess(command, 1, "", f"{instance} is no machine")
        try:
            return Vpc(directory=directory).run(instance, command)
        except MachineError as error:  # it ends or boots
            return subprocess.CompletedProcess(command, 1, "", str(error))

    def root_output(self, instance: str, *command: str) -> str:
        """The output of a command that root runs on an instance. Raises Failed if it fails."""
        done = self.as_root(instance, *command)
        if done.returncode:
            raise Failed(f"{shlex.join(command)} on {instance} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def write(self, instance: str, path: Path, text: str) -> None:
        """Write a file of root's on an instance. Raises Failed."""
        encoded = base64.b64encode(text.encode()).decode()
        self.root_output(instance, "sh", "-c", f"echo {encoded} | base64 --decode >{path}")

    def submit(self, script: str, *options: str) -> str:
        """Submit a batch job; its id. The script is one line of shell."""
        return self.head("sbatch", "--parsable", *options, "--wrap", script)

    def job(self, job: str) -> Mapping[str, str]:
        """The fields of a job; none while slurmctld does not answer."""
        line = self._root_on_head("scontrol", "--oneliner", "show", "job", job)
        return {name: value for name, _, value in (word.partition("=") for word in line.split())}

    def _root_on_head(self, *command: str) -> str:
        """What a command of root's prints on the head: root sees everybody's jobs. Nothing without a head."""
        heads = self.instances("head")
        return self.as_root(heads[0], *command).stdout if heads else ""

    def runs_on(self, job: str) -> str:
        """The node of a job, once it runs."""
        self.wait_until(lambda: self.job(job).get("JobState") == "RUNNING", f"job {job} runs")
        return self.job(job)["NodeList"]

    def job_end(self, job: str) -> Mapping[str, str]:
        """JobState, Restarts, NodeList and RunTime of a job, once it has ended."""
        self.wait_until(lambda: bool(self._end_of(job)), f"job {job} ends")
        return self._end_of(job)

    def _end_of(self, job: str) -> Mapping[str, str]:
        """The fields of a job that has ended; none until then. slurmctld forgets a job after five minutes."""
        fields = self.job(job)
        if not fields:
            line = self._root_on_head("sacct", "-nXP", f"--jobs={job}", "-ostate,restarts,nodelist,elapsed").strip()
            fields = dict(zip(("JobState", "Restarts", "NodeList", "RunTime"), line.split("|"), strict=False))
        # sacct names who cancelled a job: "CANCELLED by 1000".
        state = fields.get("JobState", "").partition(" ")[0]
        return {**fields, "JobState": state} if state in ENDED else {}

    def await_slurmctld(self) -> None:
        """Wait until a head runs whose slurmctld answers. Raises Failed."""
        self.wait_until(self._slurmctld_answers, "slurmctld answers on the head")

    def _slurmctld_answers(self) -> bool:
        heads = self.instances("head")
        return bool(heads) and self._listens(heads[0], _SLURMCTLD) and self.on_head("scontrol", "ping").returncode == 0

    def _listens(self, instance: str, port: int) -> bool:
        """True if a port of an instance accepts connections: other than a command, it costs the machine nothing."""
        directory = control.machines(self.box).get(instance)
        if not directory:
            return False
        vpc = Vpc(directory=directory)
        try:
            vpc.connect(vpc.machines()[instance], port).close()
        except (MachineError, KeyError):  # it ends or boots
            return False
        return True

    def instance(self, name: str) -> str:
        """The id of the running instance of the head or of a node. Raises Failed unless there is one."""
        found = self.instances(name)
        expect(len(found) == 1, f"one instance is {name}: {found}")
        return found[0]

    def instances(self, name: str) -> Sequence[str]:
        """The ids of the running instances of the head or of a node, sorted."""
        filters = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        found = self.client("ec2").describe_instances(Filters=filters)["Reservations"]
        return sorted(one["InstanceId"] for held in found for one in held["Instances"] if machine_name(one) == name)

    def booted_login_node(self) -> str:
        """The id of the login node's instance, once it is complete. Raises Failed."""
        node = self.instance("login-1")
        daemon = ("systemctl", "is-active", "corral-login")
        self.wait_until(lambda: self.as_root(node, *daemon).returncode == 0, "the login node has booted")
        return node

    def cut_power(self, instance: str) -> None:
        """Cut the power of an instance's machine for a moment; it boots again."""
        directory = control.machines(self.box)[instance]
        execute(Path(directory) / f"{instance}.qmp", QmpCommand("system_reset"))

    def inventory(self) -> Mapping[str, Any]:
        """Everything that the box holds, by kind."""
        return send_request(client.running_address(self.box), "GET", "/_box/inventory")

    def wait_until(self, holds: Callable[[], bool], claim: str) -> None:
        """Wait until the condition holds. Raises Failed.

        What lasts long is looked at seldom: most looks are sessions, which cost an emulated machine five seconds each.
        """
        began = monotonic()
        deadline = began + _LIMIT_S
        while not holds():
            if monotonic() > deadline:
                raise Failed(f"not within {_LIMIT_S} s: {claim}")
            sleep(min(_MAX_STEP_S, _STEP_S + (monotonic() - began) / 10))

    def client(self, service: str) -> Any:
        """A boto3 client of the box."""
        import boto3

        names = client.environment(self.box)
        return boto3.client(
            service,
            endpoint_url=names["AWS_ENDPOINT_URL"],
            region_name=names["AWS_REGION"],
            aws_access_key_id=names["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=names["AWS_SECRET_ACCESS_KEY"],
        )


def machine_name(instance: Mapping[str, Any]) -> str:
    """`head`, the name of a login node, or the node that an instance was launched for."""
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    if NODES_TAG in tags:
        return str(expand(tags[NODES_TAG])[instance["AmiLaunchIndex"]])
    return str(tags.get(LOGIN_TAG, "head"))


def new_cluster(directory: Path, more: str = "") -> VirtualCluster:
    """A project of the environment `vm` in a directory, which is created if it is missing, with keys of its people.

    `more`: lines that follow those of the cluster's spec.
    """
    shutil.copytree(CHECKOUT / "stacks", directory / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    for project in ("base", "cluster"):
        shutil.copyfile(ENVIRONMENT / f"Pulumi.{project}.yaml", directory / "stacks" / project / "Pulumi.vm.yaml")
    cluster = VirtualCluster(directory=directory)
    text = cluster.cluster_file.read_text(encoding="utf-8") + more
    for name in PEOPLE:
        key = cluster.key(name)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True)
        public = key.with_suffix(".pub").read_text(encoding="utf-8").strip()
        text = text.replace(f"KEY-OF-{name.upper()}", public)
    cluster.cluster_file.write_text(text, encoding="utf-8")
    return cluster
