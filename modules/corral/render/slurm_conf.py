"""slurm.conf, gres.conf and cgroup.conf of a cluster. What differs between kinds of host is in `host`."""

from collections.abc import Iterable, Mapping

from corral.catalog.slurm.conf_keys import ConfSection, is_known, known, supported_releases, unsupported_settings
from corral.catalog.slurm.releases import Release, parse_release, release_text
from corral.model.accounts import AccountsPlan
from corral.model.cluster import ClusterPlan, GresPlan, QueuePlan
from corral.model.node_names import fold
from corral.model.timeouts import RESUME_TIMEOUT_S
from corral.model.users import AccessPlan
from corral.render.conf_line import Value, slurm_line
from corral.render.hooks import hook_defaults, hook_settings
from corral.render.nearest_release import ReleaseError, release_remark, written_release
from corral.render.templates import fill

PROGRAMS = "/opt/corral/bin"  # the agent installs its entry points here; Slurm accepts a path without arguments
CONF_TEMPLATE = "slurm/slurm.conf.j2"
# Defaults that users may override in `slurm.extra`: corral does not depend on them.
DEFAULTS: Mapping[str, Value] = {
    "JobRequeue": 1,
    "MailProg": "/usr/bin/true",
    "PropagateResourceLimitsExcept": ("MEMLOCK", "NOFILE"),
    "SchedulerParameters": "nohold_on_prolog_fail",
    "TaskProlog": f"{PROGRAMS}/task-prolog",
}
# With accounts, in addition. Fair share decides between people; a QOS's priority is normalized to that of the highest,
# so it comes first; age decides between jobs of one person.
PRIORITIES: Mapping[str, Value] = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": 1000,
    "PriorityWeightFairshare": 100_000,
    "PriorityWeightQOS": 1_000_000,
}
# With QOS that preempt others, in addition.
PREEMPTION: Mapping[str, Value] = {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}
_WAITS_FOR_SYSTEMD = parse_release("24.05")  # the first slurmd with SystemdTimeout
# The first slurmd that starts a TaskProlog by slurmstepd, which lacks its libraries in a container: decision 219.
_LAUNCHES_SCRIPTS = parse_release("24.11")
_SYSTEMD_TIMEOUT_MS = 30_000  # a machine that boots was seen to need more than Slurm's 1 s
_TREE_DEFAULT = 16
_TREE_HOPS = 3  # slurm.conf(5) of 24.11: 16 children reach 4368 nodes with three hops; more hops, longer timeouts


def slurm_conf(plan: ClusterPlan) -> str:
    """The text of slurm.conf. Raises ReleaseError for a Slurm that is too old."""
    release = written_release(plan.image.slurm_version)
    oldest = min(written_release(image.slurm_version) for image in plan.images.values())  # the nodes read it, too
    settings = {**cluster_settings(plan, release, oldest), **_defaults(plan)}
    return fill(
        CONF_TEMPLATE,
        slurm_version=plan.image.slurm_version,
        note=release_remark(plan.image.slurm_version),
        lines={key: slurm_line({key: value}) for key, value in settings.items()},
        extra=[slurm_line({key: with_required_flags(key, value)}) for key, value in plan.extra_slurm.items()],
        nodes=[node_line(queue) for queue in plan.queues],
        partitions=[partition_line(queue, oldest) for queue in plan.queues],
    )


