"""Real Slurm for tests: a cluster's rendered files in a slurmctld, what scontrol says of it, and nodes that register.

Starting and stopping is corral.box.slurm's; here is what only tests want.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from corral.box.slurm import Controller, running_slurmctld
from corral.model.cluster import ClusterPlan, GresPlan, NodePlan
from corral.render import cluster_files
from corral.render.host import HostFacts, host_conf
from render.plans import cpu, dev, train

# Lines that slurmctld calls errors and that say nothing about the files.
HARMLESS = (
    # Debian's Slurm has a PMIx plugin, but does not depend on PMIx; `MpiDefault=none` does not load it, the list does.
    "pmi/pmix: can not load PMIx library",
    "Couldn't load specified plugin name for mpi/pmix_v4",
    "Cannot create context for mpi/pmix_v4",
    # The first start of a cluster finds no state.
    "state file /var/lib/corral/slurmctld/",
    "NOTE: Trying backup state save file.",
    # How busy the machine is that runs the test.
    "High latency for 1000 calls to gettimeofday()",
)
# Any host can pose as a planned node: jobs run as root, so that no user has to exist.
SMALL_HOST = HostFacts(slurm_user="root", cgroups=False, poses=True)

# What the agent will do with machines, done with a process on the head: each node is a slurmd that just booted. Not in
# the second of the request: slurmctld counts in whole ones, and a boot that seems to be before it is none.
RESUME = """#!/bin/sh
for node in $(/usr/bin/scontrol show hostnames "$1"); do
    setsid /bin/sh -c "sleep 1; exec /usr/sbin/slurmd -D -b -N $node --conf-server 127.0.0.1:6817" \
        >>/mnt/resumed.out 2>&1 </dev/null &
done
"""


def wide(slurm_version: str) -> ClusterPlan:
    """A cluster that uses all that a plan can say to Slurm: kinds of accelerators, static nodes, limits, own keys."""
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
def running_cluster(plan: ClusterPlan, directory: Path) -> Iterator[Controller]:
    """A slurmctld with this plan's files exactly as they are deployed."""
    with running_slurmctld(cluster_files(plan), directory) as controller:
        yield controller


@contextmanager
def running_cluster_with_nodes(plan: ClusterPlan, directory: Path) -> Iterator[Controller]:
    """A slurmctld with this plan's files, but another host.conf, whose nodes register when they are resumed.

    All share the head's network namespace and so one port: resume one node at a time. Needs root.
    """
    files = {**cluster_files(plan), "slurm/host.conf": host_conf(SMALL_HOST)}
    with running_slurmctld(files, directory) as controller:
        resume = directory / "opt/corral/bin/resume"
        resume.write_text(RESUME)
        for program in ("prolog", "health-check"):  # these nodes are no machines of anybody's
            (directory / "opt/corral/bin" / program).write_text("#!/bin/sh\n")
        (directory / "var/spool/slurmd").mkdir(parents=True)
        # Devices that stand for accelerators, in the namespace's own /dev.
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
    """What the command printed; it must have succeeded."""
    code, out, error = (getattr(done, name) for name in ("returncode", "stdout", "stderr"))
    assert code == 0, error
    return str(out)


def scontrol(controller: Controller, *arguments: str) -> str:
    """What scontrol printed."""
    return must(controller.run("scontrol", *arguments))


def show_config(controller: Controller) -> Mapping[str, str]:
    """`scontrol show config` by key, without the blanks that line it up."""
    lines = (line.partition(" = ") for line in scontrol(controller, "show", "config").splitlines())
    return {key.strip(): value.strip() for key, found, value in lines if found}


def show(controller: Controller, kind: str) -> Sequence[Mapping[str, str]]:
    """`scontrol show nodes` or `partitions`: the fields of each, in scontrol's order."""
    lines = scontrol(controller, "--all", "--oneliner", "show", kind).splitlines()
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines if line]


def complaints(controller: Controller) -> Sequence[str]:
    """The lines of slurmctld's log that are errors or warnings and are not known to be harmless."""
    lines = [
        line for line in controller.log().splitlines() if any(w in line.lower() for w in ("error", "warning", "fatal"))
    ]
    return [line for line in lines if not any(known in line for known in HARMLESS)]
