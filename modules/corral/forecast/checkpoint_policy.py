"""How a job checkpoints and recovers: the times that determine what an interruption costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    """`stall_s`: how long a checkpoint stops the job; `durable_s`: from its start until the job can resume from it.

    They are equal if the job waits for the write. An asynchronous checkpoint stalls only for the copy to host memory.
    """

    stall_s: float
    durable_s: float

    @property
    def behind_s(self) -> float:
        """Seconds that the write overlaps computing: an interruption loses this work in addition."""
        return max(0.0, self.durable_s - self.stall_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """From an interruption until the job computes at full speed.

    `detect_s`: until the failure is noticed; `restart_s`: new instances and processes, reading the checkpoint;
    `warm_up_s`: lost in slow first steps. On spot instances the restart includes the wait for capacity.
    """

    detect_s: float
    restart_s: float
    warm_up_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Seconds from the interruption to full speed."""
        return self.detect_s + self.restart_s + self.warm_up_s


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    """How a job checkpoints and recovers."""

    checkpointing: Checkpointing
    recovery: Recovery
