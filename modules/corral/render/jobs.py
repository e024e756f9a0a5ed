"""Job scripts that users copy: they fit the cluster's default queue, save on a signal and are requeued."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.instances import Vendor
from corral.catalog.nccl_variables import Measured, variable_catalogue, vendor_of
from corral.model.cluster import ClusterPlan, GresPlan, QueuePlan
from corral.model.markets import InterfaceType
from corral.render.texts import fill

SIGNAL_BEFORE_S = 120  # as long as a spot notice, so that one way to save serves both
_MARGIN_S = 15  # what a requeue needs, before the limit
_TOLERATED_PERCENT = 85  # of a measured bandwidth; runs on the same machines differ by some percent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """A script. `task_per_device`: Slurm starts every process itself; else a launcher does, once a node.

    `vendors`: whose accelerators it is for; None stands for machines without any.
    """

    name: str
    task_per_device: bool = False
    vendors: tuple[Vendor | None, ...] = (Vendor.NVIDIA,)
    trains: bool = True
    one_node: bool = False
    output: str = "%x-%j.out"


_SCRIPTS = (
    _Script(name="accelerate", vendors=(Vendor.NVIDIA, None)),
    _Script(name="deepspeed"),
    _Script(name="jax", task_per_device=True, vendors=(Vendor.NVIDIA, None)),
    _Script(name="lightning", task_per_device=True, vendors=(Vendor.NVIDIA, None)),
    _Script(name="megatron", task_per_device=True),
    _Script(name="nccl-tests", task_per_device=True, trains=False),
    _Script(name="sweep", vendors=(Vendor.NVIDIA, Vendor.NEURON, None), one_node=True, output="%x-%A_%a.out"),
    _Script(name="torchrun", vendors=(Vendor.NVIDIA, Vendor.NEURON, None)),
)


def job_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each job script by its path below the cluster's prefix: those that the training queue can run."""
    queue = training_queue(plan)
    vendor = vendor_of(queue.node.gres.type) if queue.node.gres else None
    fitting = [script for script in _SCRIPTS if vendor in script.vendors]
    return {f"jobs/{script.name}.sbatch": _text(script, queue, plan.jobs.secrets) for script in fitting}


def training_queue(plan: ClusterPlan) -> QueuePlan:
    """The queue that the scripts name: the default one, unless only another has accelerators."""
    by_default = sorted(plan.queues, key=lambda queue: not queue.is_default)
    return next((queue for queue in by_default if queue.node.gres), by_default[0])


def _text(script: _Script, queue: QueuePlan, secrets: Mapping[str, str]) -> str:
    processes = _processes(queue)
    return fill(
        f"jobs/{script.name}.sbatch.j2",
        name=script.name,
        trains=script.trains,
        secrets=secrets,
        options=tuple(_options(script, queue, processes if script.task_per_device else 1)),
        processes_per_node=processes,
        has_accelerators=queue.node.gres is not None,
        devices=", ".join(map(str, range(processes))),
        margin_s=_MARGIN_S,
        instance_type=queue.instance_type,
        efa_devices=sum(nic.interface_type is not InterfaceType.ENA for nic in queue.nics) if queue.efa else 0,
        measured=_measured(queue.instance_type),
        expected=_expected(queue.instance_type),
        tolerated_percent=_TOLERATED_PERCENT,
    )


def _processes(queue: QueuePlan) -> int:
    """How many processes train on a node: one a GPU, one a NeuronCore, one where there is neither."""
    gres = queue.node.gres
    return gres.count * variable_catalogue().neuron_cores.get(gres.type, 1) if gres else 1


def _options(script: _Script, queue: QueuePlan, tasks_per_node: int) -> Iterator[str]:
    node = queue.node
    cpus = node.sockets * node.cores_per_socket * node.threads_per_core
    yield f"--job-name={script.name}"
    yield f"--partition={queue.name}"
    yield f"--nodes={1 if script.one_node else min(2, queue.max_nodes)}"
    yield f"--ntasks-per-node={tasks_per_node}"
    yield f"--cpus-per-task={max(1, cpus // tasks_per_node)}"
    if node.gres:
        yield _devices(node.gres)
    yield from ("--exclusive", "--mem=0", f"--output={script.output}")
    if script.trains:
        yield from ("--requeue", "--open-mode=append", f"--signal=B:USR1@{SIGNAL_BEFORE_S}")
    else:
        yield from ("--no-requeue", "--time=20")


def _devices(gres: GresPlan) -> str:
    """All accelerators of a node. Slurm's options that count GPUs are for the generic resource of that name alone."""
    return f"--gpus-per-node={gres.count}" if gres.name == "gpu" else f"--gres={gres.name}:{gres.count}"


def _measured(instance_type: str) -> tuple[Measured, ...]:
    return tuple(row for row in variable_catalogue().measured if row.instance_type == instance_type)


def _expected(instance_type: str) -> Mapping[int, float]:
    """The bandwidth at the largest size that was measured, by the number of nodes."""
    return {row.nodes: row.gb_per_s for row in _measured(instance_type)}
