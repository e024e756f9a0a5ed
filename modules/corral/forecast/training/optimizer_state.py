"""The training state per parameter: bytes of weights, gradients and optimizer in common software."""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.training.job import Precision
from corral.forecast.training.layout import Sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Bytes per parameter. `optimizer`: the fp32 master copy and both moments of Adam.

    `numbers`: bytes per number of activations and gathered weights.
    """

    weights: float
    gradients: float
    optimizer: float
    numbers: float = 2

    @property
    def total(self) -> float:
        """The whole state."""
        return self.weights + self.gradients + self.optimizer


MIXED = StateBytes(weights=2, gradients=2, optimizer=12)  # ZeRO, arXiv:1910.02054
MEGATRON = StateBytes(weights=2, gradients=4, optimizer=12)  # Korthikanti et al., arXiv:2205.05198, Figure 1
FSDP2 = StateBytes(weights=4, gradients=4, optimizer=8)  # fp32 shards; 16-bit copies are temporary
FULL_FP32 = StateBytes(weights=4, gradients=4, optimizer=8, numbers=4)  # the weights are the master copy
PURE_BF16 = StateBytes(weights=2, gradients=2, optimizer=4)  # stas00/ml-engineering, training/performance


def usual_state(precision: Precision, sharding: Sharding) -> StateBytes:
    """The state of current software: PyTorch's FSDP if parameters are sharded, otherwise Megatron's."""
    if precision is Precision.FP32:
        return FULL_FP32
    return FSDP2 if sharding.of_parameters else MEGATRON
