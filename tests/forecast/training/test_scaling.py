"""Speed by number of nodes."""

from __future__ import annotations

from declared_runs import open_job, run

from corral.forecast.training.from_spec import open_job_of
from corral.forecast.training.layout_search import choose
from corral.forecast.training.run_forecast import RunForecast, forecast_run
from corral.forecast.training.scaling import ScalingPoint, on_the_fewest, scaling_curve
from corral.forecast.training.speed import forecast_speed


def curve(model: str, nodes: int, batch: int) -> tuple[ScalingPoint, ...]:
    job = open_job(model, nodes, batch)
    best = choose(job, others=0).best
    assert best is not None
    return scaling_curve(job, best.layout, forecast_speed(job.laid_out(best.layout)))


def of_run(forecast: RunForecast) -> tuple[ScalingPoint, ...]:
    return scaling_curve(open_job_of(forecast.run), forecast.layout, forecast.speed)


def test_nodes_are_powers_of_two_up_to_four_times_the_runs() -> None:
    assert [point.nodes for point in curve("llama3-8b", 4, 512)] == [1, 2, 4, 8, 16]


def test_runs_own_number_of_nodes_is_on_the_curve() -> None:
    assert [point.nodes for point in curve("llama3-8b", 3, 768)] == [1, 2, 3, 4, 8]


def test_too_few_nodes_for_the_model_are_omitted() -> None:
    assert [point.nodes for point in curve("llama3-70b", 4, 512)] == [2, 4, 8, 16]


def test_nodes_that_do_not_divide_the_batch_are_omitted() -> None:
    assert max(point.nodes for point in curve("llama3-8b", 64, 1)) == 64


def test_efficiency_is_relative_to_the_fewest_nodes() -> None:
    first, *others = curve("llama3-8b", 4, 512)
    each = [point.speed.tokens_per_s / point.nodes / first.speed.tokens_per_s for point in others]
    assert [round(point.efficiency, 9) for point in others] == [round(share, 9) for share in each]


def test_the_runs_own_point_is_its_forecast() -> None:
    forecast = forecast_run(run("llama3-8b", 4))
    (own,) = [point for point in of_run(forecast) if point.nodes == 4]
    assert forecast.efficiency is not None
    assert (own.speed, own.layout, own.efficiency) == (forecast.speed, forecast.layout, forecast.efficiency.share)


def test_declared_layout_is_kept_on_the_runs_own_nodes() -> None:
    forecast = forecast_run(run("llama3-8b", 4, layout={"tensor": 8}))
    (own,) = [point for point in of_run(forecast) if point.nodes == 4]
    assert own.layout == forecast.layout


def test_one_node_has_no_fewest_nodes_below_it() -> None:
    job = open_job("llama3-8b", 1, 512)
    best = choose(job, others=0).best
    assert best is not None
    assert on_the_fewest(job, forecast_speed(job.laid_out(best.layout))) is None
