"""The head's metrics: what a reading becomes, as lines of Prometheus's text format."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.metrics.promtool import check_metrics
from agent.metrics.readings import NOON, SPOT, job, lines, node, reading
from corral.agent.metrics.head_metrics import head_families, head_metrics, node_state
from corral.agent.metrics.text_format import exposition
from corral.model.monitoring import MonitoringPlan


def test_promtool_finds_nothing_wrong_with_a_head_that_has_every_metric() -> None:
    page = exposition(head_families(reading(block_ends={SPOT: NOON + 60})))
    assert check_metrics(page) == ""


def test_a_full_reading_has_every_metric() -> None:
    families = head_families(reading(block_ends={SPOT: NOON + 60}))
    assert [family.metric.name for family in families if not family.samples] == []


def test_metrics_are_sorted_by_name_and_each_exists_once() -> None:
    names = [metric.name for metric in head_metrics()]
    assert names == sorted(set(names))


def test_a_head_that_knows_nothing_yet_has_a_valid_page() -> None:
    empty = reading(nodes=(), instances=(), backoffs={}, jobs=None, file_systems=(), spending=None, last_cycle=None)
    assert check_metrics(exposition(head_families(empty))) == ""


@pytest.mark.parametrize(
    ("states", "state"),
    [
        pytest.param("IDLE POWERED_DOWN", "off", id="no machine"),
        pytest.param("IDLE POWERING_DOWN", "stopping", id="terminates"),
        pytest.param("ALLOCATED POWER_DOWN", "allocated", id="terminates after its job"),
        pytest.param("ALLOCATED POWERING_UP", "booting", id="boots for a job"),
        pytest.param("IDLE", "idle", id="free"),
        pytest.param("MIXED", "allocated", id="partly used"),
        pytest.param("IDLE DRAIN", "draining", id="drained"),
        pytest.param("ALLOCATED NOT_RESPONDING", "down", id="silent"),
        pytest.param("DOWN DRAIN", "down", id="down and drained"),
    ],
)
def test_the_state_of_a_node(states: str, state: str) -> None:
    assert node_state(node("train-1", *states.split())) == state


def test_nodes_are_counted_by_queue_and_state_and_absent_states_are_zero() -> None:
    assert [line for line in lines("corral_nodes") if "train" in line] == [
        '{queue="train",state="off"} 2',
        '{queue="train",state="booting"} 0',
        '{queue="train",state="idle"} 1',
        '{queue="train",state="allocated"} 1',
        '{queue="train",state="draining"} 0',
        '{queue="train",state="down"} 0',
        '{queue="train",state="stopping"} 0',
    ]


def test_gpus_are_those_of_machines_that_are_up_and_a_queue_without_has_none() -> None:
    assert lines("corral_gpus") == [
        '{queue="train",state="allocated"} 8',
        '{queue="train",state="idle"} 8',
        '{queue="train",state="unavailable"} 0',
    ]


def test_a_node_whose_gpus_no_job_has_is_none_of_those_with_allocated_ones() -> None:
    assert lines("corral_node_gpus_allocated") == ['{node="train-1"} 8']


def test_the_free_gpus_of_a_drained_node_are_unavailable() -> None:
    drained = reading(nodes=(node("train-1", "MIXED", "DRAIN", gpus=2),))
    assert lines("corral_gpus", drained) == [
        '{queue="train",state="allocated"} 2',
        '{queue="train",state="idle"} 0',
        '{queue="train",state="unavailable"} 6',
    ]


def test_an_offer_that_backs_off_has_the_seconds_that_are_left_and_another_has_zero() -> None:
    others = [line for line in lines("corral_offer_backoff_seconds") if not line.endswith(" 0")]
    assert others == [f'{{queue="train",offer="{SPOT}"}} 240']


def test_a_backoff_that_is_over_counts_no_more() -> None:
    later = replace(reading(), now=NOON + 300)
    assert [line for line in lines("corral_offer_backoff_seconds", later) if not line.endswith(" 0")] == []


def test_launches_are_counted_by_outcome() -> None:
    found = [line for line in lines("corral_launches_total") if SPOT in line]
    assert found == [
        f'{{queue="train",offer="{SPOT}",outcome="launched"}} 2',
        f'{{queue="train",offer="{SPOT}",outcome="refused"}} 1',
    ]


def test_machines_are_counted_by_the_offer_that_they_come_from() -> None:
    assert [line for line in lines("corral_machines") if not line.endswith(" 0")] == [
        f'{{queue="train",offer="{SPOT}",market="spot"}} 2'
    ]


def test_boots_are_in_the_buckets_of_their_seconds() -> None:
    buckets = [line for line in lines("corral_node_boot_seconds_bucket") if 'queue="train"' in line]
    assert buckets[1:6] == [
        '{queue="train",le="120"} 0',
        '{queue="train",le="180"} 1',
        '{queue="train",le="240"} 1',
        '{queue="train",le="300"} 2',
        '{queue="train",le="450"} 2',
    ]


def test_failed_boots_are_those_in_a_row() -> None:
    assert lines("corral_node_boot_failures") == ['{queue="train"} 1', '{queue="cpu"} 0']


def test_jobs_are_counted_by_queue_account_and_state() -> None:
    assert lines("corral_jobs") == [
        '{queue="train",account="vision",state="pending"} 1',
        '{queue="train",account="vision",state="running"} 1',
    ]


def test_a_queue_waits_as_long_as_its_longest_waiting_job() -> None:
    jobs = (job(2, "pending", waits_since=int(NOON) - 600), job(3, "pending", waits_since=int(NOON) - 60))
    assert lines("corral_job_wait_seconds", reading(jobs=jobs)) == ['{queue="train",account="vision"} 600']


def test_a_head_whose_slurmctld_is_silent_has_no_jobs_and_a_zero_that_shows_why() -> None:
    silent = reading(jobs=None)
    assert (lines("corral_jobs", silent), lines("corral_slurmctld_up", silent)) == ([], [" 0"])


def test_cost_is_a_range() -> None:
    assert lines("corral_cost_usd_per_hour") == ['{estimate="low"} 3', '{estimate="high"} 4.25']


def test_a_base_without_a_budget_has_no_budget() -> None:
    plan = replace(reading().plan, monitoring=MonitoringPlan())
    assert lines("corral_budget_usd_per_month", reading(plan=plan)) == []


def test_an_end_that_has_passed_is_negative() -> None:
    assert lines("corral_cluster_time_left_seconds", reading(ends_at=NOON - 5)) == [" -5"]


def test_a_cluster_that_is_deployed_now_is_marked() -> None:
    assert lines("corral_cluster_changing", reading(is_changing=True)) == [" 1"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("communication_ratio", "0.1"),
        ("gpus", "32"),
        ("mfu_ratio", "0.4"),
        ("nodes", "4"),
        ("step_seconds", "3.25"),
        ("tokens_per_second_per_gpu", "4000"),
        ("uncertainty_ratio", "0.15"),
    ],
)
def test_a_declared_run_has_its_forecast_unless_it_does_not_fit(name: str, value: str) -> None:
    assert lines(f"corral_forecast_{name}") == [f'{{run="llama",queue="train"}} {value}']


def test_the_memory_of_a_run_that_does_not_fit_is_forecast_too() -> None:
    assert lines("corral_forecast_memory_bytes") == [
        '{run="llama",queue="train"} 64424509440',
        '{run="large",queue="train"} 64424509440',
    ]
