"""Memory of one accelerator compared with the tables of Korthikanti et al., ZeRO, and measured peaks."""

from __future__ import annotations

import pytest
from training_shapes import GPT3, LLAMA3_8B, LLAMA3_405B, gpt

from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.memory import (
    GIB,
    layer_activation_bytes,
    layers_in_flight,
    logits_bytes,
    memory_of,
    stage_parameters,
    static_bytes,
)
from corral.forecast.training.optimizer_state import FSDP2, MEGATRON, MIXED, PURE_BF16

# Korthikanti et al. 2022 (arXiv:2205.05198), Figure 1: s 2048, V 51200, t 8. Shape (L, h, a), (p, v, b), then GiB of
# states, of activations with tensor parallelism alone, and with sequence parallelism and selective recomputation.
FIGURE_1 = [
    ((48, 6144, 64), (1, 1, 4), 45.56, 59.25, 9.56),
    ((96, 12288, 96), (8, 3, 1), 45.56, 66.84, 12.35),
    ((105, 20480, 128), (35, 3, 1), 31.64, 114.02, 23.08),
    ((128, 25600, 160), (64, 1, 1), 32.96, 131.25, 26.56),
]


def laid_out(stages: tuple[int, int, int], **more: object) -> Layout:
    p, v, b = stages
    return Layout(tp=8, pp=p, virtual_stages=v, micro_batch=b, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "stages", "states", "_tensor", "_both"), FIGURE_1)
def test_states_of_figure_1(
    size: tuple[int, int, int], stages: tuple[int, int, int], states: float, _tensor: float, _both: float
) -> None:
    shape = gpt(*size)
    layers = shape.layers * shape.layer_parameters / (8 * stages[0])
    assert MEGATRON.total * layers / GIB == pytest.approx(states, rel=1e-3)


@pytest.mark.parametrize(("size", "stages", "_states", "tensor", "_both"), FIGURE_1)
def test_activations_of_figure_1_with_tensor_parallelism(
    size: tuple[int, int, int], stages: tuple[int, int, int], _states: float, tensor: float, _both: float
) -> None:
    shape, layout = gpt(*size), laid_out(stages)
    layer = layer_activation_bytes(shape, layout, 2048, Recompute.NONE)
    assert layer * layers_in_flight(shape, layout, 1000) / GIB == pytest.approx(tensor, rel=1e-3)


@pytest.mark.parametrize(("size", "stages", "_states", "_tensor", "both"), FIGURE_1)
def test_activations_of_figure_1_with_sequence_parallelism_and_selective_recomputation(
    size: tuple[int, int, int], stages: tuple[int, int, int], _states: float, _tensor: float, both: float
) -> None:
    shape, layout = gpt(*size), laid_out(stages, sequence_parallel=True)
    layer = layer_activation_bytes(shape, layout, 2048, Recompute.SELECTIVE)
    assert layer * layers_in_flight(shape, layout, 1000) / GIB == pytest.approx(both, rel=1e-3)


def test_full_recomputation_keeps_the_input() -> None:
    assert layer_activation_bytes(GPT3, Layout(tp=8), 2048, Recompute.FULL) == 2 * 2048 * 12288


def test_sequence_parallelism_divides_the_input_too() -> None:
    layout = Layout(tp=8, sequence_parallel=True)
    assert layer_activation_bytes(GPT3, layout, 2048, Recompute.FULL) == 2 * 2048 * 12288 / 8


def test_context_parallelism_divides_the_sequence() -> None:
    alone, divided = (layer_activation_bytes(LLAMA3_8B, Layout(cp=cp), 8192, Recompute.SELECTIVE) for cp in (1, 4))
    assert alone == 4 * divided


def test_few_micro_batches_fill_no_pipeline() -> None:
    assert layers_in_flight(GPT3, Layout(pp=8), 2) == 24


@pytest.mark.parametrize(
    ("sharding", "gb"),
    [
        (Sharding.NONE, 120),
        (Sharding.ZERO1, 31.4),
        (Sharding.ZERO2, 16.6),
        (Sharding.ZERO3, 1.9),
    ],
)
def test_states_of_zero_with_7_5_billion_on_64(sharding: Sharding, gb: float) -> None:
    # ZeRO (arXiv:1910.02054), Figure 1
    assert round(sum(static_bytes(7.5e9, MIXED, Layout(sharding=sharding), 64)) / 1e9, 1) == gb


def test_bytes_of_a_parameter_by_recipe() -> None:
    totals = [recipe.total for recipe in (MIXED, MEGATRON, FSDP2, PURE_BF16)]
    assert totals == [16, 18, 16, 8]


def test_embeddings_are_on_the_first_and_the_last_stage() -> None:
    shared = [stage_parameters(LLAMA3_8B, Layout(pp=4), stage)[0] for stage in range(4)]
    layers = 8 * LLAMA3_8B.layer_parameters
    assert shared == [layers + LLAMA3_8B.embedding, layers, layers, layers + LLAMA3_8B.embedding]


def test_logits_are_in_fp32_three_times() -> None:
    assert logits_bytes(LLAMA3_8B, Layout(micro_batch=2), 8192) == 3 * 4 * 2 * 8192 * 128256


@pytest.mark.parametrize(("accelerators", "peak_gib"), [(8, 77.0), (128, 67.0)])
def test_peak_of_llama3_8b_in_torchtitan(accelerators: int, peak_gib: float) -> None:
    # pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md (b5bcd76): 8 compiled, 128 eager
    layout = Layout(
        dp=accelerators, sharding=Sharding.ZERO3, micro_batch=2, recompute=Recompute.OPERATORS, sequence_parallel=True
    )
    memory = memory_of(LLAMA3_8B, layout, 8192, state=FSDP2, micro_batches=1)
    assert memory.total_gib == pytest.approx(peak_gib, rel=0.15)


def test_parts_of_memory_add_up_to_the_total() -> None:
    memory = memory_of(LLAMA3_405B, Layout(tp=8, pp=16, dp=128), 8192, state=MIXED, micro_batches=16)
    parts = memory.weights + memory.gradients + memory.optimizer + memory.activations + memory.logits + memory.reserve
    assert memory.total == parts
