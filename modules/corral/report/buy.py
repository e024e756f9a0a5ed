"""Hardware of one's own beside rented machines: on a terminal, and as a part of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from corral.forecast.buy import Owned, Rented, RentOrBuy
from corral.report.amounts import count, spread, usd
from corral.report.documents import usd_document
from corral.report.tables import facts, heading, lines, table

COLUMNS = ("market", ">USD an hour", ">break-even, months", ">break-even, utilisation")
ASSUMED = (
    "an accelerator of one's own does as much as one of the queue's; rented machines are paid for while they work",
    "in neither: head, file systems, traffic, interest, taxes; what is paid for a reservation or a block that idles",
    "energy: from working hours at the least load known of training to all hours at the most that servers take",
)


def buy_view(found: RentOrBuy) -> Iterator[RenderableType]:
    """What an hour of an accelerator costs, owned and in each market, and where both cost the same."""
    purchase = found.purchase
    title = f"{purchase.servers} servers of {purchase.spec.cards_per_server} {purchase.accelerator.name}"
    yield heading("Rent or buy", f"{title} instead of queue {purchase.queue}")
    yield facts(owned_rows(found.owned, purchase.spec.years))
    yield table(COLUMNS, map(rented_row, found.rented))
    yield lines(ASSUMED)


def owned_rows(owned: Owned, years: float) -> Iterator[tuple[str, str]]:
    """What owning costs, by what it is for."""
    yield "price", f"{count(owned.price_usd)} USD, written off in {years:g} years"
    yield "of a year", f"{count(owned.depreciation_usd)} USD of it, staff {count(owned.staff_usd)}"
    yield "", f"upkeep {count(owned.upkeep_usd)}, site {count(owned.site_usd)}"
    low, high = count(owned.energy.low), count(owned.energy.high)
    yield "", f"energy {low} - {high}: a server takes {spread(owned.kw.low, owned.kw.high)} kW ({owned.kw.source})"
    each = usd(owned.usd_per_accelerator_hour)
    yield "owned", f"{each} USD an hour of an accelerator that works {owned.utilisation:.0%} of the time"


def rented_row(one: Rented) -> tuple[str, str, str, str]:
    """A market: its price of an accelerator's hour, and where owning costs the same."""
    even = one.break_even
    if even is None:
        return one.market.value, usd(one.usd_per_accelerator_hour), "?", "?"
    return (
        one.market.value,
        usd(one.usd_per_accelerator_hour),
        _span(even.months_low, even.months_high, "{:,.0f}"),
        _span(_reachable(even.utilisation_low), _reachable(even.utilisation_high), "{:.0%}"),
    )


def buy_document(found: RentOrBuy) -> Mapping[str, Any]:
    """The same figures; a break-even of None: never."""
    owned = found.owned
    return {
        "file": found.purchase.file,
        "queue": found.purchase.queue,
        "accelerator": found.purchase.accelerator.name,
        "servers": found.purchase.servers,
        "accelerators": owned.accelerators,
        "utilisation": owned.utilisation,
        "price_usd": owned.price_usd,
        "usd_per_year": {
            "depreciation": owned.depreciation_usd,
            "upkeep": owned.upkeep_usd,
            "staff": owned.staff_usd,
            "site": owned.site_usd,
            "energy": usd_document(owned.energy),
        },
        "server_kw": {"low": owned.kw.low, "high": owned.kw.high, "source": owned.kw.source},
        "usd_per_accelerator_hour": usd_document(owned.usd_per_accelerator_hour),
        "rented": [_rented(one) for one in found.rented],
        "assumed": list(ASSUMED),
    }


def _rented(one: Rented) -> Mapping[str, Any]:
    even = one.break_even
    return {
        "market": one.market.value,
        "usd_per_accelerator_hour": usd_document(one.usd_per_accelerator_hour),
        "break_even_months": {"low": even.months_low, "high": even.months_high} if even else None,
        "break_even_utilisation": {"low": even.utilisation_low, "high": even.utilisation_high} if even else None,
        "source": one.source,
    }


def _reachable(utilisation: float | None) -> float | None:
    return utilisation if utilisation is not None and utilisation <= 1 else None


def _span(low: float | None, high: float | None, form: str) -> str:
    if low is None:
        return "never"
    first = form.format(low)
    last = "never" if high is None else form.format(high)
    return first if first == last else f"{first} - {last}"
