"""Real Slurm for tests: slurmctld with a cluster's rendered files, the output of scontrol, and nodes that register.

tools/slurm_head starts and stops slurmctld; this module has what only tests need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tools.slurm_head.controller import Controller, running_slurmctld

from corral.model.cluster import ClusterPlan, GresPlan, NodePlan
from corral.render import cluster_files
from corral.render.host_conf import HostFacts, host_conf
from render.plans import cpu, dev, train

# Lines that slurmctld logs as errors and that do not concern the files.
HARMLESS = (
    # Debian's Slurm has a PMIx plugin, but does not depend on PMIx; `MpiDefault=none` does not load it, the list does.
    "pmi/pmix: can not load PMIx library",
    "Couldn't load specified plugin name for mpi/pmix_v4",
    "Cannot create context for mpi/pmix_v4",
    # The first start of a cluster finds no state.
    "state file /var/lib/corral/slurmctld/",
    "NOTE: Trying backup state save file.",
    # The load of the machine that runs the test.
    "High latency for 1000 calls to gettimeofday()",
)
# Any host can pose as a planned node: jobs run as root, so that no user has to exist.
SMALL_HOST = HostFacts(slurm_user="root", cgroups=False, poses=True)

# Does with processes on the head what the agent does with machines: each node is a slurmd that just booted. It starts a
# second after the request: slurmctld counts whole seconds, and ignores a boot that seems to be before the request.
RESUME = """#!/bin/sh
for node in $(/usr/bin/scontrol show hostnames "$1"); do
    setsid /bin/sh -c "sleep 1; exec /usr/sbin/slurmd -D -b -N $node --conf-server 127.0.0.1:6817" \
        >>/mnt/resumed.out 2>&1 </dev/null &
done
sleep 0.5 # newer releases kill the rest of the program's process group, which setsid has left by then
"""


def wide(slurm_version: str) -> ClusterPlan:
    """A cluster that uses every Slurm setting of a plan: two kinds of accelerators, static nodes, limits, own keys."""
    neuron = NodePlan(
        sockets=2,
        cores_per_socket=48,
        threads_per_core=2,
        real_memory_mib=1992294,
        gres=GresPlan(type="trainium2", count=16, name="neuron"),
    )
    queues = (
        replace(train(5000), min_nodes=2),
        replace(train(), name="trn", instance_type="trn2.48xlarge", is_default=False, node=neuron, exclusive=True),
        replace(cpu(), weight=7, accounts=("physics", "ml"), extra={"PriorityTier": "3"}),
    )
    own = {"MailProg": "/bin/true", "MaxJobCount": "20000", "SchedulerParameters": "bf_window=2880,bf_continue"}
    return replace(dev(*queues, slurm_version=slurm_version), extra_slurm=own)


@contextmanager
def running_cluster(plan: ClusterPlan, directory: Path, *, accounting: bool = False) -> Iterator[Controller]:
    """Run a slurmctld with this plan's files exactly as deployed."""
    with running_slurmctld(cluster_files(plan), directory, accounting=accounting) as controller:
        yield controller


@contextmanager
def running_cluster_with_nodes(
    plan: ClusterPlan, directory: Path, root: Path = Path("/"), *, accounting: bool = False
) -> Iterator[Controller]:
    """Run a slurmctld with this plan's files except host.conf, whose nodes register when they are resumed.

    `root`: the root directory of the system that Slurm is taken from. All nodes share the head's network namespace and
    so one port: resume one node at a time. Needs root.
    """
    files = {**cluster_files(plan), "slurm/host.conf": host_conf(SMALL_HOST)}
    # slurmctld takes changes of accounts only from a slurmdbd of its own user; with 26.05, sacctmgr hangs otherwise.
    files["accounting/slurmdbd.conf"] = files["accounting/slurmdbd.conf"].replace("User=slurm\n", "User=root\n")
    with running_slurmctld(files, directory, root, accounting=accounting) as controller:
        resume = directory / "opt/corral/bin/resume"
        resume.write_text(RESUME)
        for program in ("prolog", "health-check"):  # these nodes are not machines
            (directory / "opt/corral/bin" / program).write_text("#!/bin/sh\n")
        (directory / "var/spool/slurmd").mkdir(parents=True)
        # Stand-ins for accelerators, in the namespace's own /dev.
        must(controller.run("sh", "-ec", DEVICES))
        yield controller


DEVICES = """
mkdir /mnt/dev && mount -t tmpfs tmpfs /mnt/dev && cd /mnt/dev
for name in null zero full random urandom tty; do touch $name && mount --bind /dev/$name $name; done
for number in 0 1 2 3 4 5 6 7; do ln -s null nvidia$number; done
for number in $(seq 0 15); do ln -s null neuron$number; done
ln -s /proc/self/fd fd
mount --rbind /mnt/dev /dev
"""


def must(done: object) -> str:
    """The stdout of a command, which must have succeeded."""
    code, out, error = (getattr(done, name) for name in ("returncode", "stdout", "stderr"))
    assert code == 0, error
    return str(out)


def scontrol(controller: Controller, *arguments: str) -> str:
    """The output of scontrol."""
    return must(controller.run("scontrol", *arguments))


def show_config(controller: Controller) -> Mapping[str, str]:
    """`scontrol show config` by key, without the padding."""
    lines = (line.partition(" = ") for line in scontrol(controller, "show", "config").splitlines())
    return {key.strip(): value.strip() for key, found, value in lines if found}


def show(controller: Controller, kind: str) -> Sequence[Mapping[str, str]]:
    """`scontrol show nodes` or `partitions`: the fields of each, in scontrol's order."""
    lines = scontrol(controller, "--all", "--oneliner", "show", kind).splitlines()
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines if line]


def unexpected_log_lines(controller: Controller) -> Sequence[str]:
    """The errors and warnings in slurmctld's log, except the harmless ones."""
    lines = [
        line for line in controller.log().splitlines() if any(w in line.lower() for w in ("error", "warning", "fatal"))
    ]
    return [line for line in lines if not any(known in line for known in HARMLESS)]