def cluster_settings(plan: ClusterPlan, release: Release, oldest: Release) -> Mapping[str, Value]:
    """The settings of slurm.conf that follow from the plan or the release, by key. Omits None and empty.

    `oldest`: the release of the oldest nodes, which decides how messages reach them.
    """
    return {
        "ClusterName": plan.name,
        "SlurmctldHost": f"{plan.head.host_name}({plan.head.address})",
        "SlurmctldParameters": known(
            release,
            "SlurmctldParameters",
            (
                *("cloud_reg_addrs", "disable_triggers", "enable_configless", "idle_on_node_suspend"),
                *_preemption_signal(plan),
                "rl_enable",
            ),
        ),
        "CommunicationParameters": (
            *known(oldest, "CommunicationParameters", ("NoAddrCache",)),
            *known(release, "CommunicationParameters", ("disable_http",)),
        ),
        "TreeWidth": tree_width(oldest, sum(queue.max_nodes for queue in plan.queues)),
        "PrivateData": (*known(release, "PrivateData", ("cloud",)), *private_data(plan.access)),
        "ResumeProgram": f"{PROGRAMS}/resume",
        "ResumeFailProgram": f"{PROGRAMS}/resume-failed",
        "SuspendProgram": f"{PROGRAMS}/suspend",
        "ResumeTimeout": RESUME_TIMEOUT_S,
        "Prolog": f"{PROGRAMS}/prolog",
        "Epilog": f"{PROGRAMS}/epilog",
        **hook_settings(plan.hooks, PROGRAMS),
        "HealthCheckProgram": f"{PROGRAMS}/health-check",
        "SuspendExcNodes": [name for queue in plan.queues for name in _fold_static_nodes(queue)],
        "GresTypes": gres_types(plan.queues),
        "AccountingStorageHost": str(plan.head.address),  # sacct on nodes works without DNS
        "AccountingStorageEnforce": enforced(plan.accounts),
        "AccountingStorageTRES": [f"gres/{name}" for name in gres_types(plan.queues)],
    }


def private_data(access: AccessPlan) -> tuple[str, ...]:
    """What people do not see of each other; root and Slurm's operators see everything.

    In slurmdbd everybody needs an account for that: it shows those without one not even their own jobs (decision 182).
    """
    return ("jobs", "usage") if access.has_people and not access.shows_jobs else ()


def enforced(accounts: AccountsPlan) -> tuple[str, ...]:
    """What slurmctld requires of jobs. `safe`: a job with a budget starts only if its time limit fits into the rest."""
    if not accounts.enforced:
        return ()
    return ("associations", "limits", "qos", *(("safe",) if accounts.has_budgets else ()))


def _preemption_signal(plan: ClusterPlan) -> tuple[str, ...]:
    """The flag by which a preempted job gets its own signal (`--signal`) at once, not just before its time limit."""
    preempts = plan.accounts.preempts or any(key.lower() == "preempttype" for key in plan.extra_slurm)
    return ("preempt_send_user_signal",) if preempts else ()


def check_own_keys(plan: ClusterPlan) -> None:
    """Raise ReleaseError with every key in `extra` that the plan's Slurm does not know: slurmctld exits on it.

    The spec was validated against its own image; in the box the plan has another image with another Slurm.
    """
    release = parse_release(plan.image.slurm_version)
    found = _foreign(release, ConfSection.CONF, plan.extra_slurm, "slurm.extra")
    for queue in plan.queues:
        found += _foreign(release, ConfSection.PARTITION, queue.extra, f"queue {queue.name}, extra")
    if found:
        raise ReleaseError("\n".join(found))


def with_required_flags(key: str, value: str) -> str:
    """A user's value merged with the flags that corral needs: a job on an unhealthy node must not be held."""
    needed = str(DEFAULTS["SchedulerParameters"])
    if key.lower() != "schedulerparameters" or needed in value.split(","):
        return value
    return f"{value},{needed}"


def gres_conf(plan: ClusterPlan) -> str:
    """The text of gres.conf."""
    return fill("slurm/gres.conf.j2", nodes=[gres_line(queue) for queue in plan.queues if queue.node.gres])


def cgroup_conf(plan: ClusterPlan) -> str:
    """The text of cgroup.conf, which every node's slurmd reads."""
    oldest = min(written_release(image.slurm_version) for image in plan.images.values())
    timeout_ms = _SYSTEMD_TIMEOUT_MS if oldest >= _WAITS_FOR_SYSTEMD else None
    return fill("slurm/cgroup.conf.j2", systemd_timeout_ms=timeout_ms)


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
    """The partition of a queue: limits, access, idle timeout, and the user's keys."""
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
    """The names of these queues' generic resources, sorted."""
    return tuple(sorted({queue.node.gres.name for queue in queues if queue.node.gres}))


