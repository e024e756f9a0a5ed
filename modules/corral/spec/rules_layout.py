"""Rules about the layout of a run: what divides what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.catalog.models import stage_layers
from corral.catalog.transformer import TransformerModel
from corral.spec.errors import Finding
from corral.spec.run import LayoutSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """What is to be laid out. `batch_sequences`: None where nobody knows them."""

    model: TransformerModel
    sequence_length: int
    batch_sequences: int | None
    accelerators: int


def check_layout(layout: LayoutSpec, laid: Laid) -> Iterator[Finding]:
    """What is wrong with this layout."""
    refused = tuple(_check_degrees(layout, laid))
    yield from refused
    yield from _check_model(layout, laid)
    if layout.data is not None or not refused:  # else nobody knows how many ranks share the batch
        yield from _check_experts(layout, laid)
        yield from _check_batch(layout, laid)


def data_ranks(layout: LayoutSpec, accelerators: int) -> int:
    """Ranks that share the batch: as declared, or what the other degrees leave."""
    return layout.data or max(1, accelerators // (layout.tensor * layout.pipeline * layout.context))


def _check_degrees(layout: LayoutSpec, laid: Laid) -> Iterator[Finding]:
    degrees = {"tensor": layout.tensor, "pipeline": layout.pipeline, "context": layout.context}
    product = layout.tensor * layout.pipeline * layout.context
    words = " x ".join(f"{name} {degree}" for name, degree in degrees.items())
    if layout.data is None and laid.accelerators % product:
        message = f"{words} is {product}, which does not divide {laid.accelerators} accelerators - use other degrees"
        yield Finding(("layout",), message)
    elif layout.data is not None and product * layout.data != laid.accelerators:
        whole, rest = divmod(laid.accelerators, product)
        hint = f"use data {whole}, or leave it out" if not rest and whole else "use other degrees, or other nodes"
        message = f"{words} x data {layout.data} is {product * layout.data}, and there are {laid.accelerators}"
        yield Finding(("layout", "data"), f"{message} accelerators - {hint}")


def _check_model(layout: LayoutSpec, laid: Laid) -> Iterator[Finding]:
    model = laid.model
    if model.heads % layout.tensor:
        message = f"{layout.tensor} does not divide the {model.heads} heads of {model.name} - use a divisor"
        yield Finding(("layout", "tensor"), message)
    layers = stage_layers(model.layers, layout.pipeline)
    if layers is None:
        message = (
            f"{layout.pipeline} stages of {model.layers} layers - use a divisor of {model.layers}, or of up to 3 more"
        )
        yield Finding(("layout", "pipeline"), message)
    elif layout.virtual_stages > 1 and layout.pipeline == 1:
        yield Finding(("layout", "virtual_stages"), "is for pipelines, this layout has none - leave it out")
    elif layers % layout.virtual_stages:
        message = f"{layout.virtual_stages} parts of a stage of {layers} layers - use a divisor of {layers}"
        yield Finding(("layout", "virtual_stages"), message)
    if laid.sequence_length % layout.context:
        message = f"{layout.context} does not divide sequence_length {laid.sequence_length} - use a divisor"
        yield Finding(("layout", "context"), message)


def _check_experts(layout: LayoutSpec, laid: Laid) -> Iterator[Finding]:
    model, expert = laid.model, layout.expert
    ranks = layout.tensor * layout.context * data_ranks(layout, laid.accelerators)
    if expert > 1 and not model.experts:
        yield Finding(("layout", "expert"), f"{model.name} has no experts - leave it out")
    elif expert > 1 and (model.experts % expert or ranks % expert):
        message = f"{expert} must divide {model.experts} experts and tensor x context x data = {ranks}"
        yield Finding(("layout", "expert"), f"{message} - use a divisor of both")


def _check_batch(layout: LayoutSpec, laid: Laid) -> Iterator[Finding]:
    batch, data = laid.batch_sequences, data_ranks(layout, laid.accelerators)
    if batch is None:
        return
    if batch % data:
        message = f"a batch of {batch} sequences cannot be shared by {data} data ranks"
        yield Finding(("layout",), f"{message} - use a multiple of {data}, or fewer ranks")
    elif batch // data % layout.micro_batch:
        message = f"{layout.micro_batch} does not divide the {batch // data} sequences of a data rank - use a divisor"
        yield Finding(("layout", "micro_batch"), message)
    elif layout.virtual_stages > 1 and batch // data // layout.micro_batch % layout.pipeline:
        count = batch // data // layout.micro_batch
        message = f"interleaving takes micro-batches in groups of {layout.pipeline}, and a data rank has {count}"
        yield Finding(
            ("layout", "virtual_stages"), f"{message} - use a multiple of {layout.pipeline}, or 1 virtual stage"
        )
