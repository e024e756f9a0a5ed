"""What the keeper sees and decides about: Slurm's nodes, EC2's instances, what Slurm asks for. Records, no more.

Times are seconds since 1970.
"""

from dataclasses import dataclass, field

_OFF = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"})  # the last: as soon as its job has completed
_COMING = frozenset({"pending", "running"})
_ENDING = frozenset({"shutting-down", "terminated"})
OWN_REASON = "corral: "
# What slurmctld and slurmd drain a node for by themselves: its machine is replaced, nobody has to look at it.
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
# Why slurmctld sets a node DOWN by itself. Where an administrator did it, it stays.
_SLURMS_REASONS = ("Not responding", "ResumeTimeout reached", "Node unexpectedly rebooted")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """A node as slurmctld has it. `states`: the base state and the flags.

    `started`: since when its slurmd runs, `booted`: since when its machine, as Slurm prints it; they stay when the
    machine is gone.
    """

    name: str
    states: frozenset[str]
    address: str = ""
    reason: str = ""
    comment: str = ""
    started: str = ""
    booted: str = ""

    @property
    def wants_machine(self) -> bool:
        """Whether Slurm reckons with a machine."""
        return not self.states & _OFF

    @property
    def failed(self) -> bool:
        """Whether slurmctld has given the node up by itself."""
        return "DOWN" in self.states and self.reason.startswith(_SLURMS_REASONS)

    @property
    def drained_by_hand(self) -> bool:
        """Whether a person has drained it: Slurm keeps one reason a node, and theirs is worth more than ours."""
        return "DRAIN" in self.states and not self.reason.startswith(NOT_BY_HAND)

    @property
    def idle(self) -> bool:
        """Whether its machine is there and no job uses it or waits for it."""
        busy = {"ALLOCATED", "MIXED", "COMPLETING", "POWERING_UP", "RESERVED", "DOWN", "PLANNED"}
        return self.wants_machine and "IDLE" in self.states and not self.states & busy

    @property
    def registered(self) -> bool:
        """Whether its slurmd has reported, and is heard."""
        return self.wants_machine and not self.states & {"POWERING_UP", "DOWN", "NOT_RESPONDING", "UNKNOWN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance that is some node's. `address`: its private one. `reason`: EC2's code of why it ended.

    `offer` and `version`: what it was launched from, and the launch template's version.
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
    def coming(self) -> bool:
        """Whether it runs or soon will."""
        return self.state in _COMING

    @property
    def ended(self) -> bool:
        """Whether it ends or has ended; EC2 shows it for about an hour more."""
        return self.state in _ENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """When a capacity block begins and ends."""

    begins: float
    ends: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job, and the nodes that it waits for. `beside`: those that it has already."""

    job_id: int
    nodes: tuple[str, ...]
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What slurmctld asked for. `key`: the same whoever reads it. `jobs`: those that wait for some of the nodes."""

    key: str
    verb: str
    nodes: tuple[str, ...]
    asked_at: float
    jobs: tuple[WaitingJob, ...] = field(default=())
