"""Owned hardware compared with rented machines, by hand-worked figures (docs/rent-or-buy.md has the same ones)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.pool_capacity import MarketCapacity
from corral.forecast.cost.rent_vs_buy import Owned, ServerKw, break_even, compare_rent_vs_buy, kw_of, own
from corral.model.enums import Market
from corral.spec.models.buy import BuySpec
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.buy_files import Purchase, read_purchase
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT

TRAIN = read_environment(PROJECT, "train")
GIVEN: dict[str, Any] = {
    "usd_per_accelerator": 10_000,
    "usd_per_server": 20_000,
    "usd_per_kwh": 0.1,
    "pue": 1.2,
    "usd_per_kw_month": 100,
    "usd_staff_per_year": 50_000,
    "upkeep": 0.05,
    "years": 4,
    "residual": 0.2,
    "utilisation": 0.5,
}


@pytest.fixture
def owned() -> Owned:
    """Two servers of eight, which draw 7 to 10 kW."""
    return own(BuySpec(**GIVEN), 2, ServerKw(low=7, high=10, source="x"))


def purchase(tmp_path: Path, **changes: Any) -> Purchase:
    """The file with these changes, read in `train`; ... omits a field."""
    file = tmp_path / "buy.yaml"
    given = {key: value for key, value in {**GIVEN, **changes}.items() if value is not ...}
    file.write_text("".join(f"{key}: {value}\n" for key, value in given.items()))
    return read_purchase(file, TRAIN)


def errors(tmp_path: Path, **changes: Any) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        purchase(tmp_path, **changes)
    return [f"{error.path}: {error.text}" for error in caught.value.errors]


def test_purchase_price_covers_servers_and_cards(owned: Owned) -> None:
    assert (owned.accelerators, owned.price_usd) == (16, 200_000)


def test_a_year_is_depreciation_upkeep_staff_and_site(owned: Owned) -> None:
    parts = (owned.depreciation_usd, owned.upkeep_usd, owned.staff_usd, owned.site_usd)
    assert parts == (40_000, 10_000, 50_000, 24_000)


def test_energy_ranges_from_working_hours_to_all_hours(owned: Owned) -> None:
    # 2 x 7 x 1.2 x 8760 x 0.1 x 0.5 to 2 x 10 x 1.2 x 8760 x 0.1.
    assert (owned.energy.low, owned.energy.high) == (pytest.approx(7_358.4), pytest.approx(21_024))


def test_hourly_cost_is_the_yearly_cost_over_working_hours(owned: Owned) -> None:
    each = owned.usd_per_accelerator_hour
    assert (each.low, each.high) == (pytest.approx(131_358.4 / 70_080), pytest.approx(145_024 / 70_080))


def test_break_even_months_are_the_price_over_monthly_savings(owned: Owned) -> None:
    # At 3 USD: 3 x 70,080 = 210,240 a year, less 91,358.4 to 105,024.
    even = break_even(owned, Usd.exact(3.0))
    assert (even.months_low, even.months_high) == (
        pytest.approx(200_000 / 118_881.6 * 12),
        pytest.approx(200_000 / 105_216 * 12),
    )


def test_break_even_utilisation_is_where_an_hour_costs_the_rent(owned: Owned) -> None:
    even = break_even(owned, Usd.exact(3.0))
    assert (even.utilisation_low, even.utilisation_high) == (
        pytest.approx(124_000 / (420_480 - 14_716.8)),
        pytest.approx(145_024 / 420_480),
    )


def test_at_the_break_even_utilisation_an_hour_costs_the_rent() -> None:
    # Energy ranges only over the hours: at worst all hours are billed.
    kw = ServerKw(low=10, high=10, source="x")
    at = break_even(own(BuySpec(**GIVEN), 2, kw), Usd.exact(3.0)).utilisation_low
    spec = BuySpec(**{**GIVEN, "utilisation": at})
    assert own(spec, 2, kw).usd_per_accelerator_hour.low == pytest.approx(3.0)


def test_rent_below_running_costs_never_breaks_even(owned: Owned) -> None:
    # At 1 USD, a year of rent is 70,080, and running costs are at least 91,358.
    even = break_even(owned, Usd.exact(1.0))
    assert (even.months_low, even.months_high) == (None, None)


def test_range_of_rents_gives_a_range_of_break_evens(owned: Owned) -> None:
    even, dear = break_even(owned, Usd(1.0, 3.0)), break_even(owned, Usd.exact(3.0))
    assert (even.months_low, even.months_high) == (dear.months_low, None)


def test_servers_hold_all_accelerators_of_the_queue(tmp_path: Path) -> None:
    # 16 p5.48xlarge have 128.
    assert [purchase(tmp_path, accelerators_per_server=cards).servers for cards in (8, 4, 72)] == [16, 32, 2]


def test_power_is_that_of_the_published_server_plus_a_tenth(tmp_path: Path) -> None:
    # DGX H100: 10.2 kW, 0.7 to 1 of it.
    kw = kw_of(purchase(tmp_path))
    assert (kw.low, kw.high) == (pytest.approx(10.2 * 1.1 * 0.7), pytest.approx(10.2 * 1.1))


def test_declared_power_is_used(tmp_path: Path) -> None:
    kw = kw_of(purchase(tmp_path, kw_per_server=20))
    assert (kw.low, kw.high) == (14.0, 20.0)


def test_market_price_is_per_accelerator(tmp_path: Path) -> None:
    supply = MarketCapacity(market=Market.SPOT, most=16, usd_per_node_hour=Usd(16.0, 40.0), source="x")
    (rented,) = compare_rent_vs_buy(purchase(tmp_path), (supply,)).rented
    assert rented.usd_per_accelerator_hour == Usd(2.0, 5.0)


def test_a_market_without_a_price_has_no_break_even(tmp_path: Path) -> None:
    supply = MarketCapacity(market=Market.SPOT, most=16, usd_per_node_hour=None, source=None)
    (rented,) = compare_rent_vs_buy(purchase(tmp_path), (supply,)).rented
    assert (rented.usd_per_accelerator_hour, rented.break_even) == (None, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"usd_per_accelerator": 0, "usd_per_server": 0},
            "usd_per_server: is 0, and so is usd_per_accelerator - set the price of",
        ),
        ({"queue": "trian"}, "queue: 'trian' is not a queue of 'train' - did you mean 'train'?"),
        ({"accelerator": "H100"}, "accelerator: 'H100' is not in the catalog - did you mean 'H100-80'?"),
        (
            {"accelerator": "A100-40"},
            "accelerator: is A100-40, but queue 'train' has H100-80 - use another environment, or set prices of these",
        ),
        ({"pue": 0.9}, "pue: 0.9 is too small"),
        ({"utilisation": 1.5}, "utilisation: 1.5 is too large"),
        ({"years": ...}, "years: is missing"),
        ({"yaers": 4}, "yaers: unknown field"),
    ],
)
def test_every_error_of_a_file_is_reported(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    (line,) = errors(tmp_path, **changes)
    assert line.startswith(message)


def test_example_file_is_valid() -> None:
    purchase = read_purchase(PROJECT / "examples/buy/h100.yaml", TRAIN)
    assert (purchase.servers, purchase.spec.accelerators_per_server) == (16, 8)
