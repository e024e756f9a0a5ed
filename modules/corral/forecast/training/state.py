"""The state of training for each parameter: weights, gradients, optimizer, and in which numbers software keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.training.job import Precision
from corral.forecast.training.layout import Sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Bytes for each parameter. `optimizer` has the fp32 master copy and both moments of Adam.

    `numbers`: bytes of a number of what layers keep and gather.
    """

    weights: float
    gradients: float
    optimizer: float
    numbers: float = 2

    @property
    def total(self) -> float:
        """All of the state."""
        return self.weights + self.gradients + self.optimizer


MIXED = StateBytes(weights=2, gradients=2, optimizer=12)  # ZeRO, arXiv:1910.02054
MEGATRON = StateBytes(weights=2, gradients=4, optimizer=12)  # Korthikanti et al., arXiv:2205.05198, Figure 1
FSDP2 = StateBytes(weights=4, gradients=4, optimizer=8)  # fp32 shards; the 16-bit copy of a layer lives while it works
FULL_FP32 = StateBytes(weights=4, gradients=4, optimizer=8, numbers=4)  # no master copy: the weights are one
PURE_BF16 = StateBytes(weights=2, gradients=2, optimizer=4)  # stas00/ml-engineering, training/performance
EIGHT_BIT_ADAM = StateBytes(weights=2, gradients=2, optimizer=6)  # same, with an fp32 master copy


def usual_state(precision: Precision, sharding: Sharding) -> StateBytes:
    """What today's software keeps: PyTorch's FSDP where parameters are sharded, else Megatron's, two bytes more."""
    if precision is Precision.FP32:
        return FULL_FP32
    return FSDP2 if sharding.of_parameters else MEGATRON
