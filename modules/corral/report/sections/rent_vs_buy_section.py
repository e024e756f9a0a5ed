"""Purchased hardware compared with rented instances, as a section of the page."""

from __future__ import annotations

from corral.forecast.cost.rent_vs_buy import RentVsBuy
from corral.report.charts.bar_charts import Range, ranges
from corral.report.formatting import usd
from corral.report.run.rent_vs_buy_view import ASSUMED, COLUMNS, owned_rows, rented_row
from corral.report.sections.section import Section, Table, picture


def buy_section(found: RentVsBuy) -> Section:
    """A bar for the cost of an accelerator hour, owned and in each market; the break-even points."""
    owned, purchase = found.owned, found.purchase
    prices = [("owned", owned.usd_per_accelerator_hour)]
    prices += [(one.market.value, one.usd_per_accelerator_hour) for one in found.rented if one.usd_per_accelerator_hour]
    drawn = [Range(name=name, low=price.low, high=price.high, words=f"{usd(price)} USD") for name, price in prices]
    title = f"{purchase.servers} servers of {purchase.spec.accelerators_per_server} {purchase.accelerator.name}"
    facts = (f"{name}: {text}" if name else text for name, text in owned_rows(owned, purchase.spec.years))
    return Section(
        anchor="buy",
        title="Rent or buy",
        lead=f"US dollars per accelerator hour: {title}, owned, or queue {purchase.queue}.",
        pictures=(picture(lambda width: ranges("US dollars per accelerator hour", drawn, width=width)),),
        tables=(
            Table(caption="Compared by market", columns=tuple(COLUMNS), rows=tuple(map(rented_row, found.rented))),
        ),
        lines=(*facts, *ASSUMED),
    )
