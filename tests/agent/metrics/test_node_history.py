"""A node's last minutes, from readings of its GPUs and of its EFA interfaces; both have recorded forms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.health_fixtures import RECORDED
from corral.agent.metrics.efa_counters import EfaCounters, read_counters
from corral.agent.metrics.gpu_load import GpuLoad, read_load
from corral.agent.metrics.node_history import history_path, node_samples, requested_seconds
from corral.model.job_evidence import GpuSamples, NodeSamples

(GPU,) = read_load((RECORDED / "h200-loaded/gpu-load.csv").read_text())
EFA = read_counters((RECORDED / "efa-counters/efa-counters.txt").read_text())


def gpu(*loads: GpuLoad) -> GpuSamples:
    """The samples of one GPU with these loads."""
    (found,) = node_samples("train-1", [[load] for load in loads], ()).gpus
    return found


def sent(*readings: tuple[float, int]) -> tuple[int | None, float]:
    """What an interface has sent whose counter had these values so many seconds ago."""
    found = node_samples("train-1", (), [(age, [replace(EFA[0], sent_bytes=value)]) for age, value in readings])
    return found.efa_sent_bytes, found.efa_seconds


def test_a_recorded_gpu_at_full_load_is_not_held_back() -> None:
    assert gpu(GPU, GPU) == GpuSamples(
        node="train-1",
        gpu=0,
        samples=2,
        utilization=1.0,
        throttled_share=0.0,
        reason="",
        clock_mhz=1980.0,
        temperature_c=52.0,
    )


def test_utilization_is_the_mean_and_the_temperature_the_highest() -> None:
    found = gpu(GPU, replace(GPU, utilization=0.5, temperature_c=91.0))
    assert (found.utilization, found.temperature_c) == (0.75, 91.0)


def test_heat_is_the_reason_before_a_power_cap_that_is_more_frequent() -> None:
    capped = replace(GPU, slowed_by=frozenset({"sw_power_cap"}))
    hot = replace(GPU, slowed_by=frozenset({"sw_power_cap", "hw_thermal_slowdown"}))
    found = gpu(capped, capped, capped, hot)
    assert (found.reason, found.throttled_share) == ("hw_thermal_slowdown", 0.25)


def test_what_a_gpu_does_not_report_is_unknown() -> None:
    found = gpu(replace(GPU, utilization=None, clock_hz=None, temperature_c=None))
    assert (found.utilization, found.clock_mhz, found.temperature_c) == (None, None, None)


def test_what_efa_sent_is_the_growth_of_its_counters() -> None:
    assert sent((90.0, 5000), (60.0, 6000), (0.0, 9000)) == (4000, 90.0)


@pytest.mark.parametrize("readings", [[], [(0.0, 5000)], [(60.0, 5000), (0.0, 100)]])
def test_one_reading_or_a_driver_that_began_again_proves_nothing(readings: list[tuple[float, int]]) -> None:
    assert sent(*readings) == (None, 0.0)


def test_all_interfaces_of_a_node_count_together() -> None:
    def interfaces(first: int, second: int) -> list[EfaCounters]:
        return [replace(EFA[0], sent_bytes=first), replace(EFA[0], device="rdmap145s27", sent_bytes=second)]

    found = node_samples("train-1", (), [(60.0, interfaces(1, 1)), (0.0, interfaces(1, 8))])
    assert found.efa_sent_bytes == 7


def test_a_node_without_gpus_and_efa_measures_nothing() -> None:
    assert node_samples("cpu-1", [[], []], [(60.0, ()), (0.0, ())]) == NodeSamples()


@pytest.mark.parametrize(
    ("path", "seconds"),
    [
        (history_path(240.7), 240.0),
        (history_path(90_000), 600.0),
        ("/history?seconds=9999", 600.0),
        ("/history?seconds=-1", None),
        ("/history?seconds=1e9", None),
        ("/metrics", None),
    ],
)
def test_the_seconds_of_a_request(path: str, seconds: float | None) -> None:
    assert requested_seconds(path) == seconds
