"""The forecast of a declared run: memory, parts of a step, speed, days, uncertainty, limits."""

from __future__ import annotations

import pytest
from declared_runs import open_job, run

from corral.catalog.accelerators.transformer_models import models
from corral.forecast.training.explanations import PARTS, bound_by, communication_warning, layout_words, memory_warning
from corral.forecast.training.from_spec import open_job_of
from corral.forecast.training.run_forecast import RunForecast, certainty_of, forecast_run
from corral.forecast.training.speed import StepParts
from corral.spec.spec_errors import SpecErrors

# Billions of parameters, as the publisher counts them.
COUNTED = {
    "llama2-7b": 6.738,
    "llama2-13b": 13.016,
    "llama2-70b": 68.977,
    "llama3-8b": 8.03,
    "llama3-70b": 70.554,
    "llama3-405b": 405.853,
    "llama-65b": 65.286,
    "gpt3-175b": 174.6,
    "bloom-176b": 176.247,
    "mixtral-8x7b": 46.703,
    "mixtral-8x22b": 140.63,
    "qwen3-30b-a3b": 30.53,
    "qwen3-235b-a22b": 235.09,
    "gpt-oss-120b": 116.83,
    "deepseek-v3": 671.03,
}


@pytest.mark.parametrize(("name", "billions"), COUNTED.items())
def test_a_model_has_as_many_parameters_as_its_publisher_counts(name: str, billions: float) -> None:
    assert models()[name].parameters / 1e9 == pytest.approx(billions, rel=5e-4)


def by_hand(**fields: object) -> RunForecast:
    """Llama 3 70B on 16 x 8 H100, with a declared layout."""
    layout = {"tensor": 8, "pipeline": 4, "virtual_stages": 5}
    return forecast_run(run("llama3-70b", 16, **{"batch_sequences": 1024, "layout": layout, **fields}))


def chosen() -> RunForecast:
    return forecast_run(run("llama3-8b", 2))


def test_declared_layout_is_used_unchanged() -> None:
    forecast = by_hand()
    assert (layout_words(forecast.layout), forecast.choice) == (
        "TP 8, PP 4, DP 4, 5 virtual stages, zero1, micro-batch 1",
        None,
    )


def test_open_layout_is_the_best_found() -> None:
    forecast = chosen()
    assert forecast.choice is not None and forecast.choice.best is not None
    assert forecast.layout == forecast.choice.best.layout


def test_days_are_tokens_by_speed() -> None:
    forecast = by_hand()
    assert forecast.days == pytest.approx(1e12 / forecast.speed.tokens_per_s / 86400)


def test_hours_of_accelerators_are_days_of_all_of_them() -> None:
    forecast = by_hand()
    assert forecast.accelerator_hours == pytest.approx(forecast.days * 24 * 128)


def test_steps_take_all_tokens() -> None:
    assert by_hand(tokens="1T").steps == 119210  # 1e12 / (1024 x 8192), rounded up


def test_mfu_counts_six_flops_a_parameter_and_token() -> None:
    forecast = by_hand()
    six_n = 6 * 70_553_706_496 * forecast.speed.tokens_per_s_per_accelerator / 989e12
    assert forecast.mfu == pytest.approx(six_n)


def test_hfu_counts_recomputation() -> None:
    layout = {"tensor": 8, "pipeline": 4, "virtual_stages": 5}
    plain, full = (by_hand(layout={**layout, "recompute": how}) for how in ("none", "full"))
    assert plain.hfu == plain.mfu_with_attention
    assert full.hfu / full.mfu_with_attention == pytest.approx(1.33, abs=0.01)


def test_the_range_of_days_is_that_of_dense_models() -> None:
    forecast = by_hand()
    assert [round(days / forecast.days, 3) for days in forecast.days_range] == [0.87, 1.176]


