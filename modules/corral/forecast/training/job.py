"""One training run as the forecast sees it: a model, a layout, a machine, a batch, a precision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.catalog.accelerators.training_constants import training_constants
from corral.catalog.accelerators.transformer import TransformerModel
from corral.forecast.training.interconnect import AcceleratorLinks
from corral.forecast.training.layout import Layout


class Precision(StrEnum):
    """The number format of the layers' matrix products; embeddings, output and attention use at least 16 bits.

    FP32 stores everything in 32 bits and multiplies in TF32 if the accelerator supports it.
    """

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    FP4 = "fp4"

    @property
    def bits(self) -> int:
        """The width of a number."""
        return {"fp32": 32, "fp8": 8, "fp4": 4}.get(self.value, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run: model, layout, machine. `global_batch` is in sequences.

    `fused_attention`: flash attention, which never writes the scores. `efa`: the network between nodes, on which
    libraries for mixtures of experts (DeepEP) do not run, so that each token is sent once per expert. `expert_overlap`:
    whether that exchange overlaps other work; None if unknown. `offload_optimizer`: the host holds and steps the
    optimizer.
    """

    shape: TransformerModel
    layout: Layout
    machine: AcceleratorLinks
    seq_len: int
    global_batch: float
    precision: Precision
    fused_attention: bool = True
    efa: bool = False
    expert_overlap: bool | None = None
    offload_optimizer: bool = False

    @property
    def accelerators(self) -> float:
        """The number of accelerators."""
        return self.layout.accelerators

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a data-parallel rank per step."""
        return self.layout.micro_batches(self.global_batch)

    @property
    def tokens(self) -> float:
        """Tokens of one micro-batch on one rank; context parallelism divides them."""
        return self.seq_len / self.layout.cp * self.layout.micro_batch

    @property
    def experts_span_nodes(self) -> bool:
        """True if one copy of the routed experts spans link domains, so that tokens cross the network."""
        return self.shape.is_moe and self.layout.ep > 1 and self.machine.group(self.layout.ep, 1).across > 1

    @property
    def narrow(self) -> bool:
        """True if products use fewer than 16 bits."""
        return self.precision.bits < 16

    @property
    def number_bytes(self) -> int:
        """Bytes of a number in activations and exchanges."""
        return 4 if self.precision is Precision.FP32 else 2

    @property
    def product_flops(self) -> float:
        """FLOP/s of large products in this precision."""
        return self.machine.accelerator.reached_flops(self.precision.bits)

    @property
    def wide_flops(self) -> float:
        """FLOP/s of large products in 16 bits, or in 32 bits with FP32."""
        return self.machine.accelerator.reached_flops(max(16, self.precision.bits))

    @property
    def attention_flops(self) -> float:
        """FLOP/s of flash attention on the unmasked part."""
        accelerator = self.machine.accelerator
        share = accelerator.attention_share.get(accelerator.width(self.precision.bits))
        return self.wide_flops * (training_constants().attention_share if share is None else share)
