"""What was left behind and what is kept, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.forecast.money import Usd
from corral.forecast.prices import PriceList
from corral.inventory.findings import Findings
from corral.inventory.leftovers import Leftover
from corral.inventory.things import Thing
from corral.inventory.worth import sum_per_month, usd_per_month
from corral.report.amounts import summed, usd
from corral.report.documents import Document, sums_document, usd_document
from corral.report.tables import heading, lines, table


def leftovers_view(found: Findings, prices: PriceList) -> Iterator[RenderableType]:
    """Leftovers by kind with their cost, what may belong to somebody else, and what is kept on purpose."""
    yield heading(f"Left behind in {found.region}", "" if found.leftovers else "nothing")
    yield lines([f"judged by the stacks in {found.backend}"])
    yield from _leftovers(found.leftovers, prices)
    if found.foreign:
        yield heading("Of other environments", "this project does not declare them")
        yield from _leftovers(found.foreign, prices)
        yield lines(["Somebody else may be using them. Only a sweep of their own project deletes them."])
    if found.kept:
        yield heading("Kept on purpose", "of bases that are not up; `corral down ENV --delete-data BASE` deletes it")
        rows = [(one.base or "", one.kind.value, _cost(one, prices), one.id) for one in found.kept]
        yield table(("base", "kind", ">USD/month", "id"), rows)


def leftovers_document(found: Sequence[Findings], prices_of: Callable[[str], PriceList]) -> Document:
    """What `corral sweep --json` prints: one entry a region."""
    return {"schema": "corral.sweep/1", "regions": [_region(one, prices_of(one.region)) for one in found]}


def _region(found: Findings, prices: PriceList) -> Document:
    return {
        "region": found.region,
        "backend": found.backend,
        "leftovers": [_document(one.thing, one.reason, prices) for one in found.leftovers],
        "foreign": [_document(one.thing, one.reason, prices) for one in found.foreign],
        "kept": [_document(one, None, prices) for one in found.kept],
        **sums_document({"usd_per_month": sum_per_month((one.thing for one in found.leftovers), prices)}),
    }


def _leftovers(found: Sequence[Leftover], prices: PriceList) -> Iterator[RenderableType]:
    for reason in dict.fromkeys(one.reason for one in found):
        group = [one for one in found if one.reason == reason]
        rows = [(one.thing.kind.value, _name(one.thing), _cost(one.thing, prices), one.thing.id) for one in group]
        yield Text()
        yield lines([f"{reason}:"])
        total_row = (f"{len(group)} in all", "", _total(group, prices), "")
        yield table(("", "name", ">USD/month", "id"), rows, total=total_row)


def _name(thing: Thing) -> str:
    """Its name; nothing where that is only its id once more."""
    return "" if thing.name == thing.id else thing.name


def _cost(thing: Thing, prices: PriceList) -> str:
    return _shown(usd_per_month(thing, prices))


def _shown(amount: Usd | None) -> str:
    """The amount; `free` for nothing and for what no bill would show."""
    return "free" if amount is not None and not float(f"{amount.high:.4f}") else usd(amount)


def _total(found: Sequence[Leftover], prices: PriceList) -> str:
    """The sum of a column; of one in which there is a `?` too, the least that it can be."""
    amount = sum_per_month((one.thing for one in found), prices)
    return summed(amount) if amount.missing else _shown(amount.usd)


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
