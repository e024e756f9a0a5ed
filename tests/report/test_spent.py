"""What a life took, by a life in round numbers (`small_life`): machines' time, interruptions, jobs, money."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.forecast.money import Sum, Usd
from corral.report.events import read_events
from corral.report.spent.ledger import PoolCost, spent
from small_life import EVENTS, LINES, RUNS, TARIFF, at, event, run, took


def pool(market: str) -> PoolCost:
    (found,) = (one for one in took().pools if one.sold.market == market)
    return found


@pytest.mark.parametrize(
    ("market", "seconds"),
    [
        # train-1 boots 300, works 3,600 and is 120 more; train-2 boots 300, works twice 3,600, is idle 600 and 480
        ("spot", (2, 600.0, 1200.0, 10_800.0)),
        ("on-demand", (1, 400.0, 500.0, 3600.0)),
    ],
)
def test_the_time_of_machines_is_booting_idle_or_in_jobs(market: str, seconds: tuple[int, float, float, float]) -> None:
    found = pool(market)
    assert (found.machines, found.booting.node_s, found.idle.node_s, found.busy.node_s) == seconds


def test_spot_hours_cost_a_range_that_the_offers_limit_caps() -> None:
    assert pool("spot").together.usd == Sum(usd=Usd(7.0, 21.0))  # 3.5 h at 2 to 8 USD, at most 6


def test_on_demand_hours_cost_what_the_list_says() -> None:
    assert pool("on-demand").together.usd.usd == Usd(pytest.approx(25.0), pytest.approx(25.0))  # 1.25 h at 20 USD


def test_what_is_idle_costs_its_part() -> None:
    assert pool("spot").idle.usd == Sum(usd=Usd(pytest.approx(2 / 3), pytest.approx(2.0)))  # a third of an hour


def test_the_head_costs_as_long_as_the_life_was() -> None:
    assert dict(took().things)["head, m7i.2xlarge"] == Usd(1.0, 1.0)  # 2.5 h at 0.40 USD


def test_nodes_that_are_always_there_count_by_their_machines_alone() -> None:
    assert [name for name, _ in took().things if name.startswith("queue")] == []


def test_the_sum_says_what_it_lacks() -> None:
    assert took().usd.missing == ("alarm",)


def test_an_interruption_tells_its_machines_and_jobs_and_what_they_waited() -> None:
    (found,) = took().interruptions
    assert (found.at, found.kinds, found.nodes, found.machines, found.jobs, found.waited_s, found.resumed) == (
        at(3900),
        ("notice",),
        "train-1",
        1,
        ("7",),
        600.0,
        True,
    )


def test_at_most_all_work_of_an_interrupted_run_is_lost() -> None:
    (found,) = took().interruptions
    assert (found.lost_node_s, found.lost_usd) == (7200.0, Sum(usd=Usd(0.0, 12.0)))  # two nodes for an hour at 6 USD


def test_no_more_is_lost_than_lies_between_two_checkpoints() -> None:
    found = spent(EVENTS, RUNS, TARIFF, start=at(0), end=at(9000), interval_s=900.0)
    assert found.lost.node_s == 1800.0


def test_two_machines_of_one_job_that_are_taken_are_one_interruption() -> None:
    also = read_events([*LINES, event(3910, "notice", nodes="train-2")])
    assert [(one.nodes, one.machines, one.jobs) for one in took(also).interruptions] == [("train-[1-2]", 2, ("7",))]


def test_machines_that_are_taken_within_a_look_are_one_interruption_though_the_first_ended_the_run() -> None:
    also = read_events([*LINES, event(3925, "notice", nodes="train-2")])
    found = took(also, (run(50, 400, 3902, "requeued"),)).interruptions
    assert [(one.nodes, one.jobs) for one in found] == [("train-[1-2]", ("7",))]


def test_a_machine_that_goes_when_the_run_was_over_is_another_interruption() -> None:
    also = read_events([*LINES, event(3977, "forgotten", nodes="train-2")])
    found = took(also, (run(50, 400, 3902, "requeued"),)).interruptions
    assert [(one.nodes, one.jobs) for one in found] == [("train-1", ("7",)), ("train-2", ())]


def test_a_machine_that_has_taken_new_work_goes_with_that_alone() -> None:
    also = read_events([*LINES, event(3925, "forgotten", nodes="train-2")])
    other = replace(run(60, 3905, 3924, "requeued", nodes="train-2"), job_id="8")
    found = took(also, (run(50, 400, 3902, "requeued"), other)).interruptions
    assert [(one.nodes, one.jobs) for one in found] == [("train-1", ("7",)), ("train-2", ("8",))]


def test_a_machine_that_is_taken_without_a_job_costs_no_work() -> None:
    idle = took(runs=(run(50, 400, 3000, "completed"),)).interruptions
    assert [(one.jobs, one.waited_s, one.lost_node_s) for one in idle] == [((), 0.0, 0.0)]


def test_a_job_that_somebody_requeues_is_no_interruption() -> None:
    calm = read_events([line for line in LINES if '"notice"' not in line and '"forgotten"' not in line])
    found = took(calm)
    assert (found.interruptions, found.jobs[0].requeues) == ((), 1)


def test_a_job_that_does_not_run_again_waits_until_now() -> None:
    waits = replace(RUNS[1], state="pending", started=None, ended=None, nodes="")
    (found,) = took(runs=(RUNS[0], waits)).interruptions
    assert (found.waited_s, found.resumed) == (5000.0, False)


def test_a_machine_that_booted_again_under_a_job_interrupts_it_and_lives_on() -> None:
    calm = [line for line in LINES if '"notice"' not in line and '"forgotten"' not in line and "4150" not in line]
    found = took(read_events([*calm[:4], event(3950, "rebooted", nodes="train-2", jobs=["7"])]))
    assert [(one.kinds, one.nodes, one.jobs) for one in found.interruptions] == [(("rebooted",), "train-2", ("7",))]


def test_a_job_costs_its_machines_for_as_long_as_it_ran() -> None:
    (found,) = took().jobs
    assert (found.runs, found.requeues, found.waited_s, found.ran_s, found.node_s, found.usd) == (
        2,
        1,
        950.0,
        7200.0,
        14_400.0,
        Sum(usd=Usd(26.0, 38.0)),  # three hours of spot, one of on-demand
    )


def test_the_part_of_the_time_that_was_kept_work_is_a_range() -> None:
    assert took().effective == (pytest.approx(7200 / 17_100), pytest.approx(14_400 / 17_100))


def test_a_life_without_machines_has_no_such_part() -> None:
    assert took(read_events(LINES[:1]), ()).effective is None


def test_only_what_lies_between_the_two_moments_counts() -> None:
    found = took(start=8000, end=8500)
    assert (found.node_s, sum(one.busy_s for one in found.machines)) == (1000.0, 400.0)


def test_two_jobs_on_a_node_take_its_time_once() -> None:
    beside = replace(run(50, 400, 4000, "completed", nodes="train-1"), job_id="8")
    assert sum(one.busy_s for one in took(runs=(*RUNS, beside)).machines) == 14_400.0


def test_an_older_launch_is_priced_by_the_plans_offer_of_that_name() -> None:
    old = event(100, "launched", nodes="train-1", instances={"train-1": "i-1"}, offer="train-spot-use1-az1")
    (found,) = took(read_events([old]), ()).pools
    assert (found.sold.instance_type, found.sold.market, found.sold.usd_per_hour) == (
        "p4d.24xlarge",
        "spot",
        Usd(2.0, 6.0),
    )


def test_an_offer_that_the_plan_no_longer_has_tells_its_market_by_its_name() -> None:
    old = event(100, "launched", nodes="train-1", instances={"train-1": "i-1"}, offer="train-on-demand-use1-az9")
    (found,) = took(read_events([old]), ()).pools
    assert (found.sold.market, found.sold.usd_per_hour) == ("on-demand", Usd(20.0, 20.0))


def test_a_type_that_the_queue_had_before_is_priced_as_what_it_was() -> None:
    was = event(
        100, "launched", nodes="train-1", instances={"train-1": "i-1"}, instance_type="m7i.2xlarge", market="spot"
    )
    assert took(read_events([was]), ()).pools[0].sold.usd_per_hour == Usd(0.1, 0.2)


def test_machines_of_unknown_price_are_named_and_not_counted_as_free() -> None:
    odd = event(100, "launched", nodes="train-1", instances={"train-1": "i-1"}, instance_type="x9.large", market="spot")
    assert took(read_events([odd]), ()).nodes_usd == Sum(usd=None, missing=("x9.large spot",))
