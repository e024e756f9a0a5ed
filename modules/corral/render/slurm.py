"""slurm.conf, gres.conf and cgroup.conf of a cluster. What differs between kinds of host is in `host`.

The template names every key that is written, so `owned_keys` reads the keys from the template.
"""

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

from corral.catalog.slurm_releases import Release, parse_release, release_text
from corral.catalog.slurm_settings import Place, is_known, known, misfits, span_beside
from corral.model.cluster import ClusterPlan, GresPlan, QueuePlan
from corral.model.node_names import fold
from corral.model.timers import RESUME_TIMEOUT_S
from corral.render.host import HOST_KEYS
from corral.render.lines import Value, slurm_line
from corral.render.releases import ReleaseError, release_note, written_release
from corral.render.texts import fill

PROGRAMS = "/opt/corral/bin"  # the agent installs its entries here; Slurm takes a bare path, without arguments
CONF_TEMPLATE = "slurm/slurm.conf.j2"
# What a user may set otherwise in `slurm.extra`: corral's working does not rest on it.
DEFAULTS: Mapping[str, Value] = {
    "JobRequeue": 1,
    "MailProg": "/usr/bin/true",
    "PropagateResourceLimitsExcept": ("MEMLOCK", "NOFILE"),
    "SchedulerParameters": "nohold_on_prolog_fail",
    "TaskProlog": f"{PROGRAMS}/task-prolog",
}
_TREE_DEFAULT = 16
_TREE_HOPS = 3  # slurm.conf(5) of 24.11: 16 children reach 4368 nodes with three hops; more hops, longer timeouts
_KEY = re.compile(r"^([A-Z][A-Za-z]+)(?:=| )|\blines\.([A-Z][A-Za-z]+)", re.MULTILINE)


def slurm_conf(plan: ClusterPlan) -> str:
    """The text of slurm.conf. Raises ReleaseError for a Slurm that is too old."""
    release = written_release(plan.image.slurm_version)
    settings = {**cluster_settings(plan, release), **_defaults(plan.extra_slurm)}
    return fill(
        CONF_TEMPLATE,
        slurm_version=plan.image.slurm_version,
        note=release_note(plan.image.slurm_version),
        lines={key: slurm_line({key: value}) for key, value in settings.items()},
        extra=[slurm_line({key: with_ours(key, value)}) for key, value in plan.extra_slurm.items()],
        nodes=[node_line(queue) for queue in plan.queues],
        partitions=[partition_line(queue, release) for queue in plan.queues],
    )


def cluster_settings(plan: ClusterPlan, release: Release) -> Mapping[str, Value]:
    """The settings of slurm.conf that follow from the plan or the release, by key. None and empty: not written."""
    return {
        "ClusterName": plan.name,
        "SlurmctldHost": f"{plan.head.host_name}({plan.head.address})",
        "SlurmctldParameters": known(
            release,
            "SlurmctldParameters",
            ("cloud_reg_addrs", "enable_configless", "idle_on_node_suspend", "rl_enable"),
        ),
        "CommunicationParameters": known(release, "CommunicationParameters", ("NoAddrCache", "disable_http")),
        "TreeWidth": tree_width(release, sum(queue.max_nodes for queue in plan.queues)),
        "PrivateData": known(release, "PrivateData", ("cloud",)),
        "ResumeProgram": f"{PROGRAMS}/resume",
        "ResumeFailProgram": f"{PROGRAMS}/resume-failed",
        "SuspendProgram": f"{PROGRAMS}/suspend",
        "ResumeTimeout": RESUME_TIMEOUT_S,
        "Prolog": f"{PROGRAMS}/prolog",
        "HealthCheckProgram": f"{PROGRAMS}/health-check",
        "SuspendExcNodes": [name for queue in plan.queues for name in static_nodes(queue)],
        "GresTypes": gres_types(plan.queues),
        "AccountingStorageHost": str(plan.head.address),  # also for sacct on nodes, where no name need resolve
        "AccountingStorageEnforce": ("associations",) if any(queue.accounts for queue in plan.queues) else None,
        "AccountingStorageTRES": [f"gres/{name}" for name in gres_types(plan.queues)],
    }


def owned_keys() -> frozenset[str]:
    """The keys of slurm.conf that corral writes and nobody else may; those of host.conf are among them."""
    return frozenset({*template_keys(), *HOST_KEYS, "NodeName", "PartitionName"} - DEFAULTS.keys())


def template_keys() -> tuple[str, ...]:
    """Every key that the template of slurm.conf writes, sorted, with Include, without nodes and partitions."""
    text = files("corral").joinpath("templates", *CONF_TEMPLATE.split("/")).read_text(encoding="utf-8")
    found = _KEY.findall(text)
    return tuple(sorted({literal or placed for literal, placed in found}))


def check_own_keys(plan: ClusterPlan) -> None:
    """Raises ReleaseError with every own key of the user's that the plan's Slurm does not know: slurmctld ends over it.

    A spec is judged against its own image before; in the box the plan has another one, with another Slurm.
    """
    release = parse_release(plan.image.slurm_version)
    found = _foreign(release, Place.CONF, plan.extra_slurm, "slurm.extra")
    for queue in plan.queues:
        found += _foreign(release, Place.PARTITION, queue.extra, f"queue {queue.name}, extra")
    if found:
        raise ReleaseError("\n".join(found))


