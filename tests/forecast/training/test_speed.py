"""The time of a step by parts, compared with hand-worked values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from training_shapes import GPT3, LLAMA3_8B

from corral.catalog.accelerators.accelerators import find_accelerator
from corral.catalog.accelerators.training_constants import origins, training_constants
from corral.forecast.training.communication import context_s, expert_s, gathering_s, pipeline_s, reduction_s, tensor_s
from corral.forecast.training.compute import attention_s, head_s, memory_rate, optimizer_s, products_s, recompute_s
from corral.forecast.training.flops import attention_flops, model_flops_per_token
from corral.forecast.training.interconnect import links_of
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.memory_traffic import activation_bytes_per_token, score_bytes_per_token, weight_bytes
from corral.forecast.training.speed import bubble_s, forecast_speed, parallel_efficiency

A100 = find_accelerator("A100-80")
H100 = find_accelerator("H100-80")
GPT3_JOB = Job(
    shape=GPT3,
    layout=Layout(tp=8, pp=8, dp=4, virtual_stages=6),
    machine=links_of(A100, 200),
    seq_len=2048,
    global_batch=256,
    precision=Precision.BF16,
)
LLAMA_JOB = Job(
    shape=LLAMA3_8B,
    layout=Layout(dp=8, sharding=Sharding.ZERO3),
    machine=links_of(H100, 400),
    seq_len=8192,
    global_batch=64,
    precision=Precision.BF16,
)


def laid(job: Job, **changes: object) -> Job:
    return replace(job, layout=replace(job.layout, **changes))  # type: ignore[arg-type]


def test_micro_batches_of_a_rank() -> None:
    assert (GPT3_JOB.micro_batches, laid(GPT3_JOB, micro_batch=3).micro_batches) == (64, 22)


def test_products_are_six_flops_for_each_parameter_and_token() -> None:
    flops = 6 * 12 * 12288**2 * 2048 / 8
    assert products_s(GPT3_JOB) == pytest.approx(flops / A100.reached_flops(16))


def test_fp8_uses_the_peak_of_8_bits() -> None:
    quick = replace(LLAMA_JOB, precision=Precision.FP8)
    ratio = products_s(LLAMA_JOB) / products_s(quick)
    assert ratio == pytest.approx(H100.reached_flops(8) / H100.reached_flops(16))


def test_flash_attention_computes_the_unmasked_half() -> None:
    flops = 3 * attention_flops(LLAMA3_8B, 8192) / 2 * 8192
    assert attention_s(LLAMA_JOB) == pytest.approx(flops / H100.reached_flops(16) / 0.28)


def test_unfused_attention_moves_its_scores() -> None:
    assert score_bytes_per_token(GPT3, Layout(tp=8), 2048) == 13 * 12 * 2048


def test_full_recomputation_is_one_more_forward_pass() -> None:
    again = laid(LLAMA_JOB, recompute=Recompute.FULL)
    moved = activation_bytes_per_token(LLAMA3_8B, again.layout, narrow=False) * 8192 / memory_rate(again)
    assert recompute_s(again) == pytest.approx(products_s(again) / 3 + attention_s(again) / 3 + moved)


def test_flash_attention_recomputes_by_itself() -> None:
    assert recompute_s(laid(LLAMA_JOB, recompute=Recompute.SELECTIVE)) == 0


def test_output_is_always_in_16_bits() -> None:
    assert head_s(replace(LLAMA_JOB, precision=Precision.FP8)) == head_s(LLAMA_JOB)


def test_optimizer_passes_over_its_shard() -> None:
    alone, sharded = (optimizer_s(laid(LLAMA_JOB, sharding=sharding)) for sharding in (Sharding.NONE, Sharding.ZERO1))
    assert alone == pytest.approx(8 * sharded)


def test_traffic_of_a_plain_layer() -> None:
    # norms and sums 20h, attention core 8h, MLP's activation 16h, half of products' 32h
    assert activation_bytes_per_token(GPT3, Layout(), narrow=False) == pytest.approx((20 + 8 + 16 + 0.7 * 32) * 12288)


def test_traffic_of_weights() -> None:
    # read three times, an fp32 gradient added up: 14 bytes, half of which is seen
    assert weight_bytes(GPT3, Layout(), narrow=False) == pytest.approx(9.8 * GPT3.layer_parameters)


def test_tensor_parallelism_takes_four_all_reduces_of_2sbh() -> None:
    size = 2 * 2048 * 12288
    assert tensor_s(GPT3_JOB) == pytest.approx(4 * (14 * 5e-6 + 2 * 7 / 8 * size / 240e9))


def test_full_recomputation_takes_six() -> None:
    assert tensor_s(laid(GPT3_JOB, recompute=Recompute.FULL)) == pytest.approx(1.5 * tensor_s(GPT3_JOB))


def test_without_tensor_parallelism_there_is_none() -> None:
    assert tensor_s(LLAMA_JOB) == 0


def test_a_stage_sends_2sbh_over_t_both_ways() -> None:
    plain = laid(GPT3_JOB, virtual_stages=1)
    assert pipeline_s(plain) == pytest.approx(2 * (20e-6 + 2 * 2048 * 12288 / 8 / 25e9))


def test_interleaving_hides_most_of_its_additional_traffic() -> None:
    assert pipeline_s(GPT3_JOB) == pytest.approx(6 * 0.35 * pipeline_s(laid(GPT3_JOB, virtual_stages=1)))


def test_context_parallelism_hides_behind_attention() -> None:
    job = laid(LLAMA_JOB, cp=8, dp=1)
    sent = 3 * 7 * (5e-6 + 4 * 1024 * 8 * 128 / 360e9)
    assert context_s(job) == pytest.approx(max(0.35 * sent, sent - attention_s(job) / 2))


def test_dense_layers_have_no_experts() -> None:
    assert expert_s(GPT3_JOB) == 0


def test_experts_exchange_tokens_four_times() -> None:
    shape = replace(LLAMA3_8B, experts=64, top_k=8)
    job = laid(replace(LLAMA_JOB, shape=shape), ep=8, sharding=Sharding.ZERO1)
    one = 7 * 5e-6 + 7 / 8 * 8 * 2 * 8192 * 4096 / 360e9
    assert expert_s(job) == pytest.approx(1e-3 + 8 * 3e-4 + 4 * one * 0.2)


def test_gathering_is_hidden_if_work_takes_longer() -> None:
    size = 2 * LLAMA3_8B.layer_parameters
    assert gathering_s(LLAMA_JOB) == pytest.approx(0.35 * 3 * (7 * 5e-6 + 7 / 8 * size / 360e9))


def test_megatron_of_2021_hides_no_reduction() -> None:
    held = 4 * (96 * GPT3.shared_layer_parameters + GPT3.embedding) / 64
    expected = 2 * (0.75 * held / (25e9 * GPT3_JOB.machine.network_share(held)) + 20e-6)
    assert reduction_s(GPT3_JOB, 1.0) == pytest.approx(expected)


def test_a_sharded_optimizer_hides_it_behind_a_micro_batch() -> None:
    sharded = laid(GPT3_JOB, sharding=Sharding.ZERO1)
    assert reduction_s(sharded, 10.0) == pytest.approx(0.35 * reduction_s(GPT3_JOB, 10.0) * 0.75, rel=0.01)


@pytest.mark.parametrize(
    ("micro_batches", "stages", "virtual", "part"), [(64, 8, 1, 7 / 64), (64, 8, 3, 7 / 192), (10, 1, 1, 0)]
)
def test_bubble(micro_batches: int, stages: int, virtual: int, part: float) -> None:
    assert bubble_s(1.0, micro_batches, stages, virtual) == pytest.approx(part)


def test_mfu_is_model_flops_over_the_peak() -> None:
    speed = forecast_speed(GPT3_JOB)
    expected = speed.tokens_per_s_per_accelerator * model_flops_per_token(GPT3, 2048) / 312e12
    assert speed.mfu == pytest.approx(expected)


def test_mfu_of_korthikanti_follows_from_its_step() -> None:
    # 175B on 64 A100, batch 64: 13.75 s, MFU 51.4 % (arXiv:2205.05198, Table 5)
    each = 64 * 2048 / 13.75 / 64
    assert each * model_flops_per_token(GPT3, 2048) / 312e12 == pytest.approx(0.514, abs=1e-3)


def test_tokens_are_those_of_a_batch_and_a_step() -> None:
    speed = forecast_speed(GPT3_JOB)
    assert speed.tokens_per_s * speed.parts.total == pytest.approx(256 * 2048)
    assert speed.tokens_per_s / speed.tokens_per_s_per_accelerator == pytest.approx(256)


def test_more_nodes_on_one_batch_are_less_efficient() -> None:
    many = laid(GPT3_JOB, dp=32)
    assert 0.5 < parallel_efficiency(forecast_speed(GPT3_JOB), forecast_speed(many)) < 0.95


def test_a_small_micro_batch_over_many_nodes_is_limited_by_gathering() -> None:
    job = replace(GPT3_JOB, layout=Layout(dp=1536, sharding=Sharding.DEEPSPEED_ZERO3), global_batch=1536)
    speed = forecast_speed(job)
    assert (speed.parts.limit, speed.communication_share > 0.5) == ("data", True)


def test_every_constant_has_a_source() -> None:
    assert [name for name in training_constants().__dataclass_fields__ if not origins().get(name)] == []
    assert set(origins()) == set(training_constants().__dataclass_fields__)


def test_experts_are_spread_over_their_own_ranks() -> None:
    spread, whole = Layout(tp=2, dp=16, ep=8), Layout(tp=2, dp=16)
    assert [(one.expert_ranks, one.expert_copies) for one in (spread, whole)] == [(8, 4), (2, 16)]
