"""The layout search: the fastest that fits, runners-up and their reasons, and missing memory if none fits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared_runs import open_job

from corral.catalog.accelerators.transformer_models import stage_layers
from corral.forecast.training.explanations import layout_words, why_it_loses
from corral.forecast.training.job import Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.layout_search import choose, fits_somehow
from corral.forecast.training.search_space import OpenJob, meshes, variants
from corral.forecast.training.speed import step_parts

JOBS = [
    open_job("llama3-8b", 2, 128),
    open_job("llama3-70b", 8, 256),
    open_job("mixtral-8x7b", 2, 64, seq_len=4096),
    open_job("llama2-13b", 3, 96, seq_len=4096, accelerator="A100-40"),
    open_job("llama3-8b", 1, 16, precision=Precision.FP32),
]


def everything(job: OpenJob) -> list[Layout]:
    """Every possible layout, whether it fits or not."""
    return [
        replace(mesh, micro_batch=size, recompute=recompute, virtual_stages=virtual)
        for mesh in meshes(job)
        for size, recompute, virtual in variants(job, mesh)
    ]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.shape.name}-{job.nodes}")
def test_nothing_that_fits_is_faster(job: OpenJob) -> None:
    fitting = [layout for layout in everything(job) if job.missing_gib(job.memory(layout)) <= 0]
    found = choose(job).best
    assert found is not None
    assert found.parts.total == min(step_parts(job.laid_out(layout)).total for layout in fitting)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.shape.name}-{job.nodes}")
def test_runners_up_are_the_next_of_other_meshes(job: OpenJob) -> None:
    best: dict[tuple[float, ...], float] = {}
    for layout in everything(job):
        if job.missing_gib(job.memory(layout)) <= 0:
            division = (layout.tp, layout.pp, layout.cp, layout.ep)
            best[division] = min(best.get(division, 1e9), step_parts(job.laid_out(layout)).total)
    found = choose(job, others=3)
    assert [one.parts.total for one in found.others] == sorted(best.values())[1:4]


def test_405b_on_16384_gets_a_layout_like_llama_3() -> None:
    best = choose(open_job("llama3-405b", 2048, 2048)).best
    assert best is not None
    assert layout_words(best.layout) == "TP 8, PP 16, CP 2, DP 64, 8 virtual stages, zero1, micro-batch 1"


def test_8b_on_one_machine_shards_and_uses_no_pipeline() -> None:
    best = choose(open_job("llama3-8b", 1, 512)).best
    assert best is not None
    assert (best.layout.pp, best.layout.sharding.of_optimizer) == (1, True)


def test_mixtures_use_expert_parallelism() -> None:
    best = choose(open_job("mixtral-8x7b", 8, 1024, seq_len=4096)).best
    assert best is not None and best.layout.ep == 8


@pytest.mark.parametrize("batch", [510, 96, 1000])
def test_micro_batches_divide_the_batch(batch: int) -> None:
    layouts = everything(open_job("llama3-8b", 2, batch))
    assert [one for one in layouts if batch % (one.dp * one.micro_batch)] == []


def test_degrees_use_all_accelerators() -> None:
    assert {one.accelerators for one in everything(open_job("llama3-70b", 3, 96))} == {24}


def test_heads_are_divided_evenly() -> None:
    tensor = {mesh.tp for mesh in meshes(open_job("llama3-70b", 12, 96))}
    assert tensor == {1, 2, 4, 8}


def test_heads_of_keys_are_divided_or_copied_evenly() -> None:
    tensor = {mesh.tp for mesh in meshes(open_job("mixtral-8x22b", 3, 96))}  # 48 heads, 8 of keys: not by 3 or 6
    assert tensor == {1, 2, 4, 8}


def test_tensor_parallelism_stays_in_the_link_domain() -> None:
    assert max(mesh.tp for mesh in meshes(open_job("gpt3-175b", 16, 1024, seq_len=2048))) == 8


def test_interleaving_needs_micro_batches_in_multiples_of_the_pipeline() -> None:
    layouts = [one for one in everything(open_job("llama3-70b", 16, 1024)) if one.virtual_stages > 1]
    assert [one for one in layouts if one.micro_batches(1024) % one.pp] == []


def test_zero2_is_only_for_one_micro_batch() -> None:
    layouts = [one for one in everything(open_job("llama3-8b", 2, 64)) if one.sharding is Sharding.ZERO2]
    assert {one.micro_batches(64) for one in layouts} == {1}


@pytest.mark.parametrize(
    ("layers", "stages", "each"), [(126, 16, 8), (61, 16, 4), (32, 4, 8), (32, 33, None), (32, 5, 7), (80, 64, None)]
)
def test_stages_are_equal_but_for_the_first_and_the_last(layers: int, stages: int, each: int | None) -> None:
    assert stage_layers(layers, stages) == each


def test_slower_layout_names_the_part_with_the_largest_difference() -> None:
    found = choose(open_job("llama3-405b", 2048, 2048))
    assert found.best is not None
    assert [why_it_loses(one, found.best) for one in found.others] == [
        "0.6% slower: 0.4 s more per step in exchange of gradients and weights",
        "3.8% slower: 0.66 s more per step in recomputation",
        "5.7% slower: 0.66 s more per step in recomputation",
        "8.1% slower: 0.42 s more per step in the pipeline's bubble",
    ]


def test_faster_layout_that_is_too_large_shows_the_missing_memory() -> None:
    found = choose(open_job("llama3-8b", 16, 512))
    assert found.best is not None and found.too_large is not None
    assert why_it_loses(found.too_large, found.best) == "2.7% faster, but 21.9 GiB too large"


def test_equally_fast_layout_shows_its_memory() -> None:
    best = choose(open_job("llama3-8b", 16, 512)).best
    assert best is not None
    assert why_it_loses(best, best) == "equally fast, with 0.0 GiB less"


def test_nearest_layout_shows_the_missing_memory_if_nothing_fits() -> None:
    found = choose(open_job("llama3-405b", 4, 512))
    assert found.best is None and found.nearest is not None
    assert (found.nearest.layout.tp, found.nearest.layout.recompute, round(found.nearest.missing_gib)) == (
        8,
        Recompute.FULL,
        130,
    )


def test_more_nodes_are_proposed_if_nothing_fits() -> None:
    nearest = choose(open_job("llama3-405b", 4, 512)).nearest
    assert nearest is not None and nearest.changes == ("use 16 nodes instead of 4",)


def test_offload_is_proposed_first_if_the_host_has_memory() -> None:
    nearest = choose(open_job("llama3-70b", 1, 64)).nearest
    offload = "keep the optimizer's state in host memory (offload: optimizer)"
    assert nearest is not None and nearest.changes == (offload, "use 2 nodes instead of 1")


def test_bf16_is_proposed_first_if_fp32_does_not_fit() -> None:
    nearest = choose(open_job("llama2-70b", 2, 16, seq_len=32768, precision=Precision.FP32)).nearest
    assert nearest is not None and nearest.changes[0] == "use bf16 instead of fp32"


def test_offload_is_not_proposed_if_the_host_lacks_memory() -> None:
    fits = [fits_somehow(open_job("llama3-70b", 1, 64, offload_optimizer=True, host_gib=gib)) for gib in (230.0, 20.0)]
    assert fits == [True, False]


def test_a_batch_that_cannot_be_divided_has_no_layout() -> None:
    found = choose(open_job("llama3-8b", 2048, 1))
    assert (found.best, found.nearest, found.examined) == (None, None, 0)
