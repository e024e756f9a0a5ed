"""Effective training time compared with published figures and a simulation, and properties of every job."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from corral.forecast.checkpoint_interval import best_interval_s, daly_s, young_s
from corral.forecast.checkpoint_policy import Checkpointing, CheckpointPolicy, Recovery
from corral.forecast.goodput import effective_time_curve, interval_penalty, run_progress, time_shares

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400


def policy(stall_s: float, recovery_s: float, durable_s: float | None = None) -> CheckpointPolicy:
    return CheckpointPolicy(
        checkpointing=Checkpointing(stall_s=stall_s, durable_s=stall_s if durable_s is None else durable_s),
        recovery=Recovery(detect_s=0, restart_s=recovery_s),
    )


@pytest.mark.parametrize(("mtbf_min", "minutes"), [(24 * 60, 117), (6 * 60, 57), (15, 9.1)])
def test_interval_is_that_of_daly_s_figures(mtbf_min: float, minutes: float) -> None:
    assert daly_s(5 * MINUTE_S, mtbf_min * MINUTE_S) / MINUTE_S == pytest.approx(minutes, rel=0.006)


def test_young_s_interval_is_the_root_of_twice_the_product() -> None:
    assert young_s(5 * MINUTE_S, 24 * HOUR_S) == 2 * HOUR_S


def test_checkpoint_twice_as_long_as_the_mtbf_has_an_interval_of_the_mtbf() -> None:
    assert daly_s(1000, 500) == 500


def test_without_failures_there_is_no_interval() -> None:
    assert daly_s(60, math.inf) == math.inf


def test_1024_gpus_of_rsc_1_have_the_ratio_of_the_paper_s_formula() -> None:
    # 7.9 h between failures, a checkpoint stalls 1 min, a restart takes 10 min: (1 - (u + t/2)/M) / (1 + w/t) = 0.917
    # with Young's t = 30.8 min (arXiv:2410.21680).
    run = run_progress(10 * DAY_S, policy(MINUTE_S, 10 * MINUTE_S), 1 / 7.9)
    assert (round(run.interval_s / MINUTE_S), round(run.shares.progress, 3)) == (30, 0.917)


@pytest.mark.parametrize(("stall_s", "recovery_min"), [(10, 10), (20, 7), (30, 5)])
def test_llama_3_s_ninety_percent_come_out_with_minutes_of_recovery(stall_s: float, recovery_min: float) -> None:
    # "over 90 % effective training time" (arXiv:2407.21783); the paper has neither time, so these are assumed.
    run = run_progress(54 * DAY_S, policy(stall_s, recovery_min * MINUTE_S), 419 / (54 * 24))
    assert 0.90 < run.shares.progress < 0.93


def test_megascale_s_ninety_percent_come_out_with_its_fifteen_minutes() -> None:
    # over 100 recoveries in several weeks of 12,288 GPUs, each under 15 min (arXiv:2402.15627); three weeks assumed.
    run = run_progress(21 * DAY_S, policy(10, 15 * MINUTE_S), 100 / (21 * 24))
    assert run.shares.progress > 0.90


def simulated_s(work_s: float, interval_s: float, job: CheckpointPolicy, mtbf_s: float, seed: int) -> float:
    """Wall time of a simulated job, second by second: a failure leaves the last durable checkpoint."""
    dice = random.Random(seed)
    now = saved = done = 0.0
    pending: list[tuple[float, float]] = []  # when a checkpoint is durable, and its work
    failure = dice.expovariate(1 / mtbf_s)
    while done < work_s:
        step_s = interval_s + job.checkpointing.stall_s
        if failure > now + step_s:
            now, done = now + step_s, done + interval_s
            pending.append((now + job.checkpointing.behind_s, done))
            continue
        saved = max([saved, *(have for ready, have in pending if ready <= failure)])
        done, pending = saved, []
        up = failure + job.recovery.total_s
        failure += dice.expovariate(1 / mtbf_s)
        while failure < up:
            up = failure + job.recovery.total_s
            failure += dice.expovariate(1 / mtbf_s)
        now = up
    return now


@pytest.mark.parametrize(
    ("job", "mtbf_s", "interval_s"),
    [
        (policy(60, 600), 7.9 * HOUR_S, 1800),
        (policy(300, 600), HOUR_S, 1200),
        (policy(2, 300, durable_s=120), 3 * HOUR_S, 300),
        (policy(60, 1800), HOUR_S, 600),
    ],
)
def test_a_simulated_job_takes_as_long_as_the_forecast(job: CheckpointPolicy, mtbf_s: float, interval_s: float) -> None:
    work_s = 4000 * mtbf_s
    wall_s = run_progress(work_s, job, HOUR_S / mtbf_s, interval_s=interval_s).wall_s
    assert simulated_s(work_s, interval_s, job, mtbf_s, seed=1) == pytest.approx(wall_s, rel=0.02)


def test_recovery_is_detection_restart_and_warm_up() -> None:
    assert Recovery(detect_s=60, restart_s=540, warm_up_s=30).total_s == 630


def test_asynchronous_checkpoint_loses_the_work_computed_during_its_write() -> None:
    at_once, behind = policy(2, 300), policy(2, 300, durable_s=302)
    shares = [time_shares(600, job, 1.0).progress for job in (at_once, behind)]
    assert shares[1] / shares[0] == pytest.approx(math.exp(-300 / HOUR_S))


def test_checkpoints_do_not_overlap() -> None:
    assert best_interval_s(Checkpointing(stall_s=0.1, durable_s=900.1), 1.0) == 900


def test_declared_interval_is_at_least_a_write() -> None:
    assert run_progress(DAY_S, policy(1, 300, durable_s=901), 0.1, interval_s=5 * MINUTE_S).interval_s == 900


def test_zero_stall_has_an_interval() -> None:
    assert best_interval_s(Checkpointing(stall_s=0, durable_s=0), 1.0) == 1


def test_transfer_cost_counts_as_stall_in_the_interval() -> None:
    free, dear = Checkpointing(stall_s=600, durable_s=600), Checkpointing(stall_s=0, durable_s=0)
    assert best_interval_s(dear, 1 / 7.9, paid_s=600) == best_interval_s(free, 1 / 7.9) == pytest.approx(5449, abs=1)


@pytest.mark.parametrize(("stall_s", "paid_s"), [(0.2, 600), (60, 60), (0, 3600)])
def test_no_interval_is_cheaper_than_the_one_with_transfer_cost(stall_s: float, paid_s: float) -> None:
    job, per_h, work_s = policy(stall_s, 600), 1 / 100, 100 * DAY_S

    def paid(interval_s: float) -> float:
        wall_s = run_progress(work_s, job, per_h, interval_s=interval_s).wall_s
        return (wall_s or math.inf) + paid_s * work_s / interval_s

    best_s = run_progress(work_s, job, per_h, paid_s=paid_s).interval_s
    assert paid(best_s) <= 1.0001 * min(paid(best_s * part / 100) for part in range(10, 1000))


def test_uninterrupted_run_has_one_checkpoint_at_its_end() -> None:
    run = run_progress(DAY_S, policy(60, 600), 0.0)
    assert (run.interval_s, run.wall_s, run.interruptions) == (DAY_S, pytest.approx(DAY_S + 60), 0)


def test_job_interrupted_faster_than_it_recovers_has_a_reason_for_no_progress() -> None:
    run = run_progress(DAY_S, policy(60, 600), 360.0)
    assert (run.wall_s, run.interruptions, run.no_progress) == (
        None,
        None,
        "it is interrupted every 10 s on average, but needs 670 s to recover and reach its next checkpoint",
    )


def test_an_absurd_rate_is_no_error() -> None:
    assert run_progress(DAY_S, policy(60, 600), 1e300, interval_s=1e300).shares.recovery == 1


def test_interruptions_are_counted_over_the_wall_time() -> None:
    run = run_progress(54 * DAY_S, policy(20, 420), 419 / (54 * 24))
    assert run.interruptions == pytest.approx(419 / run.shares.progress)


def test_an_interval_four_times_too_long_costs_a_thirteenth_more() -> None:
    job, per_h = policy(60, 600), 1 / 7.9
    best_s = best_interval_s(job.checkpointing, per_h)
    assert interval_penalty(best_s, 4 * best_s, job, per_h) == pytest.approx(0.0763, abs=5e-4)


def test_no_interval_is_too_long_without_interruptions() -> None:
    assert interval_penalty(math.inf, DAY_S, policy(60, 600), 0.0) == 0


def test_a_penalty_without_progress_has_no_value() -> None:
    assert interval_penalty(600, 2400, policy(60, 600), 360.0) is None


def test_a_curve_goes_from_end_to_end_in_equal_ratios() -> None:
    curve = effective_time_curve(policy(60, 600), 0.1, shortest_s=10, longest_s=1000, points=3)
    assert [point.interval_s for point in curve] == [pytest.approx(10), pytest.approx(100), pytest.approx(1000)]


STALLS = st.floats(0.1, 7200)
MTBFS = st.floats(60, 3e7)
RECOVERIES = st.floats(0, 7200)


@settings(deadline=None)
@given(STALLS, MTBFS, RECOVERIES)
def test_daly_s_interval_is_where_the_curve_is_highest(stall_s: float, mtbf_s: float, recovery_s: float) -> None:
    assume(stall_s < mtbf_s / 2)  # beyond, its error grows to 6 % of the interval
    job, rate, found = policy(stall_s, recovery_s), HOUR_S / mtbf_s, daly_s(stall_s, mtbf_s)
    curve = effective_time_curve(job, rate, shortest_s=found * 0.9, longest_s=found * 1.1, points=401)
    highest = max(curve, key=lambda point: point.progress)
    assert highest.interval_s == pytest.approx(found, rel=0.01)


@settings(deadline=None)
@given(STALLS, MTBFS, RECOVERIES)
def test_no_interval_gives_a_hundredth_more_than_daly_s(stall_s: float, mtbf_s: float, recovery_s: float) -> None:
    job, rate = policy(stall_s, recovery_s), HOUR_S / mtbf_s
    curve = effective_time_curve(job, rate, shortest_s=0.01 * mtbf_s, longest_s=10 * mtbf_s, points=200)
    best = time_shares(daly_s(stall_s, mtbf_s), job, rate).progress
    assert max(point.progress for point in curve) <= best * 1.01


@settings(deadline=None)
@given(STALLS, st.floats(0, 7200), RECOVERIES, st.floats(1, 1e7), st.floats(0, 1000))
def test_the_parts_of_the_time_are_all_of_it(
    stall_s: float, behind_s: float, recovery_s: float, interval_s: float, per_h: float
) -> None:
    shares = time_shares(interval_s, policy(stall_s, recovery_s, stall_s + behind_s), per_h)
    parts = [shares.progress, shares.checkpoints, shares.lost, shares.recovery]
    assert (sum(parts), min(parts) >= 0, max(parts) <= 1) == (pytest.approx(1), True, True)


@settings(deadline=None)
@given(STALLS, RECOVERIES, st.floats(60, 1e7), st.floats(0, 10))
def test_interruptions_never_make_a_run_shorter(stall_s: float, recovery_s: float, work_s: float, per_h: float) -> None:
    wall_s = run_progress(work_s, policy(stall_s, recovery_s), per_h).wall_s
    assume(wall_s is not None)
    assert wall_s >= work_s  # type: ignore[operator]


@settings(deadline=None)
@given(STALLS, RECOVERIES, st.floats(1, 1e6), st.floats(0, 100), st.floats(0, 100))
def test_more_interruptions_never_help(
    stall_s: float, recovery_s: float, interval_s: float, one: float, other: float
) -> None:
    few, many = sorted([one, other])
    job = policy(stall_s, recovery_s)
    assert time_shares(interval_s, job, many).progress <= time_shares(interval_s, job, few).progress * (1 + 1e-9)
