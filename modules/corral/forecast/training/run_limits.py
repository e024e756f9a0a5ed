"""What no run can have been, told of a row cell by cell; and what of that published tables may round, as assumed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from corral.catalog.accelerators import AcceleratorModel
from corral.catalog.transformer import TransformerModel
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout
from corral.forecast.training.rows import Row

_SLACK = 0.5  # of a count of parameters: publishers round, and what no column has (shared experts) is not in a shape
_BILLION = 1e9
_ROUNDED = 1e-12  # of a number of sequences: a remainder below it is the computer's


def check_precision(row: Row, precision: Precision, model: AcceleratorModel) -> None:
    """Notes numbers that these accelerators do not multiply, where the row names any."""
    if not row.text("precision"):
        return
    without_bf16 = precision is Precision.BF16 and not model.has_bf16
    if precision.bits not in model.peak_tflops or without_bf16:
        usable = [
            one.value
            for one in Precision
            if one.bits in model.peak_tflops and (model.has_bf16 or one is not Precision.BF16)
        ]
        row.wrong("precision", f"{model.name} has no {precision.value} - use {' or '.join(usable)}")


def check_parameters(row: Row, shape: TransformerModel) -> None:
    """Notes a number of parameters that the shape cannot have, however they are counted.

    From what one token uses of the layers, without embeddings, to all with both embeddings: a mixture may have dense
    layers, which no column has.
    """
    layers = shape.layers * shape.layer_parameters
    idle = shape.parameters - replace(shape, active=None).active_parameters
    least, every = layers - idle, layers + 2 * shape.embedding
    for column in ("params_b", "active_params_b"):
        told = row.number(column)
        if told is not None and not least * (1 - _SLACK) <= told * _BILLION <= every * (1 + _SLACK):
            has = f"{_billions(least)} to {_billions(every)}, by what is counted"
            right = f"use one within {_SLACK:.0%} of that, or the right layers, hidden, ffn_hidden, experts, vocab"
            row.wrong(column, f"{told:,.4g} billion, and the shape of this row has {has} - {right}")


def check_batch(row: Row, layout: Layout, batch: float | None) -> None:
    """Notes a batch that has too little for the data ranks that the row says.

    Uneven ones are published, and some programs have a smaller micro-batch at the end.
    """
    if batch is not None and batch < layout.dp and row.text("dp"):
        row.wrong("global_batch_seqs", f"{batch:,.0f} sequences for {layout.dp:,} data-parallel ranks")


def assumed_batch(job: Job) -> Iterator[str]:
    """What is taken for granted where data ranks do not divide the batch, or micro-batches the share of a rank."""
    share, each = job.global_batch / job.layout.dp, job.layout.micro_batch
    if not _rest(job.global_batch, job.layout.dp) and _rest(share, each):
        uneven = f"{share:,.6g} sequences of a data rank are no multiple of the micro-batch of {each:g}"
        yield f"{uneven}: the last counts whole"
    if _rest(job.global_batch, job.layout.dp):
        longest = job.micro_batches * job.layout.micro_batch
        yield (
            f"{job.global_batch:,.6g} sequences do not divide among {job.layout.dp:,} data-parallel ranks:"
            f" a step takes as long as {longest:g} of them on one"
        )


def _rest(whole: float, part: float) -> bool:
    """Whether anything remains."""
    return abs(math.remainder(whole, part)) > _ROUNDED * whole


def _billions(count: float) -> str:
    return f"{count / _BILLION:,.3g}"
