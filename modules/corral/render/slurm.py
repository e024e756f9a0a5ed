"""slurm.conf, gres.conf and cgroup.conf of a cluster. What differs between kinds of host is in `host`."""

from corral.model.cluster import ClusterPlan, GresPlan, NodePlan, QueuePlan
from corral.render.lines import slurm_line
from corral.render.releases import line_if_known, parse_release
from corral.render.texts import fill

PROGRAMS = "/opt/corral/bin"  # the agent installs its entries here; Slurm takes a bare path, without arguments


def slurm_conf(plan: ClusterPlan) -> str:
    """The text of slurm.conf."""
    release = parse_release(plan.image.slurm_version)
    parameters = ("cloud_reg_addrs", "enable_configless", "idle_on_node_suspend", "rl_enable")
    return fill(
        "slurm/slurm.conf.j2",
        slurm_version=plan.image.slurm_version,
        cluster=slurm_line({"ClusterName": plan.name}),
        controller=slurm_line({"SlurmctldHost": f"{plan.head.host_name}({plan.head.address})"}),
        slurmctld_parameters=line_if_known(release, "SlurmctldParameters", *parameters),
        communication=line_if_known(release, "CommunicationParameters", "NoAddrCache"),
        tree_width=line_if_known(release, "TreeWidth", "65533"),
        private_data=line_if_known(release, "PrivateData", "cloud"),
        gres_types=slurm_line({"GresTypes": "gpu" if any(queue.node.gres for queue in plan.queues) else None}),
        programs=[
            slurm_line({"ResumeProgram": f"{PROGRAMS}/resume"}),
            slurm_line({"ResumeFailProgram": f"{PROGRAMS}/resume-failed"}),
            slurm_line({"SuspendProgram": f"{PROGRAMS}/suspend"}),
        ],
        never_suspended=slurm_line({"SuspendExcNodes": [n for queue in plan.queues for n in static_nodes(queue)]}),
        nodes=[node_line(queue) for queue in plan.queues],
        partitions=[partition_line(queue) for queue in plan.queues],
    )


def gres_conf(plan: ClusterPlan) -> str:
    """The text of gres.conf."""
    return fill("slurm/gres.conf.j2", nodes=[gres_line(queue) for queue in plan.queues if queue.node.gres])


def cgroup_conf() -> str:
    """The text of cgroup.conf, the same for every cluster."""
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
            "Weight": 1,
            "State": "CLOUD",
        }
    )


def partition_line(queue: QueuePlan) -> str:
    """The partition of a queue: its limits, and when its idle nodes go."""
    return slurm_line(
        {
            "PartitionName": queue.name,
            "Nodes": queue.node_names,
            "Default": queue.is_default,
            "MaxTime": "INFINITE" if queue.time_limit_s is None else slurm_time(queue.time_limit_s),
            "SuspendTime": queue.suspend_after_s,
            **_default_memory(queue.node),
            "State": "UP",
        }
    )


def gres_line(queue: QueuePlan) -> str:
    """The device files behind a queue's accelerators."""
    gres = queue.node.gres
    if gres is None:
        raise ValueError(f"queue {queue.name} has no accelerators")
    files = f"/dev/nvidia[0-{gres.count - 1}]" if gres.count > 1 else "/dev/nvidia0"
    return slurm_line({"NodeName": queue.node_names, "Name": "gpu", "Type": gres.type, "File": files})


def features(queue: QueuePlan) -> tuple[str, ...]:
    """What `sbatch --constraint` can ask for."""
    return (queue.instance_type, *(("efa",) if queue.efa else ()))


def static_nodes(queue: QueuePlan) -> tuple[str, ...]:
    """The nodes that never go away, folded: none or one name."""
    if queue.min_nodes == 0:
        return ()
    return (f"{queue.name}-[1-{queue.min_nodes}]" if queue.min_nodes > 1 else f"{queue.name}-1",)


def slurm_time(seconds: int) -> str:
    """A duration as Slurm writes it, `1-12:00:00`: a bare number would be minutes."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}-{hour:02}:{minute:02}:{second:02}"


def _gres(gres: GresPlan | None) -> str | None:
    return f"gpu:{gres.type}:{gres.count}" if gres else None


def _default_memory(node: NodePlan) -> dict[str, int]:
    """A job's share of the memory goes with its share of the node; by default the first job would take all of it."""
    if node.gres:
        return {"DefMemPerGPU": node.real_memory_mib // node.gres.count}
    return {"DefMemPerCPU": node.real_memory_mib // (node.sockets * node.cores_per_socket * node.threads_per_core)}
