"""Accelerator hours that publishers count for whole runs, compared with the forecast of the same tokens.

Hours of BLOOM, Llama 2 and Llama 3 include interruptions, so a job is assumed to train for nine tenths of its time:
Llama 3 and MegaScale report more (arXiv:2407.21783, 3.3.4;
arXiv:2402.15627). Those of LLaMA are tokens by its published speed, with no time lost: 1.4T tokens at 380 a second
are 1,023,000 hours.

The layouts of BLOOM and Llama 3 are published. Those of LLaMA and Llama 2 follow one rule: as many tensor-parallel
ranks as the released weights have parts, everything sharded, on LLaMA's 2,048 accelerators or on as many as the batch
has sequences for, and a micro-batch of all sequences of a rank, at most eight. Operators are recomputed, since LLaMA
stores the outputs of linear layers and recomputes cheaper ones (arXiv:2302.13971, 2.4).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared_runs import open_job

from corral.catalog.accelerators.transformer import TransformerModel
from corral.catalog.accelerators.transformer_models import models
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.speed import accelerator_hours, forecast_speed

EFFECTIVE = 0.9
LLAMA_ACCELERATORS = 2048  # arXiv:2302.13971, 2.4
LARGEST_MICRO_BATCH = 8
LLAMA_BATCH, LLAMA2_BATCH = 2048, 1024  # sequences: 4M tokens of both, in sequences of 2,048 and of 4,096

LLAMA3_405B = Layout(
    tp=8, pp=16, dp=128, virtual_stages=8, sharding=Sharding.ZERO2, sequence_parallel=True
)  # arXiv:2407.21783, Table 4; virtual stages of one layer
BLOOM = Layout(
    tp=4, pp=12, dp=8, micro_batch=2, sharding=Sharding.ZERO1, recompute=Recompute.FULL
)  # bigscience, train/tr11-176B-ml
# arXiv:2302.13971, Table 2; Code Llama's config.json
_LLAMA = {"name": "llama", "vocabulary": 32000, "head_dim": 128}
LLAMA_33B = TransformerModel(layers=60, hidden=6656, ffn=17920, heads=52, kv_heads=52, **_LLAMA)
LLAMA2_34B = TransformerModel(layers=48, hidden=8192, ffn=22016, heads=64, kv_heads=8, **_LLAMA)


def hours(
    model: str | TransformerModel,
    tokens: float,
    layout: Layout,
    *,
    batch: int,
    seq_len: int,
    accelerator: str = "A100-80",
    effective: float = EFFECTIVE,
) -> float:
    shape = models()[model] if isinstance(model, str) else model
    nodes = int(layout.accelerators) // 8
    job = open_job("llama2-7b", nodes, batch, seq_len=seq_len, accelerator=accelerator)
    return accelerator_hours(forecast_speed(replace(job, shape=shape).laid_out(layout)), tokens, effective=effective)


def by_rule(tp: int, batch: int) -> Layout:
    """The layout of a LLaMA by the rule above."""
    dp = min(LLAMA_ACCELERATORS // tp, batch)
    return Layout(
        tp=tp,
        dp=dp,
        micro_batch=min(batch // dp, LARGEST_MICRO_BATCH),
        sharding=Sharding.ZERO3,
        recompute=Recompute.OPERATORS,
        sequence_parallel=tp > 1,
    )


@pytest.mark.parametrize(
    ("model", "tokens", "published", "layout", "seq_len", "accelerator"),
    [
        ("llama3-405b", 15.6e12, 30_840_000, LLAMA3_405B, 8192, "H100-80"),
        ("bloom-176b", 366e9, 1_082_990, BLOOM, 2048, "A100-80"),
    ],
)
def test_hours_of_runs_with_a_published_layout_match(
    model: str, tokens: float, published: int, layout: Layout, seq_len: int, accelerator: str
) -> None:
    found = hours(model, tokens, layout, batch=2048, seq_len=seq_len, accelerator=accelerator)
    assert found == pytest.approx(published, rel=0.15)


@pytest.mark.parametrize(
    ("model", "tp", "tokens", "published"),
    [
        ("llama2-7b", 1, 1e12, 82_432),  # LLaMA's 7B and 13B have the same shape
        ("llama2-13b", 2, 1e12, 135_168),
        (LLAMA_33B, 4, 1.4e12, 530_432),
        ("llama-65b", 8, 1.4e12, 1_022_362),
    ],
)
def test_hours_of_llama_match(model: str | TransformerModel, tp: int, tokens: float, published: int) -> None:
    layout = by_rule(tp, LLAMA_BATCH)
    found = hours(model, tokens, layout, batch=LLAMA_BATCH, seq_len=2048, effective=1.0)
    assert found == pytest.approx(published, rel=0.15)


@pytest.mark.parametrize(
    ("model", "tp", "published"),
    [
        ("llama2-7b", 1, 184_320),
        ("llama2-13b", 2, 368_640),
        (LLAMA2_34B, 4, 1_038_336),  # at 350 of 400 W
        ("llama2-70b", 8, 1_720_320),
    ],
)
def test_hours_of_llama_2_match(model: str | TransformerModel, tp: int, published: int) -> None:
    found = hours(model, 2e12, by_rule(tp, LLAMA2_BATCH), batch=LLAMA2_BATCH, seq_len=4096)
    assert found == pytest.approx(published, rel=0.15)
