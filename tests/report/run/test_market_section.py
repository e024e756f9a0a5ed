"""What a run costs in each market, on the page: each amount in the row of its name."""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.cost.cost_range import Sum, Usd
from corral.forecast.run.market_forecast import Charge
from corral.model.enums import Market
from corral.report.sections.market_section import cost_by_market_section


@dataclass(frozen=True)
class Course:
    """What the section reads of a market."""

    market: Market
    charges: tuple[Charge, ...]

    @property
    def usd(self) -> Sum:
        """The sum of its charges."""
        return Sum.of((charge.what, charge.usd) for charge in self.charges)


@dataclass(frozen=True)
class Run:
    """What the section reads of a run."""

    markets: tuple[Course, ...]


def course(market: Market, *amounts: float) -> Course:
    names = (f"16 p5.48xlarge, {market.value}", "head, m7i.4xlarge", "data: tokens in the bucket")
    charges = (Charge(what=name, usd=Usd.exact(usd)) for name, usd in zip(names, amounts, strict=True))
    return Course(market, tuple(charges))


def test_each_charge_has_its_own_row_and_each_market_its_column() -> None:
    section = cost_by_market_section(
        Run(markets=(course(Market.ON_DEMAND, 1000, 20, 3), course(Market.SPOT, 400, 30, 5)))  # type: ignore[arg-type]
    )
    (table,) = section.tables
    assert (table.names, table.rows) == (
        ("for", "on-demand", "spot"),
        (
            ("nodes", "1,000.00", "400.00"),
            ("head, m7i.4xlarge", "20.00", "30.00"),
            ("data: tokens in the bucket", "3.00", "5.00"),
            ("total", "1,023.00", "435.00"),
        ),
    )
