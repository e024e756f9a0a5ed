"""A cluster of machines in a box, as its user and its owner see it, and the claims that hold for every cluster.

Nothing here waits for a fixed time: it waits for a condition.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import boxes
from boxes import inventory
from corral.box import control
from corral.box.vpc.capabilities import probe_host
from corral.box.vpc.virtual_network import Vpc
from life import Life, begin

ENVIRONMENTS = Path(__file__).parent / "environments"
UP_IN_S, SOON_S = 180.0, 240.0  # many times what an idle machine takes
# Appends a line each time that the job runs to its end.
RESULT = 'echo "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $SLURM_JOB_NODELIST" >> /home/results'
# Work that the first machine cannot end before it is gone: one that is cut off works on, and in the box it still
# writes to the shared home.
LONG_THEN_SHORT = '[ "$SLURM_RESTART_COUNT" ] || sleep 600'
_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE")
AUTOSCALER = r"corral.agent(/entry_point\.py)? autoscaler"  # the daemon, and the shell that restarts it
# Instead of Slurm's timeouts of minutes, in own.conf as an owner sets them. MessageTimeout: until a silent machine
# counts as one that does not answer.
IMPATIENT = "ResumeTimeout=240\\nSuspendTimeout=10\\nSlurmdTimeout=20\\nMessageTimeout=10\\n"
# What outlives `down --with-base`: the user's data, with accounting dump and histories, its key with the alias that
# proves it, paid blocks, and the account's boundary of roles.
_STAYS = frozenset(
    {"efs/file-system", "kms/alias", "kms/key", "s3/bucket", "ec2/capacity-block", "ec2/capacity-reservation"}
)
_KEPT = re.compile(r".*/((accounting/[\w-]+\.sql|lives/[\w-]+/[\dTZ-]+\.json)\.gz|corral/guards-boundary-[\w-]+)")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster that is up in a box."""

    life: Life
    name: str

    @property
    def spec(self) -> Path:
        """The file of its environment."""
        return self.life.project / f"stacks/cluster/Pulumi.{self.name}.yaml"

    # --- its machines

    def machines(self) -> list[Any]:
        """Its pending and running instances, as EC2 describes them."""
        filters = [
            {"Name": "tag:corral:cluster", "Values": [self.name]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        pages = self.life.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        return [one for page in pages for held in page["Reservations"] for one in held["Instances"]]

    def head(self) -> str | None:
        """The instance that is its head."""
        return next((one["InstanceId"] for one in self.machines() if tag(one, "Name").endswith("-head")), None)

    def nodes(self) -> dict[str, str]:
        """The instances that are its nodes, by the address that Slurm knows them by."""
        return {one["PrivateIpAddress"]: one["InstanceId"] for one in self.machines() if tag(one, "corral:nodes")}

    def instance_of(self, node: str) -> str:
        """The instance of this node; empty where there is none."""
        return self.nodes().get(self.node(node)["NodeAddr"], "")

    def on(self, instance_id: str | None, *command: str) -> str:
        """What a command printed on a machine; empty where there is no machine, or it failed."""
        directory = control.machines(self.life.box.dir).get(instance_id or "")
        return Vpc(directory=directory).run(instance_id or "", command).stdout.strip() if directory else ""

    def on_head(self, *command: str) -> str:
        """What a command printed on the head."""
        return self.on(self.head(), *command)

    def home(self) -> Path:
        """The directory on this machine that is /home of its machines."""
        systems = self.life.client("efs").describe_file_systems()["FileSystems"]
        (system,) = (one for one in systems if tag(one, "corral:base") in (self.name, ""))
        return Path(self.life.box.dir) / "machines/file-systems" / system["FileSystemId"]

    # --- its jobs

    def submit(self, script: str, *options: str) -> int:
        """A batch job: the script, and then its result."""
        words = ("sbatch", "--parsable", "--chdir=/home", "--output=/home/%j.out", "--open-mode=append", *options)
        printed = self.on_head(*words, f"--wrap={script}\n{RESULT}")
        assert printed.isdecimal(), f"sbatch {options} printed {printed!r}"
        return int(printed)

    def job(self, job: int) -> dict[str, str]:
        """A job's fields in Slurm."""
        return _fields(self.on_head("scontrol", "--oneliner", "show", "job", str(job)))

    def node(self, node: str) -> dict[str, str]:
        """A node's fields in Slurm."""
        return _fields(self.on_head("scontrol", "--oneliner", "show", "node", node))

    def states(self) -> dict[str, str]:
        """The states of all nodes."""
        lines = self.on_head("scontrol", "--oneliner", "show", "nodes").splitlines()
        return {fields["NodeName"]: fields["State"] for fields in map(_fields, lines)}

    def runs(self, job: int) -> str:
        """Its nodes, once it runs."""
        return self.until(lambda: (held := self.job(job)).get("JobState") == "RUNNING" and held["NodeList"])

    def end(self, job: int, seconds: float = SOON_S) -> tuple[str, str]:
        """A job's final state, and how often it restarted."""
        state = self.until(lambda: (now := self.job(job).get("JobState", "")) in _ENDED and now, seconds)
        return state, self.job(job)["Restarts"]

    def results(self, job: int) -> list[str]:
        """The restarts before each time that a job has done its work."""
        file = self.home() / "results"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [fields[1] for fields in lines if fields[0] == str(job)]

    def events(self) -> list[Any]:
        """The autoscaler's events."""
        return [json.loads(line) for line in self.on_head("cat", "/var/lib/corral/events.jsonl").splitlines()]

    def cool(self, queue: str) -> None:
        """Powers the nodes of a queue down that have a machine, and waits until none has one.

        Nodes without a machine are left out: slurmctld looks ten seconds for the address of each.
        """
        off = "IDLE+CLOUD+POWERED_DOWN"
        on = [name for name, state in self.states().items() if name.startswith(f"{queue}-") and state != off]
        if on:
            self.on_head("scontrol", "update", f"nodename={','.join(on)}", "state=power_down")
        self.until(lambda: {state for name, state in self.states().items() if name in on} <= {off})
        self.until(lambda: not self.nodes().keys() & {self.node(name)["NodeAddr"] for name in on})

    # --- its daemons

    def pid(self, *words: str) -> str:
        """The process of the head whose command line holds these words; empty where there is none."""
        return self.on_head("pgrep", "-o", "-f", " ".join(words))

    def restart_autoscaler(self, *options: str) -> None:
        """Ends the autoscaler and starts another, with these options."""
        self.on_head("pkill", "-f", AUTOSCALER)
        self.until(lambda: not self.pid(AUTOSCALER))
        self.start_autoscaler(*options)

    def start_autoscaler(self, *options: str) -> None:
        """Starts an autoscaler as the head's boot does."""
        command = f"exec setsid /opt/corral/bin/corral-agent autoscaler {' '.join(options)}"
        self.on_head("sh", "-c", f"{command} </dev/null >>/var/log/corral/corral-agent.log 2>&1 &")
        self.until(lambda: self.pid(AUTOSCALER))

    def kill_slurmctld(self) -> None:
        """Kills slurmctld, and returns when the one that the head starts next answers."""
        before = self.on_head("pgrep", "slurmctld")
        assert before, "no slurmctld runs"
        self.on_head("pkill", "-9", "slurmctld")
        self.until(lambda: self.on_head("pgrep", "slurmctld") not in ("", before))
        self.until(lambda: self.on_head("sinfo", "--noheader"))

    def until(self, found: Callable[[], Found], seconds: float = SOON_S) -> Found:
        """What `found` returns, as soon as it is true."""
        deadline = time.monotonic() + seconds
        while not (it := found()):
            assert time.monotonic() < deadline, f"nothing within {seconds} s\n{self.story()}"
            time.sleep(0.2)
        return it

    def story(self) -> str:
        """Jobs, nodes and logs, to explain a failure."""
        script = (
            "squeue; sinfo -N -o '%N %T %E'; tail -n 40 /var/lib/corral/events.jsonl /var/log/corral/corral-agent.log"
        )
        return self.on_head("sh", "-c", f"{script}; tail -n 40 /var/log/slurm/slurmctld.log")


def tag(instance: Any, key: str) -> str:
    """The value of an instance's tag; empty where it has none."""
    return next((str(one["Value"]) for one in instance.get("Tags", ()) if one["Key"] == key), "")


def _fields(line: str) -> dict[str, str]:
    """Slurm's fields by name; some values end with a blank."""
    pairs = (part.split("=", 1) for part in re.split(r" (?=[A-Z][\w:/]*=)", line.strip()) if "=" in part)
    return {name: value.strip() for name, value in pairs}


@contextmanager
def hurt_cluster(
    directory: Path, names: Sequence[str] = ("hurt",), system: Path | None = None, suspend_after: str = "1m"
) -> Iterator[list[Cluster]]:
    """Clusters of tests/life/environments that are up in one box, each on a base of its own with the same addresses.

    They are impatient: slurmctld marks silent nodes down soon, the autoscaler compares every 3 s, an offer without
    capacity backs off for 3 s at first. `system`: the root directory of the machines (default: this system).
    `suspend_after`: of each queue.
    """
    assert probe_host().users, probe_host().problem
    with boxes.running_box(directory / "box", machines=True, system=system) as box:
        life = begin(directory, box)
        for name in names:
            for stack in ("base", "cluster"):
                text = (ENVIRONMENTS / f"{stack}.yaml").read_text().replace("base: hurt", f"base: {name}")
                text = text.replace("suspend_after: 1m", f"suspend_after: {suspend_after}")
                (life.project / f"stacks/{stack}/Pulumi.{name}.yaml").write_text(text)
            life.done("up", name)
        clusters = [Cluster(life=life, name=name) for name in names]
        for cluster in clusters:
            cluster.until(lambda cluster=cluster: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
            script = f"printf '{IMPATIENT}' >> /etc/slurm/own.conf && scontrol reconfigure"
            cluster.on_head("sh", "-c", script)
            cluster.restart_autoscaler(*QUICK)
        yield clusters


QUICK = ("--interval", "3", "--backoff", "3")


def settled(cluster: Cluster) -> list[str]:
    """What is wrong with a cluster whose jobs have all ended; empty as soon as nothing is.

    No node is DOWN or drained, each node that is up has a machine, and each machine has a node.
    """
    deadline = time.monotonic() + SOON_S
    while (wrong := _wrong(cluster)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return wrong


def left_over(cluster: Cluster) -> list[str]:
    """What the box holds beyond what it held before the first up, and may not stay, once cluster and base are down."""
    before: dict[str, list[str]] = cluster.life.seen["before"]
    own = {(kind, one) for kind, ids in cluster.life.seen["own"] for one in ids}  # of the account, e.g. its policies
    return [
        f"{kind} {one}"
        for kind, ids in inventory(cluster.life.box.dir).items()
        for one in sorted(set(ids) - set(before.get(kind, ())))
        if (kind, one) not in own and kind not in _STAYS and not _KEPT.fullmatch(one)
    ]


def _wrong(cluster: Cluster) -> list[str]:
    lines = cluster.on_head("scontrol", "--oneliner", "show", "nodes").splitlines()
    nodes = [_fields(line) for line in lines]
    bad = [
        f"{one['NodeName']} is {one['State']}"
        for one in nodes
        if re.search("DOWN(?!_)|DRAIN|FAIL", _base(one["State"]))
    ]
    on = {one["NodeAddr"]: one["NodeName"] for one in nodes if "POWER" not in one["State"]}
    machines = cluster.nodes()
    orphans = [f"{machines[address]} has no node" for address in sorted(machines.keys() - on.keys())]
    lost = [f"{on[address]} has no machine" for address in sorted(on.keys() - machines.keys())]
    return ["no node is known"] if not nodes else [*bad, *orphans, *lost]


def _base(state: str) -> str:
    """A node's state without the words of power saving."""
    return "+".join(word for word in state.split("+") if not word.startswith("POWER"))