def features(queue: QueuePlan) -> tuple[str, ...]:
    """The features for `sbatch --constraint`."""
    return (queue.instance_type, *(("efa",) if queue.efa else ()))


def _fold_static_nodes(queue: QueuePlan) -> tuple[str, ...]:
    """The static nodes, folded into one name; empty if there are none.

    By name, since the meaning of a count (`train-[1-4]:2`) differs between releases (see 24.05).
    """
    return (fold(queue.static_nodes),) if queue.static_nodes else ()


def tree_width(release: Release, nodes: int) -> int | None:
    """TreeWidth: how many nodes one node forwards a message to; None for Slurm's default.

    Only as wide as needed to reach all nodes in three hops; in one hop where nodes do not know each other.
    """
    if is_known(release, "TreeWidth=65533"):
        return 65533
    width = _TREE_DEFAULT
    while sum(width**hop for hop in range(1, _TREE_HOPS + 1)) < nodes:
        width += 1
    return None if width == _TREE_DEFAULT else width


def slurm_time(seconds: int) -> str:
    """A duration in Slurm's notation, `1-12:00:00`: a bare number would be minutes."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}-{hour:02}:{minute:02}:{second:02}"


def _foreign(release: Release, section: ConfSection, own: Mapping[str, str], where: str) -> list[str]:
    settings = [row for key, value in own.items() for row in unsupported_settings(release, section, key, value)]
    return [
        f"{where}: {row.text} is for {supported_releases(release, row)}, this is {release_text(release)}"
        for row in settings
    ]


def _defaults(plan: ClusterPlan) -> Mapping[str, Value]:
    """The defaults without the keys that the user sets; Slurm ignores the case of keys."""
    replaced = {key.lower() for key in plan.extra_slurm}
    defaults = {
        **DEFAULTS,
        **({} if _runs_task_prolog(plan) else {"TaskProlog": None}),
        **(PREEMPTION if plan.accounts.preempts else dict.fromkeys(PREEMPTION)),
        **hook_defaults(plan.hooks),
        **(PRIORITIES if plan.accounts.enforced else dict.fromkeys(PRIORITIES)),
    }
    return {key: None if key.lower() in replaced else value for key, value in defaults.items()}


def _runs_task_prolog(plan: ClusterPlan) -> bool:
    """False where a TaskProlog would fail in each container of Pyxis; that of corral has a plugin in its place."""
    own_pyxis = any("spank_pyxis" in line for line in plan.hooks.plugstack)
    newest = max(written_release(image.slurm_version) for image in plan.images.values())
    return not (plan.containers.are_used or (own_pyxis and newest >= _LAUNCHES_SCRIPTS))


def _gres(gres: GresPlan | None) -> str | None:
    return f"{gres.name}:{gres.type}:{gres.count}" if gres else None


def _whole_nodes(release: Release) -> dict[str, str]:
    return {"Exclusive": "NODE"} if is_known(release, "Exclusive") else {"OverSubscribe": "EXCLUSIVE"}


def _default_shares(queue: QueuePlan) -> dict[str, int]:
    """Defaults for a job that requests neither memory nor CPUs: memory by CPU, and CPUs by GPU.

    Without defaults the first job would take all memory, as would a job without GPUs if memory were set by GPU only.
    The defaults by CPU, GPU and node exclude each other (slurm.conf(5)), so memory follows the CPUs. Slurm counts CPUs
    by GPU only for the generic resource `gpu`.
    """
    node = queue.node
    cpus = node.sockets * node.cores_per_socket * node.threads_per_core
    shares = {"DefCpuPerGPU": max(1, cpus // node.gres.count)} if node.gres and node.gres.name == "gpu" else {}
    if any(key.lower() == "defmempernode" for key in queue.extra):
        return shares
    return {"DefMemPerCPU": node.real_memory_mib // cpus, **shares}
