"""The roofline: hand-worked intensities, and no work above the reached roofs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from training_shapes import GPT3, LLAMA3_8B

from corral.catalog.accelerators.accelerators import find_accelerator
from corral.catalog.accelerators.transformer import TransformerModel
from corral.forecast.training.interconnect import links_of
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout, Sharding
from corral.forecast.training.roofline import Work, roofline

H100 = find_accelerator("H100-80")
SMALL = TransformerModel(
    name="small",
    layers=2,
    hidden=1024,
    ffn=4096,
    heads=8,
    kv_heads=8,
    head_dim=128,
    vocabulary=32000,
    gated=False,
)
JOB = Job(
    shape=SMALL,
    layout=Layout(dp=8, sharding=Sharding.ZERO1),
    machine=links_of(H100, 400),
    seq_len=2048,
    global_batch=8,
    precision=Precision.BF16,
)


def work(job: Job, name: str) -> Work:
    return next(one for one in roofline(job).works if one.name == name)


def test_products_are_six_flops_for_each_parameter_and_token() -> None:
    assert work(JOB, "matrix products").flops == 6 * (4 * 1024 * 1024 + 2 * 1024 * 4096) * 2048


def test_products_move_inputs_outputs_weights_and_gradients() -> None:
    inputs_and_outputs = 3 * (4096 + 2048 + 2048 + 8192) * 2 * 2048  # h+q+kv, q+h, 2h, 2f: in 16 bits, three times
    weights = (4 * 1024 * 1024 + 2 * 1024 * 4096 + 2 * 1024) * (3 * 2 + 8)
    assert work(JOB, "matrix products").bytes == inputs_and_outputs + weights


def test_fused_attention_does_a_quarter_of_a_flop_for_each_byte_and_token_of_a_sequence() -> None:
    assert work(JOB, "attention").intensity == 2048 / 4  # 4ads/2 FLOPs by 2 (2ad + 2ad) bytes


def test_grouped_keys_and_values_are_moved_less() -> None:
    job = replace(JOB, shape=LLAMA3_8B, seq_len=8192)
    assert work(job, "attention").intensity == 8192 / 2 * 4 * 4096 / (2 * (2 * 4096 + 2 * 1024))


def test_the_output_does_a_quarter_of_a_flop_for_each_byte_and_number_of_the_hidden_state() -> None:
    assert work(JOB, "output and loss").intensity == 1024 / 4  # 6hV FLOPs by 24V bytes


def test_a_residual_sum_is_one_flop_for_three_numbers() -> None:
    assert work(JOB, "residual sums").intensity == pytest.approx(1 / 6)


def test_the_ridge_of_an_h100_is_where_its_reached_roofs_meet() -> None:
    assert roofline(JOB).ridge == pytest.approx(H100.reached_flops(16) / (3350e9 * 0.85))


def test_sums_are_limited_by_memory_and_products_by_compute() -> None:
    found = roofline(replace(JOB, shape=LLAMA3_8B, seq_len=8192))
    assert [found.bound(one) for one in found.works] == ["compute", "compute", "compute", "memory", "compute"]


@pytest.mark.parametrize("shape", [LLAMA3_8B, GPT3])
@pytest.mark.parametrize("precision", [Precision.BF16, Precision.FP8])
def test_nothing_is_above_its_roof(shape: TransformerModel, precision: Precision) -> None:
    found = roofline(replace(JOB, shape=shape, precision=precision))
    assert [one.name for one in found.works if one.flops_per_s > found.roof(one.intensity) * 1.000001] == []


def test_layer_time_is_that_of_the_speed_forecast() -> None:
    names = ("matrix products", "attention")
    parts = [work(JOB, name).flops for name in names]
    assert work(JOB, "a whole layer").flops == sum(parts)
