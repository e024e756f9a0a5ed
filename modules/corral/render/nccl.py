"""What NCCL is told on machines with EFA: a file per queue, and a shell fragment that exports it."""

from collections.abc import Mapping

from corral.model.cluster import ClusterPlan, QueuePlan
from corral.render.texts import fill


def nccl_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix; none where no queue has EFA."""
    queues = [queue for queue in plan.queues if queue.efa]
    if not queues:
        return {}
    return {
        **{f"nccl/{queue.name}.conf": _conf(queue) for queue in queues},
        "nccl/profile.sh": fill("nccl/profile.sh.j2"),
    }


def _conf(queue: QueuePlan) -> str:
    return fill("nccl/nccl.conf.j2", queue=queue.name, instance_type=queue.instance_type)
