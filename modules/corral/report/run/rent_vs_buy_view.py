"""Purchased hardware compared with rented instances, on a terminal and as part of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from corral.forecast.cost.rent_vs_buy import Owned, Rented, RentVsBuy
from corral.report.formatting import count, spread, usd
from corral.report.plan.plan_json import usd_document
from corral.report.tables import facts, heading, lines, table

COLUMNS = ("market", ">USD an hour", ">break-even, months", ">break-even, utilisation")
ASSUMED = (
    "an owned accelerator is as fast as one of the queue; rented machines are billed only while they work",
    "not included: head, file systems, traffic, interest, taxes, idle reservations and capacity blocks",
    "energy: from working hours at the lowest known training load to all hours at maximum power",
)


def buy_view(found: RentVsBuy) -> Iterator[RenderableType]:
    """The cost of an accelerator hour, owned and in each market, and the break-even points."""
    purchase = found.purchase
    title = f"{purchase.servers} servers of {purchase.spec.accelerators_per_server} {purchase.accelerator.name}"
    yield heading("Rent or buy", f"{title} instead of queue {purchase.queue}")
    yield facts(owned_rows(found.owned, purchase.spec.years))
    yield table(COLUMNS, map(rented_row, found.rented))
    yield lines(ASSUMED)


def owned_rows(owned: Owned, years: float) -> Iterator[tuple[str, str]]:
    """The cost of owning, by purpose."""
    yield "price", f"{count(owned.price_usd)} USD, depreciated over {years:g} years"
    yield "per year", f"depreciation {count(owned.depreciation_usd)} USD, staff {count(owned.staff_usd)}"
    yield "", f"upkeep {count(owned.upkeep_usd)}, site {count(owned.site_usd)}"
    low, high = count(owned.energy.low), count(owned.energy.high)
    yield "", f"energy {low} - {high}: a server draws {spread(owned.kw.low, owned.kw.high)} kW ({owned.kw.source})"
    each = usd(owned.usd_per_accelerator_hour)
    yield "owned", f"{each} USD per accelerator hour at {owned.utilisation:.0%} utilisation"


def rented_row(one: Rented) -> tuple[str, str, str, str]:
    """A market: its price per accelerator hour, and its break-even points."""
    even = one.break_even
    if even is None:
        return one.market.value, usd(one.usd_per_accelerator_hour), "?", "?"
    return (
        one.market.value,
        usd(one.usd_per_accelerator_hour),
        _span(even.months_low, even.months_high, "{:,.0f}"),
        _span(_reachable(even.utilisation_low), _reachable(even.utilisation_high), "{:.0%}"),
    )


def buy_document(found: RentVsBuy) -> Mapping[str, Any]:
    """The same figures as part of a document; a break-even of None is never reached."""
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
