"""Hours of accelerators that publishers count for whole runs, against the forecast of the same tokens.

Published hours are of all that was used, interruptions too, so that a job is taken to train for nine tenths of
its time: Llama 3 and MegaScale say that theirs did for more (arXiv:2407.21783, 3.3.4; arXiv:2402.15627). Layouts are
published of the first two. Those of the others are assumed: as many tensor-parallel ranks as their weights came in
parts (1, 2, 8), everything sharded, the micro-batch all that a rank has of a step, and a round number of accelerators.
"""

from __future__ import annotations

import pytest
from declared_runs import open_job

from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.speed import accelerator_hours, forecast_speed

EFFECTIVE = 0.9


def hours(model: str, tokens: float, layout: Layout, *, batch: int, seq_len: int, accelerator: str) -> float:
    nodes = int(layout.accelerators) // 8
    job = open_job(model, nodes, batch, seq_len=seq_len, accelerator=accelerator).laid_out(layout)
    return accelerator_hours(forecast_speed(job), tokens, effective=EFFECTIVE)


def sharded(tp: int, dp: int, micro_batch: int) -> Layout:
    return Layout(tp=tp, dp=dp, micro_batch=micro_batch, sharding=Sharding.ZERO3, sequence_parallel=tp > 1)


LLAMA3_405B = Layout(
    tp=8, pp=16, dp=128, virtual_stages=8, sharding=Sharding.ZERO2, sequence_parallel=True
)  # arXiv:2407.21783, Table 4; virtual stages of one layer
BLOOM = Layout(
    tp=4, pp=12, dp=8, micro_batch=2, sharding=Sharding.ZERO1, recompute=Recompute.FULL
)  # bigscience, train/tr11-176B-ml


@pytest.mark.parametrize(
    ("model", "tokens", "published", "layout", "batch", "seq_len", "accelerator", "within"),
    [
        ("llama3-405b", 15.6e12, 30_840_000, LLAMA3_405B, 2048, 8192, "H100-80", 0.15),
        ("bloom-176b", 366e9, 1_082_990, BLOOM, 2048, 2048, "A100-80", 0.15),
        ("llama-65b", 1.4e12, 1_022_362, sharded(8, 256, 8), 2048, 2048, "A100-80", 0.15),
        ("llama2-70b", 2e12, 1_720_320, sharded(8, 256, 4), 1024, 4096, "A100-80", 0.15),
        # 38 and 39 % of the peak, interruptions included, of which nobody says how many they were: too few hours
        ("llama2-13b", 2e12, 368_640, sharded(2, 512, 2), 1024, 4096, "A100-80", 0.25),
        ("llama2-7b", 2e12, 184_320, sharded(1, 1024, 1), 1024, 4096, "A100-80", 0.20),
    ],
)
def test_hours_of_a_run_are_as_published(
    model: str,
    tokens: float,
    published: int,
    layout: Layout,
    batch: int,
    seq_len: int,
    accelerator: str,
    within: float,
) -> None:
    found = hours(model, tokens, layout, batch=batch, seq_len=seq_len, accelerator=accelerator)
    assert found == pytest.approx(published, rel=within)
