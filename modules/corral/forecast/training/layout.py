"""The layout of a run on accelerators: degrees of parallelism, sharding, recomputation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Sharding(StrEnum):
    """What data-parallel ranks shard: nothing, the optimizer, also gradients, also parameters (ZeRO 0 to 3).

    ZERO3 includes PyTorch's FSDP, which gathers whole layers ahead of their use. DEEPSPEED_ZERO3 is that of 2021, whose
    rings use one network card per node at a time.
    """

    NONE = "none"
    ZERO1 = "zero1"
    ZERO2 = "zero2"
    ZERO3 = "zero3"
    DEEPSPEED_ZERO3 = "deepspeed-zero3"

    @property
    def of_parameters(self) -> bool:
        """True if parameters are sharded."""
        return self in (Sharding.ZERO3, Sharding.DEEPSPEED_ZERO3)

    @property
    def of_gradients(self) -> bool:
        """True if gradients are sharded."""
        return self.of_parameters or self is Sharding.ZERO2

    @property
    def of_optimizer(self) -> bool:
        """True if the optimizer's state is sharded."""
        return self is not Sharding.NONE


class Recompute(StrEnum):
    """What the backward pass recomputes instead of storing it.

    SELECTIVE: the core of attention, as Megatron or flash attention do. OPERATORS: every second matrix product and
    everything in between, as torchtitan's selective mode does. FULL: each layer from its input.
    """

    NONE = "none"
    SELECTIVE = "selective"
    OPERATORS = "operators"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The degrees: tensor, pipeline, context, data; `ep` divides tp x cp x dp. `tp` may be fractional.

    It is if software counts other devices than we do (two NeuronCores in a Trainium1). `micro_batch`: sequences per
    data-parallel rank. `virtual_stages`: model parts per pipeline stage.
    """

    tp: float = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    dp: int = 1
    virtual_stages: int = 1
    sharding: Sharding = Sharding.NONE
    micro_batch: float = 1
    recompute: Recompute = Recompute.NONE
    sequence_parallel: bool = False

    @property
    def accelerators(self) -> float:
        """The number of accelerators."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def expert_ranks(self) -> float:
        """The accelerators of a stage that share one copy of the routed experts: EP, or TP without EP."""
        return self.ep if self.ep > 1 else self.tp

    @property
    def expert_copies(self) -> float:
        """The copies of the routed experts per stage, which are the data-parallel ranks of experts."""
        return max(1.0, self.tp * self.dp * self.cp / self.expert_ranks)

    def micro_batches(self, global_batch: float) -> int:
        """Micro-batches per data-parallel rank in a step of so many sequences, at least one."""
        return max(1, math.ceil(global_batch / (self.dp * self.micro_batch) - 1e-9))
