"""What a cluster costs now and has cost so far."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent.metrics.readings import SPOT, instance
from corral.agent.metrics.spending import Spending, SpendingMeter, continued, rate_of
from corral.model.monitoring import ClusterPrices, PriceRange

PRICES = ClusterPrices(
    offers={SPOT: PriceRange(low=10.0, high=20.0)}, fixed=PriceRange(low=1.0, high=1.0), source="a list"
)
ONE = PriceRange(low=2.0, high=3.0)


def test_a_cluster_costs_its_machines_and_what_is_always_there() -> None:
    machines = [instance("train-1"), instance("train-2")]
    assert rate_of(PRICES, machines) == PriceRange(low=21.0, high=41.0)


def test_a_machine_that_ends_costs_nothing_more() -> None:
    assert rate_of(PRICES, [replace(instance("train-1"), state="shutting-down")]) == PRICES.fixed


def test_a_machine_of_an_offer_without_a_known_price_is_left_out() -> None:
    assert rate_of(PRICES, [instance("train-1", offer="elsewhere")]) == PRICES.fixed


def test_the_former_rate_counts_until_now() -> None:
    before = Spending(at=0.0, sum=PriceRange(low=5.0, high=5.0), rate=ONE)
    after = continued(before, PriceRange(low=9.0, high=9.0), 1800.0)
    assert after.sum == PriceRange(low=6.0, high=6.5)


def test_a_clock_that_ran_backwards_takes_nothing_away() -> None:
    before = Spending(at=100.0, sum=ONE, rate=ONE)
    assert continued(before, ONE, 50.0).sum == ONE


def test_a_new_head_continues_the_sum(tmp_path: Path) -> None:
    clock = iter([0.0, 7200.0])
    SpendingMeter(file=tmp_path / "spending.json", clock=lambda: next(clock)).read(ONE)
    newer = SpendingMeter(file=tmp_path / "spending.json", clock=lambda: next(clock))
    assert newer.read(ONE).sum == PriceRange(low=4.0, high=6.0)


def test_a_file_that_is_cut_off_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "spending.json").write_text('{"at": 1')
    meter = SpendingMeter(file=tmp_path / "spending.json", clock=lambda: 5.0)
    assert meter.read(ONE) == Spending(at=5.0, sum=PriceRange(low=0.0, high=0.0), rate=ONE)
