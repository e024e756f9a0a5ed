"""What was left behind and what is kept, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from corral.forecast.money import Usd, total
from corral.forecast.prices import PriceList
from corral.inventory.leftovers import Leftover
from corral.inventory.things import Thing
from corral.inventory.worth import usd_per_month
from corral.report.amounts import usd
from corral.report.documents import Document, usd_document
from corral.report.tables import heading, lines, table


def leftovers_view(
    leftovers: Sequence[Leftover], kept: Sequence[Thing], foreign: Sequence[Leftover], prices: PriceList
) -> Iterator[RenderableType]:
    """Leftovers by owner with their cost, what is kept on purpose, and what may belong to somebody else."""
    yield heading("Left behind", "" if leftovers else "nothing")
    if leftovers:
        yield _leftovers(leftovers, prices)
    if foreign:
        yield heading("Of other environments", "neither this project nor its state backend knows them")
        yield _leftovers(foreign, prices)
        yield lines(["They may be at work for somebody else: only `corral sweep ENV --delete` touches them, by name."])
    if kept:
        yield heading("Kept on purpose", "`corral down ENV --with-base --delete-data NAME` deletes it")
        rows = [(one.base or "", one.kind.value, one.id, usd(usd_per_month(one, prices))) for one in kept]
        yield table(("base", "kind", "id", ">USD/month"), rows)


def leftovers_document(
    leftovers: Sequence[Leftover], kept: Sequence[Thing], foreign: Sequence[Leftover], prices: PriceList
) -> Document:
    """What `corral sweep --json` prints."""
    return {
        "schema": "corral.sweep/1",
        "leftovers": [_document(one.thing, one.reason, prices) for one in leftovers],
        "foreign": [_document(one.thing, one.reason, prices) for one in foreign],
        "kept": [_document(one, None, prices) for one in kept],
        "usd_per_month": usd_document(_sum(leftovers, prices)),
    }


def _leftovers(found: Sequence[Leftover], prices: PriceList) -> RenderableType:
    rows = [
        (one.thing.kind.value, one.thing.id, one.thing.name, one.reason, usd(usd_per_month(one.thing, prices)))
        for one in found
    ]
    sums = (f"{len(found)} in all", "", "", "", usd(_sum(found, prices)))
    return table(("kind", "id", "name", "why", ">USD/month"), rows, total=sums)


def _sum(found: Sequence[Leftover], prices: PriceList) -> Usd:
    return total(cost for cost in (usd_per_month(one.thing, prices) for one in found) if cost)


def _document(thing: Thing, reason: str | None, prices: PriceList) -> Document:
    return {
        "kind": thing.kind.value,
        "id": thing.id,
        "name": thing.name,
        "base": thing.base,
        "cluster": thing.cluster,
        "state": thing.state,
        "reason": reason,
        "usd_per_month": usd_document(usd_per_month(thing, prices)),
    }
