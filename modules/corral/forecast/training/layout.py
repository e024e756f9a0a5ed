"""How a run is laid over accelerators: the degrees of parallelism, what is sharded, what is computed twice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Sharding(StrEnum):
    """What the data-parallel ranks divide: nothing, the optimizer, gradients too, parameters too (ZeRO 0 to 3).

    FSDP is ZERO3 of PyTorch: it gathers whole layers ahead of their use. DEEPSPEED_ZERO3 is that of 2021, whose rings
    pass one network card of a node at a time.
    """

    NONE = "none"
    ZERO1 = "zero1"
    ZERO2 = "zero2"
    ZERO3 = "zero3"
    DEEPSPEED_ZERO3 = "deepspeed-zero3"

    @property
    def of_parameters(self) -> bool:
        """Whether each rank has a part of the parameters only."""
        return self in (Sharding.ZERO3, Sharding.DEEPSPEED_ZERO3)

    @property
    def of_gradients(self) -> bool:
        """Whether each rank keeps a part of the gradients only."""
        return self.of_parameters or self is Sharding.ZERO2

    @property
    def of_optimizer(self) -> bool:
        """Whether each rank has a part of the optimizer's state only."""
        return self is not Sharding.NONE


class Recompute(StrEnum):
    """What the backward pass computes a second time, so that it need not be kept.

    SELECTIVE: the core of attention, as Megatron or flash attention do. OPERATORS: every second matrix product and all
    that is between them, as torchtitan's selective mode does. FULL: each layer from its input.
    """

    NONE = "none"
    SELECTIVE = "selective"
    OPERATORS = "operators"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Degrees: tensor, pipeline, context, data; `ep` lies within tp x cp x dp. Degrees may be broken numbers.

    They are where software counts other devices than we do (two NeuronCores in a Trainium1). `micro_batch` is in
    sequences for each data-parallel rank, `virtual_stages` parts of the model that a pipeline stage has.
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
        """How many it takes."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def expert_ranks(self) -> float:
        """Over how many accelerators of a stage one copy of the routed experts is spread: EP, or TP without it."""
        return self.ep if self.ep > 1 else self.tp

    @property
    def expert_copies(self) -> float:
        """How many copies of the routed experts a stage has: they are the data-parallel ranks of experts."""
        return max(1.0, self.tp * self.dp * self.cp / self.expert_ranks)

    def micro_batches(self, global_batch: float) -> int:
        """How many each data-parallel rank does in a step of so many sequences, at least one."""
        return max(1, math.ceil(global_batch / (self.dp * self.micro_batch) - 1e-9))
