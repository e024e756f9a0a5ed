"""How a job saves and recovers: the times that decide what an interruption costs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    """`stall_s`: how long a checkpoint stops the job; `durable_s`: from its begin until one can go on from it.

    Both are equal where the job waits until it is written; an asynchronous one stalls for the copy to the host alone.
    """

    stall_s: float
    durable_s: float

    @property
    def behind_s(self) -> float:
        """How long it is being written while the job computes: work that an interruption loses in addition."""
        return max(0.0, self.durable_s - self.stall_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """From an interruption until the job computes at full speed.

    `detect_s`: until anybody knows; `restart_s`: other machines, processes, the checkpoint's reading; `warm_up_s`: what
    slow first steps lose. On spot instances the wait for capacity is part of the restart.
    """

    detect_s: float
    restart_s: float
    warm_up_s: float = 0.0

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.detect_s + self.restart_s + self.warm_up_s


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHabits:
    """How a job saves and recovers."""

    checkpointing: Checkpointing
    recovery: Recovery
