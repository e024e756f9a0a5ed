"""The search for a layout: the fastest that fits, what comes next and why it loses, what is missing where none fits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from declared_runs import open_job

from corral.catalog.models import stage_layers
from corral.forecast.training.choose import choose, fits_somehow
from corral.forecast.training.job import Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.open_job import OpenJob, meshes, variants
from corral.forecast.training.reasons import layout_words, why_it_loses
from corral.forecast.training.speed import step_parts

JOBS = [
    open_job("llama3-8b", 2, 128),
    open_job("llama3-70b", 8, 256),
    open_job("mixtral-8x7b", 2, 64, seq_len=4096),
    open_job("llama2-13b", 3, 96, seq_len=4096, accelerator="A100-40"),
    open_job("llama3-8b", 1, 16, precision=Precision.FP32),
]


def everything(job: OpenJob) -> list[Layout]:
    """Every layout that is possible, whether it fits or not."""
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
def test_the_runners_up_are_the_next_of_other_divisions(job: OpenJob) -> None:
    best: dict[tuple[float, ...], float] = {}
    for layout in everything(job):
        if job.missing_gib(job.memory(layout)) <= 0:
            division = (layout.tp, layout.pp, layout.cp, layout.ep)
            best[division] = min(best.get(division, 1e9), step_parts(job.laid_out(layout)).total)
    found = choose(job, others=3)
    assert [one.parts.total for one in found.others] == sorted(best.values())[1:4]


def test_405b_on_16384_is_laid_out_much_like_llama_3_was() -> None:
    best = choose(open_job("llama3-405b", 2048, 2048)).best
    assert best is not None
    assert layout_words(best.layout) == "TP 8, PP 16, CP 2, DP 64, 8 virtual stages, zero1, micro-batch 1"


def test_8b_on_one_machine_shards_and_uses_no_pipeline() -> None:
    best = choose(open_job("llama3-8b", 1, 512)).best
    assert best is not None
    assert (best.layout.pp, best.layout.sharding.of_optimizer) == (1, True)


def test_experts_are_spread_where_there_are_some() -> None:
    best = choose(open_job("mixtral-8x7b", 8, 1024, seq_len=4096)).best
    assert best is not None and best.layout.ep == 8


@pytest.mark.parametrize("batch", [510, 96, 1000])
def test_micro_batches_divide_the_batch(batch: int) -> None:
    layouts = everything(open_job("llama3-8b", 2, batch))
    assert [one for one in layouts if batch % (one.dp * one.micro_batch)] == []


def test_degrees_take_all_accelerators() -> None:
    assert {one.accelerators for one in everything(open_job("llama3-70b", 3, 96))} == {24}


def test_heads_are_divided_evenly() -> None:
    tensor = {mesh.tp for mesh in meshes(open_job("llama3-70b", 12, 96))}
    assert tensor == {1, 2, 4, 8}


def test_heads_of_keys_are_divided_or_copied_evenly() -> None:
    tensor = {mesh.tp for mesh in meshes(open_job("mixtral-8x22b", 3, 96))}  # 48 heads, 8 of keys: not by 3 or 6
    assert tensor == {1, 2, 4, 8}


def test_tensor_parallelism_stays_where_links_are() -> None:
    assert max(mesh.tp for mesh in meshes(open_job("gpt3-175b", 16, 1024, seq_len=2048))) == 8


def test_interleaving_takes_micro_batches_in_groups_of_the_pipeline() -> None:
    layouts = [one for one in everything(open_job("llama3-70b", 16, 1024)) if one.virtual_stages > 1]
    assert [one for one in layouts if one.micro_batches(1024) % one.pp] == []


def test_zero2_is_for_one_micro_batch() -> None:
    layouts = [one for one in everything(open_job("llama3-8b", 2, 64)) if one.sharding is Sharding.ZERO2]
    assert {one.micro_batches(64) for one in layouts} == {1}


@pytest.mark.parametrize(
    ("layers", "stages", "each"), [(126, 16, 8), (61, 16, 4), (32, 4, 8), (32, 33, None), (32, 5, 7), (80, 64, None)]
)
def test_stages_are_equal_but_for_the_first_and_the_last(layers: int, stages: int, each: int | None) -> None:
    assert stage_layers(layers, stages) == each


def test_a_loser_is_told_by_the_part_that_makes_most_of_it() -> None:
    found = choose(open_job("llama3-405b", 2048, 2048))
    assert found.best is not None
    assert [why_it_loses(one, found.best) for one in found.others] == [
        "0.6% slower: 0.4 s of a step more in exchange of gradients and weights",
        "3.8% slower: 0.66 s of a step more in recomputation",
        "5.7% slower: 0.66 s of a step more in recomputation",
        "8.1% slower: 0.42 s of a step more in the pipeline's bubble",
    ]


def test_what_is_faster_and_too_large_is_told_by_what_it_lacks() -> None:
    found = choose(open_job("llama3-8b", 16, 512))
    assert found.best is not None and found.too_large is not None
    assert why_it_loses(found.too_large, found.best) == "2.7% faster, but 21.9 GiB too large"


def test_what_is_as_fast_is_told_by_its_memory() -> None:
    best = choose(open_job("llama3-8b", 16, 512)).best
    assert best is not None
    assert why_it_loses(best, best) == "as fast, with 0.0 GiB less"


def test_where_nothing_fits_the_nearest_is_told_with_what_it_lacks() -> None:
    found = choose(open_job("llama3-405b", 4, 512))
    assert found.best is None and found.nearest is not None
    assert (found.nearest.layout.tp, found.nearest.layout.recompute, round(found.nearest.missing_gib)) == (
        8,
        Recompute.FULL,
        130,
    )


def test_where_nothing_fits_more_nodes_are_counted() -> None:
    nearest = choose(open_job("llama3-405b", 4, 512)).nearest
    assert nearest is not None and nearest.changes == ("use 16 nodes instead of 4",)


def test_where_the_host_has_room_the_optimizer_goes_there_first() -> None:
    nearest = choose(open_job("llama3-70b", 1, 64)).nearest
    offload = "keep the optimizer's state in the hosts' memory (offload: optimizer)"
    assert nearest is not None and nearest.changes == (offload, "use 2 nodes instead of 1")


def test_where_fp32_is_too_much_bf16_comes_first() -> None:
    nearest = choose(open_job("llama2-70b", 2, 16, seq_len=32768, precision=Precision.FP32)).nearest
    assert nearest is not None and nearest.changes[0] == "use bf16 instead of fp32"


def test_a_host_without_room_holds_no_optimizer() -> None:
    fits = [fits_somehow(open_job("llama3-70b", 1, 64, offload_optimizer=True, host_gib=gib)) for gib in (230.0, 20.0)]
    assert fits == [True, False]


def test_a_batch_that_cannot_be_divided_has_no_layout() -> None:
    found = choose(open_job("llama3-8b", 2048, 1))
    assert (found.best, found.nearest, found.examined) == (None, None, 0)
