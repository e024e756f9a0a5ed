"""The records of the autoscaler: Slurm's nodes, EC2's instances, slurmctld's requests. Times: seconds since 1970."""

from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import Self

_OFF = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"})  # the last: as soon as its job has completed
_COMING = frozenset({"pending", "running"})
_ENDING = frozenset({"shutting-down", "terminated"})
OWN_REASON = "corral: "
# Reasons with which slurmctld and slurmd themselves drain a node. Its machine is replaced without a person's help.
# Source: Slurm 22.05, slurmctld/proc_req.c, slurmd/slurmd/req.c, slurmd/slurmstepd/mgr.c.
SLURMS_DRAINS = (
    "Duplicate jobid",
    "Kill task failed",
    "Prolog error",
    "Epilog error",
    "batch job complete failure",
    "SlurmdSpoolDir is full",
)
NOT_BY_HAND = (OWN_REASON, *SLURMS_DRAINS)
# Reasons with which slurmctld itself sets a node DOWN. A node that an administrator set DOWN stays DOWN.
_SLURMS_REASONS = ("Not responding", "ResumeTimeout reached", "Node unexpectedly rebooted")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """A node as slurmctld reports it. `states`: the base state and the flags.

    `started`: when its slurmd started, `booted`: when its machine booted, as Slurm prints times; both outlive the
    machine. `gpus_allocated`: the number of its GPUs that jobs have.
    """

    name: str
    states: frozenset[str]
    address: str = ""
    reason: str = ""
    comment: str = ""
    started: str = ""
    booted: str = ""
    gpus_allocated: int = 0

    @property
    def wants_machine(self) -> bool:
        """Whether Slurm expects a machine for this node."""
        return not self.states & _OFF

    @property
    def failed(self) -> bool:
        """Whether slurmctld itself has set the node DOWN."""
        return "DOWN" in self.states and self.reason.startswith(_SLURMS_REASONS)

    @property
    def drained_by_hand(self) -> bool:
        """Whether a person drained it. Slurm keeps one reason per node, and a person's is never overwritten."""
        return "DRAIN" in self.states and not self.reason.startswith(NOT_BY_HAND)

    @property
    def idle(self) -> bool:
        """Whether it has a machine that no job uses or waits for."""
        busy = {"ALLOCATED", "MIXED", "COMPLETING", "POWERING_UP", "RESERVED", "DOWN", "PLANNED"}
        return self.wants_machine and "IDLE" in self.states and not self.states & busy

    @property
    def registered(self) -> bool:
        """Whether its slurmd has registered and answers."""
        return self.wants_machine and not self.states & {"POWERING_UP", "DOWN", "NOT_RESPONDING", "UNKNOWN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance of a node. `address`: its private address. `reason`: EC2's code for why it ended.

    `offer`, `version`: the offer that it was launched from, and the version of the launch template.
    """

    instance_id: str
    node: str
    state: str
    address: str
    offer: str = ""
    version: str = ""
    launched_at: float = 0.0
    reason: str = ""

    @property
    def active(self) -> bool:
        """Whether it is pending or running."""
        return self.state in _COMING

    @property
    def ended(self) -> bool:
        """Whether it is shutting down or terminated; EC2 shows it for about another hour."""
        return self.state in _ENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPeriod:
    """When a capacity block begins and ends."""

    begins: float
    ends: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedCapacity:
    """The instances of an active reservation or capacity block: all, and those that can be launched now."""

    total: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job and the nodes that it waits for. `allocated_nodes`: the nodes that it already has."""

    job_id: int
    nodes: tuple[str, ...]
    allocated_nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRequest:
    """A call of slurmctld's ResumeProgram, ResumeFailProgram or SuspendProgram.

    `key`: stable between reads. `jobs`: the jobs that wait for some of the nodes.
    """

    key: str
    verb: str
    nodes: tuple[str, ...]
    requested_at: float
    jobs: tuple[WaitingJob, ...] = field(default=())

    def without(self, nodes: Set[str]) -> Self:
        """This request for its other nodes. Its jobs keep their positions, which number their launches."""
        jobs = (replace(job, nodes=tuple(node for node in job.nodes if node not in nodes)) for job in self.jobs)
        return replace(self, nodes=tuple(node for node in self.nodes if node not in nodes), jobs=tuple(jobs))
