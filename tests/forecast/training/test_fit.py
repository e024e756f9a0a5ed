"""Whether runs fit, and the proposed changes if not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from training_shapes import LLAMA3_8B, LLAMA3_70B, LLAMA3_405B

from corral.catalog.accelerators.accelerators import find_accelerator
from corral.catalog.accelerators.transformer import TransformerModel
from corral.forecast.training.fit import first_change, fits, job_memory, largest_micro_batch
from corral.forecast.training.interconnect import links_of
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding


def job(shape: TransformerModel, layout: Layout, *, accelerator: str = "H100-80", batch: float = 512) -> Job:
    return Job(
        shape=shape,
        layout=layout,
        machine=links_of(find_accelerator(accelerator), None),
        seq_len=8192,
        global_batch=batch,
        precision=Precision.BF16,
    )


def test_8b_does_not_fit_one_h100_and_fits_eight_that_share_it() -> None:
    alone, shared = Layout(dp=8), Layout(dp=8, sharding=Sharding.ZERO3)
    assert [fits(job(LLAMA3_8B, layout)) for layout in (alone, shared)] == [False, True]


def test_405b_fits_16384_as_llama_3_was_laid_out() -> None:
    layout = Layout(tp=8, pp=16, dp=128, sharding=Sharding.ZERO2, sequence_parallel=True)
    assert fits(job(LLAMA3_405B, layout, batch=2048))


def test_the_largest_micro_batch_grows_with_memory() -> None:
    layout = Layout(dp=8, sharding=Sharding.ZERO3, recompute=Recompute.FULL)
    sizes = [largest_micro_batch(job(LLAMA3_8B, layout, accelerator=name)) for name in ("H100-80", "H200", "B300")]
    assert sizes == [2, 4, 8]


def test_a_rank_cannot_have_more_than_its_part_of_the_batch() -> None:
    layout = Layout(dp=8, sharding=Sharding.ZERO3, recompute=Recompute.FULL)
    assert largest_micro_batch(job(LLAMA3_8B, layout, accelerator="B300", batch=16)) == 2


def test_no_micro_batch_if_not_one_sequence_fits() -> None:
    assert largest_micro_batch(job(LLAMA3_405B, Layout(dp=8))) is None


def test_run_that_fits_needs_no_change() -> None:
    assert first_change(job(LLAMA3_8B, Layout(dp=8, sharding=Sharding.ZERO3))) is None


@pytest.mark.parametrize(
    ("shape", "layout", "words", "enough"),
    [
        (LLAMA3_8B, Layout(dp=8), "shard the parameters too (zero3, FSDP)", True),
        (LLAMA3_8B, Layout(dp=8, sharding=Sharding.ZERO3, micro_batch=2), "halve the micro-batch to 1", True),
        (LLAMA3_8B, Layout(tp=2, dp=8, sharding=Sharding.ZERO1, micro_batch=2), "use sequence parallelism", True),
        (LLAMA3_70B, Layout(dp=8), "shard the parameters too (zero3, FSDP)", False),
    ],
)
def test_the_first_change_is_the_cheapest_that_is_enough(
    shape: TransformerModel, layout: Layout, words: str, enough: bool
) -> None:
    change = first_change(job(shape, layout))
    assert change is not None
    assert (change.words, change.fits) == (words, enough)


def test_a_change_saves_memory() -> None:
    crowded = job(LLAMA3_70B, Layout(dp=8))
    change = first_change(crowded)
    assert change is not None
    assert change.memory.total < job_memory(crowded).total
    assert job_memory(replace(crowded, layout=change.layout)) == change.memory
