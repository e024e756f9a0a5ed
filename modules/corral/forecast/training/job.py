"""One training run as the forecast sees it: a model, a layout, a machine, a batch, a precision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.catalog.training_constants import training_constants
from corral.catalog.transformer import TransformerModel
from corral.forecast.training.layout import Layout
from corral.forecast.training.network import Machine


class Precision(StrEnum):
    """Numbers that matrix products of layers take; embeddings, output and attention have 16 bits at least.

    FP32 keeps everything in 32 bits and multiplies in TF32, where an accelerator has that.
    """

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    FP4 = "fp4"

    @property
    def bits(self) -> int:
        """Their width."""
        return {"fp32": 32, "fp8": 8, "fp4": 4}.get(self.value, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run: what is trained, how it is laid out, on what. `global_batch` is in sequences.

    `fused_attention`: flash attention, which never writes the scores. `efa`: nodes are joined by it, where libraries
    for mixtures of experts (DeepEP) do not run and every token is sent once for each expert. `expert_overlap`: whether
    there the exchange among experts goes on behind other work, None where nobody says. `offload_optimizer`: the
    host has the optimizer's state and steps it.
    """

    shape: TransformerModel
    layout: Layout
    machine: Machine
    seq_len: int
    global_batch: float
    precision: Precision
    fused_attention: bool = True
    efa: bool = False
    expert_overlap: bool | None = None
    offload_optimizer: bool = False

    @property
    def accelerators(self) -> float:
        """How many it has."""
        return self.layout.accelerators

    @property
    def micro_batches(self) -> int:
        """How many a data-parallel rank does in a step."""
        return self.layout.micro_batches(self.global_batch)

    @property
    def tokens(self) -> float:
        """Tokens of one micro-batch on one rank; context parallelism divides them."""
        return self.seq_len / self.layout.cp * self.layout.micro_batch

    @property
    def experts_span_nodes(self) -> bool:
        """Whether one copy of the routed experts is in several link domains, so that tokens cross the network."""
        return self.shape.is_moe and self.layout.ep > 1 and self.machine.group(self.layout.ep, 1).across > 1

    @property
    def narrow(self) -> bool:
        """Whether products take numbers of less than 16 bits."""
        return self.precision.bits < 16

    @property
    def number_bytes(self) -> int:
        """Bytes of a number of what layers keep and exchange."""
        return 4 if self.precision is Precision.FP32 else 2

    @property
    def product_flops(self) -> float:
        """FLOP/s of large products in this precision."""
        return self.machine.accelerator.reached_flops(self.precision.bits)

    @property
    def wide_flops(self) -> float:
        """FLOP/s of large products in 16 bits, or in what all numbers have."""
        return self.machine.accelerator.reached_flops(max(16, self.precision.bits))

    @property
    def attention_flops(self) -> float:
        """FLOP/s of flash attention, for the part that is not masked."""
        accelerator = self.machine.accelerator
        share = accelerator.attention_share.get(accelerator.width(self.precision.bits))
        return self.wide_flops * (training_constants().attention_share if share is None else share)
