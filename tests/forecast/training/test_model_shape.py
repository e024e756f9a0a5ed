"""Parameters and FLOPs of models compared with published numbers and equations."""

from __future__ import annotations

import pytest
from training_shapes import GPT3, LLAMA2_70B, LLAMA3_8B, LLAMA3_70B, LLAMA3_405B, gpt

from corral.catalog.accelerators.transformer import LatentAttention, TransformerModel
from corral.forecast.training.flops import (
    attention_flops,
    hardware_flops_per_token,
    model_flops_per_token,
    six_n_flops_per_token,
)
from corral.forecast.training.layout import Recompute

QWEN3_30B = TransformerModel(
    name="qwen3-30b-a3b",
    layers=48,
    hidden=2048,
    ffn=768,
    heads=32,
    kv_heads=4,
    head_dim=128,
    vocabulary=151936,
    experts=128,
    top_k=8,
)


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [
        (LLAMA3_8B, 8_030_261_248),
        (LLAMA3_70B, 70_553_706_496),
        (LLAMA3_405B, 405_853_388_800),
        (LLAMA2_70B, 68_976_648_192),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_llamas_have_the_published_parameters(shape: TransformerModel, parameters: int) -> None:
    assert shape.parameters == parameters


def test_gpt_has_the_parameters_of_equation_2() -> None:
    layers, h, vocabulary, s = 96, 12288, 51200, 2048
    equation = 12 * layers * h**2 * (1 + 13 / (12 * h) + (vocabulary + s) / (12 * layers * h))
    assert GPT3.parameters - 2 * h == pytest.approx(equation, rel=1e-12)


@pytest.mark.parametrize(
    ("layers", "hidden", "heads", "billions"),
    [
        (24, 2304, 24, 1.7),
        (36, 4096, 32, 7.5),
        (60, 10240, 80, 76.1),
        (105, 20480, 128, 529.6),
        (128, 25600, 160, 1008),
    ],
)
def test_gpts_have_the_size_that_table_1_prints(layers: int, hidden: int, heads: int, billions: float) -> None:
    assert gpt(layers, hidden, heads).parameters / 1e9 == pytest.approx(billions, abs=0.06)


def test_a_mixture_has_its_published_sizes() -> None:
    assert (round(QWEN3_30B.parameters / 1e9, 1), round(QWEN3_30B.active_parameters / 1e9, 1)) == (30.5, 3.4)


def test_a_published_active_size_replaces_the_computed_one() -> None:
    from dataclasses import replace

    known = replace(QWEN3_30B, active=3.3e9)
    assert known.active_parameters == 3.3e9
    assert known.matmul_parameters == 3.3e9 - 151936 * 2048


@pytest.mark.parametrize("size", [(48, 6144, 64), (96, 12288, 96), (105, 20480, 128)])
def test_model_flops_are_equation_7_of_korthikanti(size: tuple[int, int, int]) -> None:
    (layers, h, _), s, vocabulary = size, 2048, 51200
    equation = 72 * layers * h**2 * (1 + s / (6 * h) + vocabulary / (12 * layers * h))
    assert model_flops_per_token(gpt(*size), s) == pytest.approx(equation, rel=1e-12)


@pytest.mark.parametrize("size", [(48, 6144, 64), (96, 12288, 96), (105, 20480, 128)])
def test_recomputing_all_is_equation_3_of_narayanan(size: tuple[int, int, int]) -> None:
    (layers, h, _), s, vocabulary = size, 2048, 51200
    equation = 96 * layers * h**2 * (1 + s / (6 * h) + vocabulary / (16 * layers * h))
    assert hardware_flops_per_token(gpt(*size), s, Recompute.FULL) == pytest.approx(equation, rel=1e-12)


def test_selective_recomputation_adds_s_over_6h() -> None:
    model, hardware = (
        model_flops_per_token(GPT3, 2048),
        hardware_flops_per_token(GPT3, 2048, Recompute.SELECTIVE),
    )
    assert hardware - model == pytest.approx(72 * 96 * 12288**2 * 2048 / (6 * 12288) / 3, rel=1e-12)


def test_causal_attention_is_half() -> None:
    whole = attention_flops(LLAMA3_8B, 8192)
    assert (whole, attention_flops(LLAMA3_8B, 8192, causal=True)) == (4 * 4096 * 8192, 2 * 4096 * 8192)


def test_causal_8b_at_8k_is_eleven_percent_less() -> None:
    ratio = model_flops_per_token(LLAMA3_8B, 8192, causal=True) / model_flops_per_token(LLAMA3_8B, 8192)
    assert round(1 - ratio, 2) == 0.11


def test_printed_tflops_of_llama3_8b_are_those_of_its_tokens() -> None:
    # Megatron-Bridge 25.11, H100, FP8: 14451 tokens/s, 744 TFLOPS by its causal formula
    assert 14451 * model_flops_per_token(LLAMA3_8B, 8192, causal=True) / 1e12 == pytest.approx(744, rel=2e-3)


def test_six_n_of_llama2_70b() -> None:
    assert six_n_flops_per_token(LLAMA2_70B) == 6 * 68_976_648_192


DEEPSEEK_V3 = TransformerModel(
    name="deepseek-v3",
    layers=61,
    hidden=7168,
    ffn=2048,
    heads=128,
    kv_heads=128,
    head_dim=128,
    vocabulary=129280,
    experts=256,
    top_k=8,
    shared=1,
    dense_layers=3,
    dense_ffn=18432,
    latent=LatentAttention(query_rank=1536, key_value_rank=512, rotary=64),
)


def test_deepseek_v3_has_the_published_parameters() -> None:
    assert DEEPSEEK_V3.parameters == pytest.approx(671.03e9, rel=1e-5)


def test_deepseek_v3_has_the_published_active_parameters() -> None:
    assert DEEPSEEK_V3.active_parameters == pytest.approx(37e9, rel=0.02)


def test_latent_projections_go_down_to_the_ranks_and_up_again() -> None:
    down = 7168 * (1536 + 512 + 64)
    up = 1536 * 128 * 192 + 512 * 128 * 256
    assert DEEPSEEK_V3.attention_matmul == down + up + 128 * 128 * 7168


def test_latent_queries_and_keys_are_wider_than_values() -> None:
    assert attention_flops(DEEPSEEK_V3, 4096) == 2 * 4096 * 128 * (192 + 128)


def test_dense_layers_count_in_the_mean_of_a_layer() -> None:
    expected = (58 * 9 * 2048 + 3 * 18432) / 61
    assert DEEPSEEK_V3.mlp_width_in_use == pytest.approx(expected)


def test_dense_layers_have_no_experts() -> None:
    assert DEEPSEEK_V3.expert_parameters == pytest.approx(58 / 61 * 256 * 3 * 7168 * 2048)
