"""The same run on other machines, in other regions and markets: as a table, and as a part of the run's document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType

from corral.forecast.money import Usd
from corral.forecast.whole.compare import Compared
from corral.report.amounts import count, spread
from corral.report.documents import sums_document, usd_document
from corral.report.tables import heading, lines, table

COLUMNS = ("machines", ">nodes", ">days", ">USD", ">tokens/s", ">USD a billion")
ORDER = "the cheapest first, by the most that it may cost; head, network and file systems as here"


def compare_view(rows: Sequence[Compared]) -> Iterator[RenderableType]:
    """What can be had as one table, then what cannot, with why."""
    yield heading("Compared", ORDER)
    able = [row for row in rows if row.why_not is None]
    if able:
        yield table(COLUMNS, map(cells, able))
    yield lines(why_nots(rows))


def cells(row: Compared) -> tuple[str, ...]:
    """A row of the table: where it runs, how long, for how much."""
    market = f" {row.market.value}" if row.market else ""
    return (
        f"{row.instance_type} {row.region}{market}",
        count(row.nodes),
        spread(row.days.low, row.days.high) if row.days else "?",
        cost(row),
        count(row.tokens_per_s) if row.tokens_per_s else "?",
        _whole(row.usd_per_billion_tokens, places=2),
    )


def cost(row: Compared) -> str:
    """What the run costs, in whole dollars; `?` where a part has no known price, which `why_nots` names."""
    return _whole(None if row.usd.missing else row.usd.usd, places=0)


def why_nots(rows: Sequence[Compared]) -> list[str]:
    """A sentence for each row that cannot be had, and for each whose cost is not known."""
    found = [f"{cells(row)[0]}: {row.why_not}" for row in rows if row.why_not]
    unknown = [
        f"{cells(row)[0]}: no price is known for {'; '.join(row.usd.missing)}"
        for row in rows
        if row.why_not is None and row.usd.missing
    ]
    return [*unknown, *found]


def compare_document(rows: Sequence[Compared]) -> list[Mapping[str, Any]]:
    """The rows in the same order."""
    return [
        {
            "instance_type": row.instance_type,
            "region": row.region,
            "market": row.market.value if row.market else None,
            "nodes": row.nodes,
            "accelerators": row.accelerators,
            "layout": row.layout,
            "days": asdict(row.days) if row.days else None,
            **sums_document({"usd": row.usd}),
            "tokens_per_s": row.tokens_per_s,
            "usd_per_billion_tokens": usd_document(row.usd_per_billion_tokens),
            "fits": row.why_not is None,
            "why_not": row.why_not,
        }
        for row in rows
    ]


def _whole(amount: Usd | None, *, places: int) -> str:
    if amount is None:
        return "?"
    low, high = f"{amount.low:,.{places}f}", f"{amount.high:,.{places}f}"
    return low if low == high else f"{low} - {high}"