@pytest.mark.parametrize(
    ("job", "off"),
    [
        (open_job("llama3-8b", 2, 64), 0.15),
        (open_job("llama3-8b", 2, 64, accelerator="A100-40"), 0.15),
        (open_job("mixtral-8x7b", 2, 64), 0.4),
        (open_job("llama3-8b", 2, 64, accelerator="B200"), 0.3),
        (open_job("llama3-8b", 2, 64, accelerator="H200"), 0.3),
        (open_job("llama3-8b", 2, 64, accelerator="Trainium1"), 0.3),
        (open_job("llama3-8b", 2, 64, seq_len=131072), 0.3),
        (open_job("llama3-8b", 2, 64, efa=False), 0.3),
        (open_job("llama3-8b", 2, 64, offload_optimizer=True), 0.3),
    ],
    ids=lambda value: getattr(value, "machine", None) and value.machine.accelerator.name,
)
def test_few_published_runs_increase_the_uncertainty(job: object, off: float) -> None:
    assert certainty_of(job).off == off  # type: ignore[arg-type]


def test_run_that_does_not_fit_names_the_first_change() -> None:
    forecast = forecast_run(run("llama3-70b", 16, batch_sequences=1024, layout={"tensor": 8, "sharding": "none"}))
    assert (forecast.fits, forecast.change) == (
        False,
        "shard the parameters too (zero3, FSDP)",
    )


def test_run_is_to_change_if_no_layout_fits() -> None:
    forecast = forecast_run(run("llama3-405b", 4, layout="choose"))
    assert (forecast.fits, forecast.change, forecast.efficiency) == (False, "use 16 nodes instead of 4", None)


def test_a_batch_that_cannot_be_divided_is_an_error_of_the_file() -> None:
    with pytest.raises(SpecErrors) as caught:
        forecast_run(run("llama3-8b", 2048, batch_sequences=7))
    assert str(caught.value) == (
        "run.yaml: batch_sequences: 7 sequences cannot be divided among 16384 accelerators in any layout"
        " - use a multiple of the accelerators, or other nodes"
    )


def test_one_node_has_an_efficiency_of_one() -> None:
    efficiency = forecast_run(run("llama3-8b", 1)).efficiency
    assert efficiency is not None and (efficiency.nodes, efficiency.share) == (1, 1.0)


def test_many_nodes_are_less_efficient_than_the_fewest() -> None:
    efficiency = forecast_run(run("llama3-8b", 256)).efficiency
    assert efficiency is not None
    assert (efficiency.nodes, round(efficiency.share, 2)) == (1, 0.74)


def test_efficiency_is_relative_to_the_fewest_nodes_that_fit() -> None:
    efficiency = forecast_run(run("llama3-8b", 8)).efficiency
    assert efficiency is not None and efficiency.nodes == 1


def test_nodes_that_fit_only_with_much_recomputation_are_skipped() -> None:
    # 70B fits two machines, and each of four is more than a tenth faster.
    efficiency = forecast_run(run("llama3-70b", 8)).efficiency
    assert efficiency is not None and (efficiency.nodes, round(efficiency.share, 2)) == (4, 1.06)


def test_run_may_use_nine_tenths_of_the_host_memory() -> None:
    assert open_job_of(run("llama3-8b", 2)).host_gib == pytest.approx(2048 / 8 * 0.9)


def test_exposed_communication_is_a_warning() -> None:
    forecast = forecast_run(run("llama3-8b", 2048))
    assert (forecast.bound, forecast.warnings) == (
        "network",
        (
            "44% of a step is exposed communication, mainly exchange of gradients and weights"
            " - try a larger batch, or fewer accelerators",
        ),
    )


def test_a_large_batch_is_bound_by_compute_without_a_warning() -> None:
    forecast = chosen()
    assert (forecast.bound, forecast.warnings) == ("compute", ())


def parts(**seconds: float) -> StepParts:
    return StepParts(**{**dict.fromkeys(PARTS, 0.0), "products": 1.0, **seconds})