def with_ours(key: str, value: str) -> str:
    """A user's value, and what corral needs in the same list: a job whose node turned out sick must not be held."""
    needed = str(DEFAULTS["SchedulerParameters"])
    if key.lower() != "schedulerparameters" or needed in value.split(","):
        return value
    return f"{value},{needed}"


def gres_conf(plan: ClusterPlan) -> str:
    """The text of gres.conf."""
    return fill("slurm/gres.conf.j2", nodes=[gres_line(queue) for queue in plan.queues if queue.node.gres])


def cgroup_conf() -> str:
    """The text of cgroup.conf, the same for every cluster and every release."""
    return fill("slurm/cgroup.conf.j2")


def node_line(queue: QueuePlan) -> str:
    """The nodes of a queue. Slurm prefers low weights; within a queue all nodes are equal."""
    node = queue.node
    return slurm_line(
        {
            "NodeName": queue.node_names,
            "Sockets": node.sockets,
            "CoresPerSocket": node.cores_per_socket,
            "ThreadsPerCore": node.threads_per_core,
            "RealMemory": node.real_memory_mib,
            "Gres": _gres(node.gres),
            "Feature": features(queue),
            "Weight": 1 if queue.weight is None else queue.weight,
            "State": "CLOUD",
        }
    )


def partition_line(queue: QueuePlan, release: Release) -> str:
    """The partition of a queue: its limits, who may use it, when its idle nodes go, and the user's further keys."""
    return slurm_line(
        {
            "PartitionName": queue.name,
            "Nodes": queue.node_names,
            "Default": queue.is_default,
            "MaxTime": "INFINITE" if queue.time_limit_s is None else slurm_time(queue.time_limit_s),
            "AllowAccounts": queue.accounts,
            **(_whole_nodes(release) if queue.exclusive else {}),
            "SuspendTime": queue.suspend_after_s,
            **_default_shares(queue),
            **queue.extra,
            "State": "UP",
        }
    )


def gres_line(queue: QueuePlan) -> str:
    """The device files behind a queue's accelerators."""
    gres = queue.node.gres
    if gres is None:
        raise ValueError(f"queue {queue.name} has no accelerators")
    name = gres.name
    device = {"gpu": "/dev/nvidia", "neuron": "/dev/neuron"}[name]
    files = f"{device}[0-{gres.count - 1}]" if gres.count > 1 else f"{device}0"
    return slurm_line({"NodeName": queue.node_names, "Name": name, "Type": gres.type, "File": files})


def gres_types(queues: Iterable[QueuePlan]) -> tuple[str, ...]:
    """The names of generic resources that these queues have, sorted."""
    return tuple(sorted({queue.node.gres.name for queue in queues if queue.node.gres}))


def features(queue: QueuePlan) -> tuple[str, ...]:
    """What `sbatch --constraint` can ask for."""
    return (queue.instance_type, *(("efa",) if queue.efa else ()))


def static_nodes(queue: QueuePlan) -> tuple[str, ...]:
    """The nodes that never go away, folded: none or one name.

    They are named: what a count (`train-[1-4]:2`) protects is not the same in every release (see 24.05).
    """
    return (fold(queue.static_nodes),) if queue.static_nodes else ()


def tree_width(release: Release, nodes: int) -> int | None:
    """How many nodes one passes a message on to; None is Slurm's own.

    Wider only as far as three hops reach all nodes; where nodes do not know each other, one hop must.
    """
    if is_known(release, "TreeWidth=65533"):
        return 65533
    width = _TREE_DEFAULT
    while sum(width**hop for hop in range(1, _TREE_HOPS + 1)) < nodes:
        width += 1
    return None if width == _TREE_DEFAULT else width


def slurm_time(seconds: int) -> str:
    """A duration as Slurm writes it, `1-12:00:00`: a bare number would be minutes."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}-{hour:02}:{minute:02}:{second:02}"


def _foreign(release: Release, place: Place, own: Mapping[str, str], where: str) -> list[str]:
    settings = [row for key, value in own.items() for row in misfits(release, place, key, value)]
    return [
        f"{where}: {row.text} is for {span_beside(release, row)}, this is {release_text(release)}" for row in settings
    ]


def _defaults(own: Mapping[str, str]) -> Mapping[str, Value]:
    """DEFAULTS, without those that the user's own keys replace; Slurm takes keys in any case."""
    replaced = {key.lower() for key in own}
    return {key: None if key.lower() in replaced else value for key, value in DEFAULTS.items()}


def _gres(gres: GresPlan | None) -> str | None:
    return f"{gres.name}:{gres.type}:{gres.count}" if gres else None


def _whole_nodes(release: Release) -> dict[str, str]:
    return {"Exclusive": "NODE"} if is_known(release, "Exclusive") else {"OverSubscribe": "EXCLUSIVE"}


def _default_shares(queue: QueuePlan) -> dict[str, int]:
    """What a job gets that asks for neither memory nor CPUs: memory by CPU, and CPUs by GPU where it has any.

    Without it the first job would take all memory, as would a job without GPUs if memory were given by GPU alone.
    slurm.conf(5) has the defaults by CPU, GPU and node exclude each other, so the way goes over the CPUs. Slurm counts
    CPUs by GPU for the resource of that name alone.
    """
    node = queue.node
    cpus = node.sockets * node.cores_per_socket * node.threads_per_core
    shares = {"DefCpuPerGPU": max(1, cpus // node.gres.count)} if node.gres and node.gres.name == "gpu" else {}
    if any(key.lower() == "defmempernode" for key in queue.extra):
        return shares
    return {"DefMemPerCPU": node.real_memory_mib // cpus, **shares}
