"""The checkpoints of a declared run: size, share of each writer, file system, duration, and a faster file system.

`storage_speed` has the speed of file systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corral.catalog.aws.lustre import find_lustre_deployment
from corral.catalog.aws.storage import CheckpointState, HostCopy, find_checkpoint_state, find_host_copy
from corral.forecast.checkpoint_policy import Checkpointing, CheckpointPolicy, Recovery
from corral.forecast.data_loading import read_bytes_per_token
from corral.forecast.lustre_size import LustreSize, lustre_for
from corral.forecast.storage_speed import (
    Direction,
    Interface,
    LustreChoice,
    Rate,
    StorageClients,
    efs_rate,
    interface_of,
    lustre_rate,
)
from corral.forecast.training.run_forecast import RunForecast
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.lustre import LustrePlan
from corral.spec.models.run import CheckpointSpec

HOME = "home"
# Until the autoscaler sees that a node is silent (SlurmdTimeout and its cycle), a new instance has booted and the job
# has restarted. Assumed: corral's own part is under 20 s (docs/benchmarks.md), an EC2 boot of a GPU machine some
# minutes; published restarts take 2 to 30 minutes (docs/reliability.md).
DETECT_S, RESTART_S, WARM_UP_S = 60.0, 480.0, 60.0
TARGET_STALL_S = 60.0
_RETAINED = 3  # checkpoints, by default


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSize:
    """A checkpoint of a whole model."""

    parameters: float
    state: CheckpointState

    @property
    def size_bytes(self) -> float:
        """Bytes written per checkpoint; data-parallel replicas hold the same bytes, which are written once."""
        return self.parameters * self.state.bytes_per_parameter

    def bytes_per_writer(self, writers: int) -> float:
        """Bytes per writer. `writers`: 1 for an unsharded checkpoint, all accelerators for a fully sharded one."""
        return self.size_bytes / writers


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointForecast:
    """The checkpoints of a run. `write`, `read`: the rates of the file system, all nodes together.

    `retained`: checkpoints kept at a time. `copy`: to the host; None if synchronous or unknown. `faster`: the smallest
    Lustre of the same kind that writes one in `TARGET_STALL_S`; None for EFS. `capacity_gib`: of the file system; None
    if elastic. `loads`: bytes per second of the data loader; `corpus`: bytes that it reads in total. `elastic`: True if
    the home is billed per GB transferred.
    """

    storage: str
    state: CheckpointState
    size: CheckpointSize
    retained: int
    write: Rate
    read: Rate
    copy: HostCopy | None
    policy: CheckpointPolicy
    faster: LustreSize | None
    capacity_gib: int | None
    loads: float
    corpus: float
    elastic: bool

    @property
    def stored_bytes(self) -> float:
        """Bytes of the retained checkpoints."""
        return self.retained * self.size.size_bytes

    @property
    def write_s(self) -> float:
        """Seconds to write a checkpoint to the file system."""
        return self.write.seconds(self.size.size_bytes)

    @property
    def read_s(self) -> float:
        """Seconds to read a checkpoint at a start; one rank per shard reads and passes it on."""
        return self.read.seconds(self.size.size_bytes)


def checkpoint_forecast(run: RunForecast, base: BasePlan, cluster: ClusterPlan) -> CheckpointForecast | None:
    """The checkpoints of the run; None if the environment has no shared file system."""
    declared = run.run.checkpoint or CheckpointSpec()
    storage = declared.to or next(iter(_shared_storage(base, cluster)), None)
    if storage is None:
        return None
    system = next((one for one in cluster.lustre if one.name == storage), None)
    clients = _clients(run, system)
    state = _state(run)
    size = CheckpointSize(parameters=run.job.shape.parameters, state=state)
    choice = _choice(system) if system else None
    write, read = (
        lustre_rate(choice, clients, way) if choice else efs_rate(base.region, clients, way)
        for way in (Direction.WRITE, Direction.READ)
    )
    each = read_bytes_per_token(run.run.loader, run.job.shape.vocabulary)
    copy = find_host_copy(run.run.machine.family) if declared.asynchronous else None
    retained = run.run.checkpoint.keep if run.run.checkpoint else _RETAINED
    return CheckpointForecast(
        storage=storage,
        state=state,
        size=size,
        retained=retained,
        write=write,
        read=read,
        copy=copy,
        policy=CheckpointPolicy(
            checkpointing=_checkpointing(run, size, write, copy),
            recovery=Recovery(
                detect_s=DETECT_S, restart_s=RESTART_S + read.seconds(size.size_bytes), warm_up_s=WARM_UP_S
            ),
        ),
        faster=_faster(choice, size, clients, retained),
        capacity_gib=choice.size_gib if choice else None,
        loads=run.speed.tokens_per_s * each,
        corpus=run.run.tokens * each,
        elastic=base.home is not None and base.home.throughput == "elastic",
    )


def synchronous(write_s: float) -> Checkpointing:
    """The job waits until the checkpoint is written."""
    return Checkpointing(stall_s=write_s, durable_s=write_s)


def asynchronous(host_copy_s: float, write_s: float) -> Checkpointing:
    """The job waits until the checkpoint is in host memory; the write overlaps computing."""
    return Checkpointing(stall_s=host_copy_s, durable_s=host_copy_s + write_s)


def host_copy_s(bytes_per_accelerator: float, copy: HostCopy) -> float:
    """Seconds until all accelerators of a node have copied their part to host memory.

    At the rate of a single accelerator: shared switches or host memory make it slower.
    """
    return bytes_per_accelerator / (copy.gb_per_s * 1e9)


def _shared_storage(base: BasePlan, cluster: ClusterPlan) -> Sequence[str]:
    """The shared file systems in order of preference: the cluster's own Lustre first."""
    own = [system.name for system in cluster.own_lustre]
    retained = [system.name for system in cluster.lustre if system.retained]
    return [*own, *retained, *([HOME] if base.home else [])]


def _choice(system: LustrePlan) -> LustreChoice:
    deployment = find_lustre_deployment(
        system.deployment, storage=system.disks, throughput_mbps_per_tib=system.throughput_mbps_per_tib
    )
    return LustreChoice(deployment=deployment, size_gib=system.size_gib, efa=system.efa)


def _clients(run: RunForecast, system: LustrePlan | None) -> StorageClients:
    machine = run.run.machine
    wanted = bool(system and system.efa and run.run.efa)
    interface = interface_of(machine.family, machine.efa_maximum if wanted else 0)
    with_efa = interface is not Interface.PLAIN
    # Traffic without EFA uses only the first card.
    gbps = machine.network_gbps if with_efa else machine.network_gbps / max(1, len(machine.network_cards))
    return StorageClients(nodes=run.run.nodes, network_gbps=gbps, interface=interface)


def _state(run: RunForecast) -> CheckpointState:
    return find_checkpoint_state("fp32-adam" if run.run.precision == "fp32" else "mixed-adam")


def _checkpointing(run: RunForecast, size: CheckpointSize, write: Rate, copy: HostCopy | None) -> Checkpointing:
    write_s = write.seconds(size.size_bytes)
    if copy is None:
        return synchronous(write_s)
    return asynchronous(host_copy_s(size.bytes_per_writer(run.run.accelerators), copy), write_s)


def _faster(
    choice: LustreChoice | None, size: CheckpointSize, clients: StorageClients, retained: int
) -> LustreSize | None:
    if choice is None:
        return None
    stored = retained * size.size_bytes
    return lustre_for(size.size_bytes, TARGET_STALL_S, choice.deployment, clients, stored_bytes=stored, efa=choice.efa)
