"""Job scripts for users to copy: a directory for each queue, with the scripts that its nodes can run.

Training scripts save a checkpoint on a signal and are requeued.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.aws.instance_types import Vendor
from corral.catalog.aws.nccl_variables import MeasuredBandwidth, variable_catalog
from corral.model.cluster import ClusterPlan, GresPlan, QueuePlan
from corral.model.enums import Market
from corral.render.gpu_devices import efa_devices, vendor
from corral.render.templates import fill

SIGNAL_BEFORE_S = 120  # the length of a spot notice, so one checkpoint handler serves both
_MARGIN_S = 15  # time for a requeue before the limit
_TOLERATED_PERCENT = 85  # of a measured bandwidth; repeated runs differ by a few percent
_AT_ONCE = 4  # concurrent runs in the example sweep
_NOTEBOOK_CPUS = 4  # of a notebook on machines without accelerators
_NOTEBOOK_S = 8 * 3600
_DEVICES: Mapping[Vendor | None, str] = {Vendor.NVIDIA: "GPU", Vendor.NEURON: "NeuronCore", None: "node"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """A script. `task_per_device`: Slurm starts every process; otherwise one launcher per node does.

    `vendors`: of the accelerators; None stands for machines without any. `processes`: the minimum. `shares`: it needs
    one device, not whole nodes.
    """

    name: str
    task_per_device: bool = False
    vendors: tuple[Vendor | None, ...] = (Vendor.NVIDIA,)
    trains: bool = True
    shares: bool = False
    one_node: bool = False
    processes: int = 1
    output: str = "%x-%j.out"


_SCRIPTS = (
    _Script(name="accelerate", vendors=(Vendor.NVIDIA, None)),
    _Script(name="deepspeed"),
    _Script(name="jax", task_per_device=True, vendors=(Vendor.NVIDIA, None)),
    _Script(name="jupyter", vendors=(Vendor.NVIDIA, Vendor.NEURON, None), trains=False, shares=True, one_node=True),
    _Script(name="lightning", task_per_device=True, vendors=(Vendor.NVIDIA, None)),
    _Script(name="megatron", task_per_device=True),
    _Script(name="nccl-tests", task_per_device=True, trains=False, processes=2),
    _Script(name="sweep", vendors=(Vendor.NVIDIA, Vendor.NEURON, None), one_node=True, output="%x-%A_%a.out"),
    _Script(name="torchrun", vendors=(Vendor.NVIDIA, Vendor.NEURON, None)),
)


def job_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each job script by its path below the cluster's prefix, `jobs/QUEUE/NAME.sbatch`."""
    return {
        f"jobs/{queue.name}/{script.name}.sbatch": _text(script, queue, plan)
        for queue in plan.queues
        for script in _SCRIPTS
        if _fits(script, queue)
    }


def _fits(script: _Script, queue: QueuePlan) -> bool:
    return vendor(queue) in script.vendors and _processes(queue) * queue.max_nodes >= script.processes


def _text(script: _Script, queue: QueuePlan, plan: ClusterPlan) -> str:
    processes = _processes(queue)
    is_reclaimable = any(offer.market in (Market.SPOT, Market.CAPACITY_BLOCK) for offer in queue.offers)
    return fill(
        f"jobs/{script.name}.sbatch.j2",
        name=script.name,
        cluster=plan.name,
        gate=plan.gate,
        queue=queue.name,
        machines=_machines(queue),
        trains=script.trains,
        is_reclaimable=is_reclaimable,
        is_preempted=plan.accounts.preempts,
        ends_in_grace=plan.requeues_ended_in_grace,
        moves=is_reclaimable or plan.accounts.preempts,
        requeue="requeue" if plan.requeues_ended_in_grace else 'scontrol requeue "$job"',
        secrets=plan.jobs.secrets,
        in_container=' "${container[@]}"' if plan.containers.are_used else "",
        region=plan.region,
        options=tuple(_options(script, queue, processes if script.task_per_device else 1)),
        nodes=_nodes(queue),
        at_once=min(_AT_ONCE, queue.max_nodes),
        device=_DEVICES[vendor(queue)],
        processes_per_node=processes,
        has_accelerators=queue.node.gres is not None,
        threads=_threads(queue),
        devices=", ".join(map(str, range(processes))),
        margin_s=_MARGIN_S,
        **_bandwidth(queue),
    )