@pytest.mark.parametrize(
    ("seconds", "bound"),
    [({}, "compute"), ({"memory_bound": 2.0}, "memory"), ({"tensor": 2.0}, "network"), ({"bubble": 2.0}, "bubble")],
)
def test_step_is_bound_by_its_largest_part(seconds: dict[str, float], bound: str) -> None:
    assert bound_by(parts(**seconds)) == bound


def test_a_fifth_of_communication_is_no_warning() -> None:
    assert communication_warning(parts(tensor=0.25)) is None


def test_more_than_a_fifth_of_communication_is_a_warning() -> None:
    assert communication_warning(parts(tensor=0.3)) == (
        "23% of a step is exposed communication, mainly tensor-parallel exchange"
        " - try less tensor parallelism, or larger matrices"
    )


@pytest.mark.parametrize("used", [69.0, 81.0])
def test_memory_that_fits_with_margin_or_not_at_all_is_no_warning(used: float) -> None:
    assert memory_warning(used, 80.0) is None


def test_nearly_full_memory_is_a_warning() -> None:
    assert memory_warning(79.0, 80.0) == (
        "99% of the memory is used, by formulas that are often 15% off - run a few steps first, or recompute more"
    )


def test_machines_of_one_accelerator_have_no_link() -> None:
    forecast = forecast_run(run("llama3-8b", 16, instance_type="p5.4xlarge"))
    assert (forecast.job.machine.accelerator.link_domain, forecast.layout.tp) == (1, 1)


def test_network_without_efa_is_listed_as_too_fast() -> None:
    assert forecast_run(run("llama3-8b", 2, efa="off")).assumed[0] == (
        "without EFA: TCP is assumed as fast as EFA, which is too fast"
    )


def test_attention_of_published_runs_is_listed_as_assumed() -> None:
    sentence = "attention as in published runs, mostly FlashAttention-2: an implementation for H100-80 is faster"
    assumed = [forecast_run(run("llama3-8b", 2, precision=how)).assumed for how in ("bf16", "fp8")]
    assert [sentence in one for one in assumed] == [True, False]


def test_zero2_with_several_micro_batches_is_listed_as_too_fast() -> None:
    assert forecast_run(run("llama3-8b", 2, layout={"sharding": "zero2"})).assumed[0] == (
        "zero2 with several micro-batches: gradients are assumed to be reduced once per step, which is too fast"
    )


def test_largest_micro_batch_divides_the_sequences_of_a_rank() -> None:
    layout = {"tensor": 8, "recompute": "full"}
    assert forecast_run(run("llama3-8b", 1, batch_sequences=12, layout=layout)).largest_micro_batch == 12


def test_offload_frees_accelerator_memory_and_slows_the_run() -> None:
    layout = {"sharding": "zero1"}
    here, there = (forecast_run(run("llama3-8b", 2, layout=layout, offload=where)) for where in ("none", "optimizer"))
    assert (there.memory.optimizer, there.memory.host) == (0.0, here.memory.optimizer)
    each = 8_030_261_248 / 16  # parameters of a rank: 6 bytes over its link, 30 in the host's memory
    assert there.speed.parts.optimizer == pytest.approx(each * (6 / 12e9 + 30 / 25e9), rel=1e-3)


def test_fp32_has_half_the_peak_and_needs_twice_the_memory() -> None:
    wide, narrow = (forecast_run(run("llama3-8b", 2, layout={}, precision=how)) for how in ("fp32", "bf16"))
    assert wide.speed.parts.products / narrow.speed.parts.products == pytest.approx(2, abs=0.02)  # the loss is in both
    assert wide.memory.activations == 2 * narrow.memory.activations


def test_run_that_does_not_fit_has_no_communication_warning() -> None:
    forecast = forecast_run(run("llama3-70b", 2, batch_sequences=64, layout={"sharding": "none"}))
    assert (forecast.fits, [one for one in forecast.warnings if "communication" in one]) == (False, [])
