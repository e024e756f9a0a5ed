"""How a declared run saves its state: how much, where to, how long that takes, which file system would be faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corral.catalog.lustre import find_lustre_deployment
from corral.catalog.storage import CheckpointState, HostCopy, find_checkpoint_state, find_host_copy
from corral.forecast.checkpoints import CheckpointSize, asynchronous, host_copy_s, synchronous
from corral.forecast.habits import Checkpointing, JobHabits, Recovery
from corral.forecast.loading import read_bytes_per_token
from corral.forecast.lustre_size import LustreSize, lustre_for
from corral.forecast.storage import Clients, LustreChoice, Rate, Way, efs_rate, interface_of, lustre_rate
from corral.forecast.training.outcome import RunForecast
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.lustre import LustrePlan
from corral.spec.run import CheckpointSpec

HOME = "home"
# Until the keeper has seen that a machine is silent (SlurmdTimeout and its looks), a new one has booted and the job has
# started again. Assumed: corral's own part is under 20 s (docs/benchmarks.md), an EC2 boot of a GPU machine some
# minutes; published restarts take 2 to 30 minutes (docs/reliability.md).
DETECT_S, RESTART_S, WARM_UP_S = 60.0, 480.0, 60.0
WISHED_STALL_S = 60.0
_KEPT = 3  # checkpoints, where the run file does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Where a run saves, and what a checkpoint is. `write`, `read`: of the file system, all nodes together.

    `stored_bytes`: of the checkpoints that are kept at a time. `faster`: the smallest Lustre of the same kind that
    takes one in `WISHED_STALL_S`; None for EFS. `room_gib`: what the file system holds; None where it grows. `copy`: to
    the host, None where it is written at once or unknown. `loads`: bytes a second that the loader reads, `corpus`:
    bytes of all that it reads once. `elastic`: whether what moves to and from the home is paid for by the GB.
    """

    place: str
    state: CheckpointState
    size: CheckpointSize
    kept: int
    write: Rate
    read: Rate
    copy: HostCopy | None
    habits: JobHabits
    faster: LustreSize | None
    room_gib: int | None
    loads: float
    corpus: float
    elastic: bool

    @property
    def stored_bytes(self) -> float:
        """What the kept checkpoints take together."""
        return self.kept * self.size.size_bytes

    @property
    def write_s(self) -> float:
        """How long one takes until it is on the file system."""
        return self.write.seconds(self.size.size_bytes)

    @property
    def read_s(self) -> float:
        """How long a start reads, where one rank of each shard passes it on to the others."""
        return self.read.seconds(self.size.size_bytes)


def saving_of(run: RunForecast, base: BasePlan, cluster: ClusterPlan) -> Saving | None:
    """How the run saves; None where the environment has no file system that its jobs share."""
    wishes = run.run.checkpoint or CheckpointSpec()
    place = wishes.to or next(iter(_places(base, cluster)), None)
    if place is None:
        return None
    system = next((one for one in cluster.lustre if one.name == place), None)
    clients = _clients(run, system)
    state = _state(run)
    size = CheckpointSize(parameters=run.job.shape.parameters, state=state)
    choice = _choice(system) if system else None
    write, read = (
        lustre_rate(choice, clients, way) if choice else efs_rate(base.region, clients, way)
        for way in (Way.WRITE, Way.READ)
    )
    each = read_bytes_per_token(run.run.loader, run.job.shape.vocabulary)
    copy = find_host_copy(run.run.machine.family) if wishes.asynchronous else None
    kept = run.run.checkpoint.keep if run.run.checkpoint else _KEPT
    return Saving(
        place=place,
        state=state,
        size=size,
        kept=kept,
        write=write,
        read=read,
        copy=copy,
        habits=JobHabits(
            checkpointing=_checkpointing(run, size, write, copy),
            recovery=Recovery(
                detect_s=DETECT_S, restart_s=RESTART_S + read.seconds(size.size_bytes), warm_up_s=WARM_UP_S
            ),
        ),
        faster=_faster(choice, size, clients, kept),
        room_gib=choice.size_gib if choice else None,
        loads=run.speed.tokens_per_s * each,
        corpus=run.run.tokens * each,
        elastic=base.home is not None and base.home.throughput == "elastic",
    )


def _places(base: BasePlan, cluster: ClusterPlan) -> Sequence[str]:
    """The file systems that jobs share, in the order in which a run takes them: the cluster's own Lustre first."""
    own = [system.name for system in cluster.own_lustre]
    kept = [system.name for system in cluster.lustre if system.kept]
    return [*own, *kept, *([HOME] if base.home else [])]


def _choice(system: LustrePlan) -> LustreChoice:
    deployment = find_lustre_deployment(
        system.deployment, storage=system.disks, throughput_mbps_per_tib=system.throughput_mbps_per_tib
    )
    return LustreChoice(deployment=deployment, size_gib=system.size_gib, efa=system.efa)


def _clients(run: RunForecast, system: LustrePlan | None) -> Clients:
    machine = run.run.machine
    with_efa = bool(system and system.efa and run.run.efa)
    interface = interface_of(machine.family, machine.efa_maximum if with_efa else 0)
    # What goes without EFA takes the first card's network alone.
    gbps = machine.network_gbps if with_efa else machine.network_gbps / max(1, len(machine.network_cards))
    return Clients(nodes=run.run.nodes, network_gbps=gbps, interface=interface)


def _state(run: RunForecast) -> CheckpointState:
    return find_checkpoint_state("fp32-adam" if run.run.precision == "fp32" else "mixed-adam")


def _checkpointing(run: RunForecast, size: CheckpointSize, write: Rate, copy: HostCopy | None) -> Checkpointing:
    write_s = write.seconds(size.size_bytes)
    if copy is None:
        return synchronous(write_s)
    return asynchronous(host_copy_s(size.bytes_per_writer(run.run.accelerators), copy), write_s)


def _faster(choice: LustreChoice | None, size: CheckpointSize, clients: Clients, kept: int) -> LustreSize | None:
    if choice is None:
        return None
    stored = kept * size.size_bytes
    return lustre_for(size.size_bytes, WISHED_STALL_S, choice.deployment, clients, stored_bytes=stored, efa=choice.efa)