def _machines(queue: QueuePlan) -> str:
    """A description of the queue for a comment, without its size: a resize must not change every script."""
    gres = queue.node.gres
    accelerators = f" with {gres.count} x {gres.type}" if gres else ""
    without = ", no EFA between them" if queue.max_nodes > 1 and not queue.efa else ""
    return f"{queue.instance_type}{accelerators} a node{without}"


def _nodes(queue: QueuePlan) -> int:
    """The number of nodes that a multi-node script requests."""
    return min(2, queue.max_nodes)


def _threads(queue: QueuePlan) -> int:
    """OpenMP threads of a process: all cores without accelerators, otherwise one, as torchrun sets."""
    node = queue.node
    return 1 if node.gres else node.sockets * node.cores_per_socket


def _bandwidth(queue: QueuePlan) -> Mapping[str, object]:
    """Values of the nccl-tests script: EFA, published bandwidths, message sizes."""
    several = queue.max_nodes > 1
    efa = efa_devices(queue) if several else 0
    return {
        "instance_type": queue.instance_type,
        "several_nodes": several,
        "efa_devices": efa,
        "largest": "1G" if several and not efa else "16G",  # over TCP, larger messages can exceed the job's time limit
        "measured": _measured(queue),
        "expected": {row.nodes: row.gb_per_s for row in _measured(queue)},  # a later row has the larger size
        "tolerated_percent": _TOLERATED_PERCENT,
    }


def _processes(queue: QueuePlan) -> int:
    """Training processes of a node: one per GPU or NeuronCore, otherwise one."""
    gres = queue.node.gres
    return gres.count * variable_catalog().neuron_cores.get(gres.type, 1) if gres else 1


def _options(script: _Script, queue: QueuePlan, tasks_per_node: int) -> Iterator[str]:
    node = queue.node
    cpus = node.sockets * node.cores_per_socket * node.threads_per_core
    yield f"--job-name={script.name}"
    yield f"--partition={queue.name}"
    yield f"--nodes={1 if script.one_node else _nodes(queue)}"
    yield f"--ntasks-per-node={tasks_per_node}"
    if script.shares:
        yield from _share(queue, cpus)
    else:
        yield f"--cpus-per-task={max(1, cpus // tasks_per_node)}"
        if node.gres:
            yield _devices(node.gres, node.gres.count)
        yield from ("--exclusive", "--mem=0")
    yield f"--output={script.output}"
    if script.trains:
        yield from ("--requeue", "--open-mode=append", f"--signal=B:USR1@{SIGNAL_BEFORE_S}")
    elif script.shares:
        yield from ("--no-requeue", f"--time={min(_NOTEBOOK_S, queue.time_limit_s or _NOTEBOOK_S) // 60}")
    else:
        yield from ("--no-requeue", "--time=20")


def _share(queue: QueuePlan, cpus: int) -> Iterator[str]:
    """The request for one accelerator and its share of the cores, or for some cores. Memory follows the cores."""
    gres = queue.node.gres
    yield f"--cpus-per-task={max(1, cpus // gres.count) if gres else min(cpus, _NOTEBOOK_CPUS)}"
    if gres:
        yield _devices(gres, 1)


def _devices(gres: GresPlan, count: int) -> str:
    """The request for accelerators of a node. Slurm's GPU options apply only to the generic resource `gpu`."""
    return f"--gpus-per-node={count}" if gres.name == "gpu" else f"--gres={gres.name}:{count}"


def _measured(queue: QueuePlan) -> tuple[MeasuredBandwidth, ...]:
    """Bandwidths of this instance type measured over EFA, up to the queue's size."""
    rows = variable_catalog().measured if queue.efa else ()
    return tuple(row for row in rows if row.instance_type == queue.instance_type and row.nodes <= queue.max_nodes)
