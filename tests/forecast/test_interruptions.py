"""Interruption rates of jobs: published figures, and other job sizes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.catalog.accelerators.failure_rates import Cause, FailureStudy, failure_studies
from corral.catalog.aws.spot_interruption_rates import BANDS, find_spot_band
from corral.catalog.loader.suggestions import UnknownName
from corral.forecast.interruptions import chance_of_none, machine_interruptions, spot_interruptions

HOUR_S, DAY_S = 3600, 86400


def study(name: str) -> FailureStudy:
    return next(one for one in failure_studies() if one.name == name)


def alone(name: str, accelerators: int) -> float:
    """Hours between interruptions by one study alone."""
    return machine_interruptions(accelerators, studies=[study(name)], jobs=[]).longest_mtbf_s / HOUR_S


def test_llama_3_counted_419_interruptions() -> None:
    assert sum(study("llama3").causes.values()) == 419


def test_llama_3_was_interrupted_every_three_hours() -> None:
    assert alone("llama3", 16_384) == pytest.approx(54 * 24 / 419)


@pytest.mark.parametrize(("accelerators", "hours"), [(16_384, 1.8), (131_072, 0.23)])
def test_rsc_1_has_the_published_time_between_failures(accelerators: int, hours: float) -> None:
    assert alone("rsc-1", accelerators) == pytest.approx(hours, rel=0.03)


def test_two_thirds_of_interruptions_are_hardware_failures() -> None:
    parts = {rate.cause: rate.low_per_h for rate in machine_interruptions(1024).rates}
    assert parts[Cause.HARDWARE] / sum(parts.values()) == pytest.approx(282 / 419)


@pytest.mark.parametrize(("accelerators", "hours"), [(8, 47.7 * 24), (1024, 7.9)])
def test_small_jobs_fail_as_often_as_measured(accelerators: int, hours: float) -> None:
    shortest_s = machine_interruptions(accelerators).shortest_mtbf_s
    assert shortest_s == pytest.approx(hours * HOUR_S)


def test_a_job_of_one_accelerator_fails_an_eighth_as_often_as_one_of_eight() -> None:
    assert machine_interruptions(1).shortest_mtbf_s == pytest.approx(8 * 47.7 * DAY_S)


def test_rates_between_measured_sizes_are_log_log_interpolated() -> None:
    middle = round(math.sqrt(8 * 1024))
    shortest_s = machine_interruptions(middle, studies=[]).shortest_mtbf_s
    assert shortest_s == pytest.approx(math.sqrt(47.7 * 24 * 7.9) * HOUR_S, rel=0.01)


def test_large_jobs_range_over_the_studies() -> None:
    both = machine_interruptions(16_384)
    assert (both.longest_mtbf_s, both.shortest_mtbf_s) == (
        pytest.approx(alone("rsc-2", 16_384) * HOUR_S),
        pytest.approx(alone("rsc-1", 16_384) * HOUR_S),
    )


def test_sources_are_named() -> None:
    assert "419 unexpected interruptions" in " ".join(machine_interruptions(8).sources)


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_accelerators_are_never_interrupted_less_often(one: int, other: int) -> None:
    few, many = sorted([one, other])
    high = [machine_interruptions(number).high_per_h for number in (few, many)]
    assert high[0] <= high[1] * (1 + 1e-9)  # type: ignore[operator]


def test_spot_rate_gives_the_share_of_its_band_after_a_month() -> None:
    rate = spot_interruptions(1, find_spot_band("5-10%"))
    assert (1 - chance_of_none(rate.low_per_h, 730), 1 - chance_of_none(rate.high_per_h, 730)) == (
        pytest.approx(0.05),
        pytest.approx(0.10),
    )


def test_spot_instances_interrupt_a_job_that_needs_all_of_them_as_often_as_all_together() -> None:
    band = find_spot_band("10-15%")
    assert spot_interruptions(16, band).low_per_h == pytest.approx(16 * spot_interruptions(1, band).low_per_h)


def test_the_rarest_band_may_never_interrupt() -> None:
    assert spot_interruptions(16, find_spot_band("<5%")).longest_mtbf_s == math.inf


def test_last_band_is_assumed_to_end_at_a_half() -> None:
    band = find_spot_band(">20%")
    assert (band.assumed, 1 - chance_of_none(spot_interruptions(1, band).high_per_h, 730)) == (True, pytest.approx(0.5))


def test_unknown_band_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="<5%, 5-10%, 10-15%, 15-20%, >20%"):
        find_spot_band("often")


def test_bands_have_no_gaps() -> None:
    assert [band.high for band in BANDS[:-1]] == [band.low for band in BANDS[1:]]
