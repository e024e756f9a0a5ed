"""The usage of a history in round numbers (`small_history`): instance time, interruptions, jobs, cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.forecast.cost.cost_range import Sum, Usd
from corral.report.timeline.event_lines import read_events
from corral.report.usage.usage_summary import PoolCost, compute_usage
from small_history import EVENTS, LINES, RATES, RUNS, at, event, history_usage, run


def pool(market: str) -> PoolCost:
    (found,) = (one for one in history_usage().pools if one.rate.market == market)
    return found


@pytest.mark.parametrize(
    ("market", "seconds"),
    [
        # train-1 boots 300, works 3,600 and is 120 more; train-2 boots 300, works twice 3,600, is idle 600 and 480
        ("spot", (2, 600.0, 1200.0, 10_800.0)),
        ("on-demand", (1, 400.0, 500.0, 3600.0)),
    ],
)
def test_machine_time_is_booting_idle_or_in_jobs(market: str, seconds: tuple[int, float, float, float]) -> None:
    found = pool(market)
    assert (found.machines, found.booting.node_s, found.idle.node_s, found.busy.node_s) == seconds


def test_spot_hours_cost_a_range_that_the_offers_limit_caps() -> None:
    assert pool("spot").together.usd == Sum(usd=Usd(7.0, 21.0))  # 3.5 h at 2 to 8 USD, at most 6


def test_on_demand_hours_cost_the_list_price() -> None:
    assert pool("on-demand").together.usd.usd == Usd(pytest.approx(25.0), pytest.approx(25.0))  # 1.25 h at 20 USD


def test_idle_time_costs_its_share() -> None:
    assert pool("spot").idle.usd == Sum(usd=Usd(pytest.approx(2 / 3), pytest.approx(2.0)))  # a third of an hour


def test_head_costs_the_whole_period() -> None:
    assert dict(history_usage().other)["head, m7i.2xlarge"] == Usd(1.0, 1.0)  # 2.5 h at 0.40 USD


def test_static_nodes_count_only_as_machines() -> None:
    assert [name for name, _ in history_usage().other if name.startswith("queue")] == []


def test_sum_names_its_missing_prices() -> None:
    assert history_usage().usd.missing == ("alarm",)


def test_interruption_has_its_machines_jobs_and_waiting_time() -> None:
    (found,) = history_usage().interruptions
    assert (found.at, found.kinds, found.nodes, found.machines, found.jobs, found.waited_s, found.resumed) == (
        at(3900),
        ("notice",),
        "train-1",
        1,
        ("7",),
        600.0,
        True,
    )


def test_interrupted_run_loses_at_most_all_its_work() -> None:
    (found,) = history_usage().interruptions
    assert (found.lost_node_s, found.lost_usd) == (7200.0, Sum(usd=Usd(0.0, 12.0)))  # two nodes for an hour at 6 USD


def test_interrupted_run_loses_at_most_one_checkpoint_interval() -> None:
    found = compute_usage(EVENTS, RUNS, RATES, start=at(0), end=at(9000), interval_s=900.0)
    assert found.lost.node_s == 1800.0


def test_two_reclaimed_machines_of_one_job_are_one_interruption() -> None:
    also = read_events([*LINES, event(3910, "notice", nodes="train-2")])
    assert [(one.nodes, one.machines, one.jobs) for one in history_usage(also).interruptions] == [
        ("train-[1-2]", 2, ("7",))
    ]


def test_machines_reclaimed_within_one_cycle_are_one_interruption() -> None:
    also = read_events([*LINES, event(3925, "notice", nodes="train-2")])
    found = history_usage(also, (run(50, 400, 3902, "requeued"),)).interruptions
    assert [(one.nodes, one.jobs) for one in found] == [("train-[1-2]", ("7",))]


def test_machine_lost_after_the_run_ended_is_another_interruption() -> None:
    also = read_events([*LINES, event(3977, "marked-down", nodes="train-2")])
    found = history_usage(also, (run(50, 400, 3902, "requeued"),)).interruptions
    assert [(one.nodes, one.jobs) for one in found] == [("train-1", ("7",)), ("train-2", ())]


def test_machine_with_a_new_run_interrupts_only_that_run() -> None:
    also = read_events([*LINES, event(3925, "marked-down", nodes="train-2")])
    other = replace(run(60, 3905, 3924, "requeued", nodes="train-2"), job_id="8")
    found = history_usage(also, (run(50, 400, 3902, "requeued"), other)).interruptions
    assert [(one.nodes, one.jobs) for one in found] == [("train-1", ("7",)), ("train-2", ("8",))]


def test_reclaimed_machine_without_a_job_loses_no_work() -> None:
    idle = history_usage(runs=(run(50, 400, 3000, "completed"),)).interruptions
    assert [(one.jobs, one.waited_s, one.lost_node_s) for one in idle] == [((), 0.0, 0.0)]


def test_job_requeued_by_a_user_is_no_interruption() -> None:
    calm = read_events([line for line in LINES if '"notice"' not in line and '"marked-down"' not in line])
    found = history_usage(calm)
    assert (found.interruptions, found.jobs[0].requeues) == ((), 1)


def test_job_that_does_not_run_again_waits_until_now() -> None:
    waits = replace(RUNS[1], state="pending", started=None, ended=None, nodes="")
    (found,) = history_usage(runs=(RUNS[0], waits)).interruptions
    assert (found.waited_s, found.resumed) == (5000.0, False)


def test_reboot_interrupts_the_job_but_not_the_instance() -> None:
    calm = [line for line in LINES if '"notice"' not in line and '"marked-down"' not in line and "4150" not in line]
    found = history_usage(read_events([*calm[:4], event(3950, "rebooted", nodes="train-2", jobs=["7"])]))
    assert [(one.kinds, one.nodes, one.jobs) for one in found.interruptions] == [(("rebooted",), "train-2", ("7",))]


def test_job_costs_its_machines_while_it_ran() -> None:
    (found,) = history_usage().jobs
    assert (found.runs, found.requeues, found.waited_s, found.ran_s, found.node_s, found.usd) == (
        2,
        1,
        950.0,
        7200.0,
        14_400.0,
        Sum(usd=Usd(26.0, 38.0)),  # three hours of spot, one of on-demand
    )


def test_goodput_is_a_range() -> None:
    assert history_usage().goodput == (pytest.approx(7200 / 17_100), pytest.approx(14_400 / 17_100))


def test_history_without_machines_has_no_goodput() -> None:
    assert history_usage(read_events(LINES[:1]), ()).goodput is None


def test_only_time_between_start_and_end_counts() -> None:
    found = history_usage(start=8000, end=8500)
    assert (found.node_s, sum(one.busy_s for one in found.machines)) == (1000.0, 400.0)


def test_two_jobs_on_a_node_use_its_time_once() -> None:
    second = replace(run(50, 400, 4000, "completed", nodes="train-1"), job_id="8")
    assert sum(one.busy_s for one in history_usage(runs=(*RUNS, second)).machines) == 14_400.0


def test_launch_event_without_a_market_is_priced_by_the_plans_offer() -> None:
    old = event(100, "launched", nodes="train-1", instances={"train-1": "i-1"}, offer="train-spot-use1-az1")
    (found,) = history_usage(read_events([old]), ()).pools
    assert (found.rate.instance_type, found.rate.market, found.rate.usd_per_hour) == (
        "p4d.24xlarge",
        "spot",
        Usd(2.0, 6.0),
    )


def test_market_of_a_removed_offer_comes_from_its_name() -> None:
    old = event(100, "launched", nodes="train-1", instances={"train-1": "i-1"}, offer="train-on-demand-use1-az9")
    (found,) = history_usage(read_events([old]), ()).pools
    assert (found.rate.market, found.rate.usd_per_hour) == ("on-demand", Usd(20.0, 20.0))


def test_former_type_of_a_queue_keeps_its_own_price() -> None:
    was = event(
        100, "launched", nodes="train-1", instances={"train-1": "i-1"}, instance_type="m7i.2xlarge", market="spot"
    )
    assert history_usage(read_events([was]), ()).pools[0].rate.usd_per_hour == Usd(0.1, 0.2)


def test_machines_without_a_price_are_named_not_counted_as_free() -> None:
    odd = event(100, "launched", nodes="train-1", instances={"train-1": "i-1"}, instance_type="x9.large", market="spot")
    assert history_usage(read_events([odd]), ()).nodes_usd == Sum(usd=None, missing=("x9.large spot",))
