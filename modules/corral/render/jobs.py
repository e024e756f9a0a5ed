"""Job scripts that users copy: they fit the cluster's default queue, save on a signal and are requeued."""

from collections.abc import Mapping

from corral.model.cluster import ClusterPlan, QueuePlan
from corral.render.texts import fill

SIGNAL_BEFORE_S = 120  # as long as a spot notice, so that one way to save serves both
_TICK_S = 30  # slurmctld looks at time limits this often: the signal comes up to so much early, the end so much late
_MARGIN_S = 15  # what a requeue needs, before the limit


def job_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each job script by its path below the cluster's prefix."""
    queue = training_queue(plan)
    devices = queue.node.gres.count if queue.node.gres else 1
    return {
        "jobs/jax.sbatch": _script("jax", queue, tasks_per_node=devices, processes_per_node=devices),
        "jobs/torchrun.sbatch": _script("torchrun", queue, tasks_per_node=1, processes_per_node=devices),
    }


def training_queue(plan: ClusterPlan) -> QueuePlan:
    """The queue that the scripts name: the default one, unless only another has accelerators."""
    by_default = sorted(plan.queues, key=lambda queue: not queue.is_default)
    return next((queue for queue in by_default if queue.node.gres), by_default[0])


def _script(name: str, queue: QueuePlan, *, tasks_per_node: int, processes_per_node: int) -> str:
    return fill(
        f"jobs/{name}.sbatch.j2",
        options=_options(name, queue, tasks_per_node),
        processes_per_node=processes_per_node,
        soon_s=SIGNAL_BEFORE_S + _TICK_S,
        margin_s=_MARGIN_S,
    )


def _options(name: str, queue: QueuePlan, tasks_per_node: int) -> tuple[str, ...]:
    node = queue.node
    cpus = node.sockets * node.cores_per_socket * node.threads_per_core
    return (
        f"--job-name={name}",
        f"--partition={queue.name}",
        f"--nodes={min(2, queue.max_nodes)}",
        f"--ntasks-per-node={tasks_per_node}",
        f"--cpus-per-task={cpus // tasks_per_node}",
        *((f"--gpus-per-node={node.gres.count}",) if node.gres else ()),
        "--exclusive",
        "--mem=0",
        "--requeue",
        "--open-mode=append",
        "--output=%x-%j.out",
        f"--signal=B:USR1@{SIGNAL_BEFORE_S}",
    )
