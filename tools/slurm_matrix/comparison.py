"""Compare what a real Slurm reads from a plan's files, by scontrol and slurmd, with the plan.

The expected values come from the plan or from the text of the files, never from Slurm's output.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.slurm_head.controller import Controller, running_slurmctld, without_accounting

import slurms
from corral.catalog.slurm.conf_keys import is_known
from corral.catalog.slurm.releases import parse_release
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.render import cluster_files
from corral.render.slurm_conf import features, slurm_time
from render.slurm_files import settings

# Warnings of slurmd that do not concern the files: here it runs on the machine of slurmctld.
HARMLESS_TO_SLURMD = ("Running with local config file despite", "cgroup/v1 plugin is deprecated")


def differences(plan: ClusterPlan, root: Path, directory: Path) -> tuple[str, ...]:
    """The differences between the plan and what the Slurm of this root read, and its errors and warnings.

    Raises SlurmError if slurmctld does not start.
    """
    files = without_accounting(cluster_files(plan))
    with running_slurmctld(files, directory, root) as controller:
        found = (
            *_of_release(plan, controller),
            *_of_config(files, controller),
            *_of_nodes(plan, controller),
            *_of_partitions(plan, controller),
            *_of_accelerators(plan, controller, directory),
            *slurms.unexpected_log_lines(controller),
        )
    return tuple(found)


def _of_release(plan: ClusterPlan, controller: Controller) -> Iterator[str]:
    runs = slurms.show_config(controller)["SLURM_VERSION"]
    if parse_release(runs) != parse_release(plan.image.slurm_version):
        yield f"this is Slurm {runs}, the files are for {plan.image.slurm_version}"


def _of_config(files: Mapping[str, str], controller: Controller) -> Iterator[str]:
    """scontrol must show every setting of the files."""
    shown = slurms.show_config(controller)
    for name in ("slurm.conf", "host.conf", "cgroup.conf"):
        for key, value in settings(files[f"slurm/{name}"]).items():
            # Settings with several values are numbered: hosts in every release, prologs from 24.11 on.
            found = shown.get(key, shown.get(f"{key}[0]", "nothing"))
            yield from _unequal(f"{name}: {key}", _plain(value), _plain(found))


def _plain(value: str) -> tuple[str, ...]:
    """A value without Slurm's formatting: case, units, the order of a list, a user's id."""
    bare = value.removesuffix(" ms").removesuffix(" sec").removesuffix(" nodes/min").lower()
    user, found, number = bare.partition("(")
    if found and number.removesuffix(")").isdigit():
        bare = user
    return tuple(sorted(bare.split(",")))


def _of_nodes(plan: ClusterPlan, controller: Controller) -> Iterator[str]:
    expected = {
        f"{queue.name}-{number}": planned_node(queue)
        for queue in plan.queues
        for number in range(1, queue.max_nodes + 1)
    }
    shown = {node["NodeName"]: node for node in slurms.show(controller, "nodes")}
    yield from _unequal("names of nodes", sorted(expected), sorted(shown))
    for name in sorted(expected.keys() & shown.keys()):
        yield from _unequal(name, expected[name], {key: shown[name].get(key) for key in expected[name]})


def planned_node(queue: QueuePlan) -> Mapping[str, str]:
    """A node of the queue as scontrol should show it."""
    node = queue.node
    gres = f"{node.gres.name}:{node.gres.type}:{node.gres.count}" if node.gres else "(null)"
    return {
        "Sockets": str(node.sockets),
        "CoresPerSocket": str(node.cores_per_socket),
        "ThreadsPerCore": str(node.threads_per_core),
        "CPUTot": str(node.sockets * node.cores_per_socket * node.threads_per_core),
        "RealMemory": str(node.real_memory_mib),
        "Gres": gres,
        "AvailableFeatures": ",".join(features(queue)),
        "Weight": str(queue.weight or 1),
        "State": "IDLE+CLOUD+POWERED_DOWN",
        "Partitions": queue.name,
    }


def _of_partitions(plan: ClusterPlan, controller: Controller) -> Iterator[str]:
    release = parse_release(plan.image.slurm_version)
    expected = {queue.name: planned_partition(queue, new_form=is_known(release, "Exclusive")) for queue in plan.queues}
    shown = {partition["PartitionName"]: partition for partition in slurms.show(controller, "partitions")}
    yield from _unequal("names of partitions", sorted(expected), sorted(shown))
    for name in sorted(expected.keys() & shown.keys()):
        yield from _unequal(name, expected[name], {key: shown[name].get(key) for key in expected[name]})


def planned_partition(queue: QueuePlan, *, new_form: bool) -> Mapping[str, str]:
    """The queue's partition as scontrol should show it. `new_form`: `Exclusive` instead of `OverSubscribe`."""
    whole = {"Exclusive": "NODE"} if new_form else {"OverSubscribe": "EXCLUSIVE"}
    return {
        "Nodes": queue.node_names,
        "TotalNodes": str(queue.max_nodes),
        "Default": "YES" if queue.is_default else "NO",
        "MaxTime": "UNLIMITED" if queue.time_limit_s is None else slurm_time(queue.time_limit_s).removeprefix("0-"),
        "AllowAccounts": ",".join(queue.accounts) or "ALL",
        **(whole if queue.exclusive else {}),
        "SuspendTime": str(queue.suspend_after_s),
        **queue.extra,
        "State": "UP",
    }


def _of_accelerators(plan: ClusterPlan, controller: Controller, directory: Path) -> Iterator[str]:
    """Compare what slurmd reads from gres.conf and cgroup.conf on a node of each queue with accelerators."""
    if not any(queue.node.gres for queue in plan.queues):
        return
    (directory / "var/spool/slurmd").mkdir(parents=True, exist_ok=True)
    slurms.must(controller.run("sh", "-ec", slurms.DEVICES))
    for queue in plan.queues:
        if queue.node.gres:
            done = controller.run("slurmd", "-G", "-N", f"{queue.name}-1")
            yield from _unequal(f"{queue.name}-1: slurmd -G", planned_devices(queue), _devices(done.stderr))


def planned_devices(queue: QueuePlan) -> str:
    """The accelerators of a node as `slurmd -G` should print them."""
    gres = queue.node.gres
    assert gres is not None
    device = {"gpu": "nvidia", "neuron": "neuron"}[gres.name]
    numbers = f"[0-{gres.count - 1}]" if gres.count > 1 else "0"
    return f"Name={gres.name} Type={gres.type} Count={gres.count} File=/dev/{device}{numbers}"


def _devices(printed: str) -> str:
    """The relevant fields of a gres; the whole output if slurmd printed anything else."""
    lines = [line for line in printed.splitlines() if not any(known in line for known in HARMLESS_TO_SLURMD)]
    if len(lines) != 1:
        return printed
    fields = dict(word.split("=", 1) for word in lines[0].split() if "=" in word)
    return " ".join(f"{key}={fields.get(key)}" for key in ("Name", "Type", "Count", "File"))


def _unequal(what: str, planned: object, shown: object) -> Iterator[str]:
    if planned != shown:
        yield f"{what}: planned {planned}, Slurm has {shown}"
