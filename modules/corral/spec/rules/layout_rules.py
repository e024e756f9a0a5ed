"""Rules about the layout of a run: what the degrees must divide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.catalog.accelerators.transformer import TransformerModel
from corral.catalog.accelerators.transformer_models import stage_layers
from corral.spec.models.run import LayoutSpec
from corral.spec.spec_errors import SpecFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutContext:
    """The run that a layout is validated against. `batch_sequences`: None if unknown."""

    model: TransformerModel
    sequence_length: int
    batch_sequences: int | None
    accelerators: int


def check_layout(layout: LayoutSpec, context: LayoutContext) -> Iterator[SpecFinding]:
    """Yield findings about this layout."""
    refused = tuple(_check_degrees(layout, context))
    yield from refused
    yield from _check_model(layout, context)
    if layout.data is not None or not refused:  # otherwise the number of data ranks is unknown
        yield from _check_experts(layout, context)
        yield from _check_batch(layout, context)


def data_ranks(layout: LayoutSpec, accelerators: int) -> int:
    """Return the number of ranks that share the batch: as declared, or all that the other degrees leave."""
    return layout.data or max(1, accelerators // (layout.tensor * layout.pipeline * layout.context))


def _check_degrees(layout: LayoutSpec, context: LayoutContext) -> Iterator[SpecFinding]:
    degrees = {"tensor": layout.tensor, "pipeline": layout.pipeline, "context": layout.context}
    product = layout.tensor * layout.pipeline * layout.context
    words = " x ".join(f"{name} {degree}" for name, degree in degrees.items())
    if layout.data is None and context.accelerators % product:
        yield SpecFinding(
            ("layout",),
            f"{words} is {product}, which does not divide {context.accelerators} accelerators",
            "use other degrees",
        )
    elif layout.data is not None and product * layout.data != context.accelerators:
        whole, rest = divmod(context.accelerators, product)
        hint = f"use data {whole}, or remove it" if not rest and whole else "use other degrees, or other nodes"
        message = f"{words} x data {layout.data} is {product * layout.data}, but there are {context.accelerators}"
        yield SpecFinding(("layout", "data"), f"{message} accelerators", hint)


def _check_model(layout: LayoutSpec, context: LayoutContext) -> Iterator[SpecFinding]:
    model = context.model
    if model.heads % layout.tensor:
        yield SpecFinding(
            ("layout", "tensor"),
            f"{layout.tensor} does not divide the {model.heads} heads of {model.name}",
            "use a divisor",
        )
    layers = stage_layers(model.layers, layout.pipeline)
    if layers is None:
        yield SpecFinding(
            ("layout", "pipeline"),
            f"{layout.pipeline} stages do not divide {model.layers} layers",
            f"use a divisor of {model.layers}, or of up to 3 more",
        )
    elif layout.virtual_stages > 1 and layout.pipeline == 1:
        yield SpecFinding(("layout", "virtual_stages"), "requires a pipeline, and this layout has none", "remove it")
    elif layers % layout.virtual_stages:
        yield SpecFinding(
            ("layout", "virtual_stages"),
            f"{layout.virtual_stages} parts do not divide a stage of {layers} layers",
            f"use a divisor of {layers}",
        )
    if context.sequence_length % layout.context:
        yield SpecFinding(
            ("layout", "context"),
            f"{layout.context} does not divide sequence_length {context.sequence_length}",
            "use a divisor",
        )


def _check_experts(layout: LayoutSpec, context: LayoutContext) -> Iterator[SpecFinding]:
    model, expert = context.model, layout.expert
    ranks = layout.tensor * layout.context * data_ranks(layout, context.accelerators)
    if expert > 1 and not model.experts:
        yield SpecFinding(("layout", "expert"), f"{model.name} has no experts", "remove it")
    elif expert > 1 and (model.experts % expert or ranks % expert):
        message = f"{expert} must divide {model.experts} experts and tensor x context x data = {ranks}"
        yield SpecFinding(("layout", "expert"), message, "use a divisor of both")


def _check_batch(layout: LayoutSpec, context: LayoutContext) -> Iterator[SpecFinding]:
    batch, data = context.batch_sequences, data_ranks(layout, context.accelerators)
    if batch is None:
        return
    if batch % data:
        message = f"a batch of {batch} sequences cannot be shared by {data} data ranks"
        yield SpecFinding(("layout",), message, f"use a multiple of {data}, or fewer ranks")
    elif batch // data % layout.micro_batch:
        yield SpecFinding(
            ("layout", "micro_batch"),
            f"{layout.micro_batch} does not divide the {batch // data} sequences of a data rank",
            "use a divisor",
        )
    elif layout.virtual_stages > 1 and batch // data // layout.micro_batch % layout.pipeline:
        count = batch // data // layout.micro_batch
        message = f"interleaving needs micro-batches in groups of {layout.pipeline}, but a data rank has {count}"
        yield SpecFinding(
            ("layout", "virtual_stages"), message, f"use a multiple of {layout.pipeline}, or 1 virtual stage"
        )
