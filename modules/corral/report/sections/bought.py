"""Hardware of one's own beside rented machines, as a section of the page."""

from __future__ import annotations

from corral.forecast.buy import RentOrBuy
from corral.report.amounts import usd
from corral.report.buy import ASSUMED, COLUMNS, owned_rows, rented_row
from corral.report.charts import Range, ranges
from corral.report.sections.section import Section, Table, picture


def buy_section(found: RentOrBuy) -> Section:
    """A bar for what an accelerator's hour costs, owned and in each market; where both cost the same."""
    owned, purchase = found.owned, found.purchase
    prices = [("owned", owned.usd_per_accelerator_hour)]
    prices += [(one.market.value, one.usd_per_accelerator_hour) for one in found.rented if one.usd_per_accelerator_hour]
    drawn = [Range(name=name, low=price.low, high=price.high, words=f"{usd(price)} USD") for name, price in prices]
    title = f"{purchase.servers} servers of {purchase.spec.cards_per_server} {purchase.accelerator.name}"
    told = (f"{name}: {text}" if name else text for name, text in owned_rows(owned, purchase.spec.years))
    return Section(
        anchor="buy",
        title="Rent or buy",
        lead=f"US dollars for an hour of an accelerator: {title} of one's own, or queue {purchase.queue}.",
        pictures=(picture(lambda width: ranges("US dollars for an hour of an accelerator", drawn, width=width)),),
        tables=(
            Table(caption="Each market beside it", columns=tuple(COLUMNS), rows=tuple(map(rented_row, found.rented))),
        ),
        lines=(*told, *ASSUMED),
    )
