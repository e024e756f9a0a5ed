"""Checks a row of published runs for impossible values, with some slack for rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from corral.catalog.accelerators.accelerators import AcceleratorModel
from corral.catalog.accelerators.transformer import TransformerModel
from corral.forecast.published.csv_rows import CsvRow
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout

_SLACK = 0.5  # of a parameter count: publishers round, and a shape lacks what has no column (shared experts)
_BILLION = 1e9
_ROUNDED = 1e-12  # of a number of sequences; a smaller remainder is floating-point error


def check_row_precision(row: CsvRow, precision: Precision, model: AcceleratorModel) -> None:
    """Records an error for a number format that these accelerators lack."""
    if not row.text("precision"):
        return
    without_bf16 = precision is Precision.BF16 and not model.has_bf16
    if precision.bits not in model.peak_tflops or without_bf16:
        usable = [
            one.value
            for one in Precision
            if one.bits in model.peak_tflops and (model.has_bf16 or one is not Precision.BF16)
        ]
        row.wrong("precision", f"{model.name} has no {precision.value}", f"use {' or '.join(usable)}")


def check_parameters(row: CsvRow, shape: TransformerModel) -> None:
    """Records an error for a parameter count that the shape cannot have, however counted.

    The range is from the active layer parameters without embeddings to all parameters with both embeddings, since a
    mixture may have dense layers, for which there is no column.
    """
    layers = shape.layers * shape.layer_parameters
    idle = shape.parameters - replace(shape, active=None).active_parameters
    least, every = layers - idle, layers + 2 * shape.embedding
    for column in ("params_b", "active_params_b"):
        reported = row.number(column)
        if reported is not None and not least * (1 - _SLACK) <= reported * _BILLION <= every * (1 + _SLACK):
            has = f"{_billions(least)} to {_billions(every)}, depending on what is counted"
            right = f"use a value within {_SLACK:.0%} of that, or correct layers, hidden, ffn_hidden, experts, vocab"
            row.wrong(column, f"{reported:,.4g} billion, but the shape of this row has {has}", right)


def check_batch(row: CsvRow, layout: Layout, batch: float | None) -> None:
    """Records an error for a batch smaller than the declared data ranks.

    Uneven batches are valid: they are published, and some programs use a smaller last micro-batch.
    """
    if batch is not None and batch < layout.dp and row.text("dp"):
        row.wrong("global_batch_seqs", f"{batch:,.0f} sequences for {layout.dp:,} data-parallel ranks")


def assumed_batch(job: Job) -> Iterator[str]:
    """The assumptions if data ranks do not divide the batch, or micro-batches the share of a rank."""
    share, each = job.global_batch / job.layout.dp, job.layout.micro_batch
    if not _rest(job.global_batch, job.layout.dp) and _rest(share, each):
        uneven = f"{share:,.6g} sequences per data rank are not a multiple of the micro-batch of {each:g}"
        yield f"{uneven}: the last one counts as full"
    if _rest(job.global_batch, job.layout.dp):
        longest = job.micro_batches * job.layout.micro_batch
        yield (
            f"{job.global_batch:,.6g} sequences do not divide among {job.layout.dp:,} data-parallel ranks:"
            f" a step takes as long as {longest:g} of them on one"
        )


def _rest(whole: float, part: float) -> bool:
    """True if there is a remainder."""
    return abs(math.remainder(whole, part)) > _ROUNDED * whole


def _billions(count: float) -> str:
    return f"{count / _BILLION:,.3g}"
