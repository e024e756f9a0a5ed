"""How large a checkpoint is, what each node has of it, and how long saving and restoring stop a job.

Where it is written to, and how fast that is, is in `storage`.
"""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.storage import CheckpointState, HostCopy
from corral.forecast.habits import Checkpointing


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSize:
    """A checkpoint of a whole model. `copies`: how many of the model the job trains (replicas that hold all of it)."""

    parameters: float
    state: CheckpointState
    copies: int = 1

    @property
    def size_bytes(self) -> float:
        """What is written once; each copy of the model holds the same."""
        return self.parameters * self.state.bytes_per_parameter

    @property
    def restored_bytes(self) -> float:
        """What is read in all where each copy reads for itself. With one reader that passes it on: `size_bytes`."""
        return self.size_bytes * self.copies

    def bytes_per_writer(self, writers: int) -> float:
        """What each of so many writers has: 1 where it is not sharded, all accelerators where it is wholly."""
        return self.size_bytes / writers


def synchronous(write_s: float) -> Checkpointing:
    """The job waits until the checkpoint is written."""
    return Checkpointing(stall_s=write_s, durable_s=write_s)


def asynchronous(host_copy_s: float, write_s: float) -> Checkpointing:
    """The job waits until the checkpoint is in the host's memory, from where it is written while the job goes on."""
    return Checkpointing(stall_s=host_copy_s, durable_s=host_copy_s + write_s)


def host_copy_s(bytes_per_accelerator: float, copy: HostCopy) -> float:
    """Seconds until an accelerator's part is in its host's memory, all accelerators of the node at once.

    At the rate of one alone: where they share switches or the host's memory it takes longer.
    """
    return bytes_per_accelerator / (copy.gb_per_s * 1e9)
