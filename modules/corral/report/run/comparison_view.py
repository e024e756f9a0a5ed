"""A run on other machines, in other regions and markets: as a table, and as part of the run's document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType

from corral.forecast.cost.cost_range import Usd
from corral.forecast.run.comparison import Alternative
from corral.report.formatting import count, spread
from corral.report.plan.plan_json import sums_document, usd_document
from corral.report.tables import heading, lines, table

COLUMNS = ("machines", ">nodes", ">days", ">USD", ">tokens/s", ">USD a billion")
ORDER = "cheapest first, by the highest possible cost; same head, network and file systems"


def compare_view(rows: Sequence[Alternative]) -> Iterator[RenderableType]:
    """The possible alternatives as a table, then the impossible ones with their reasons."""
    yield heading("Compared", ORDER)
    able = [row for row in rows if row.why_not is None]
    if able:
        yield table(COLUMNS, map(cells, able))
    yield lines(exclusions(rows))


def cells(row: Alternative) -> tuple[str, ...]:
    """A row of the table: machines, duration, cost."""
    market = f" {row.market.value}" if row.market else ""
    return (
        f"{row.instance_type} {row.region}{market}",
        count(row.nodes),
        spread(row.days.low, row.days.high) if row.days else "?",
        cost(row),
        count(row.tokens_per_s) if row.tokens_per_s else "?",
        _whole(row.usd_per_billion_tokens, digits=2),
    )


def cost(row: Alternative) -> str:
    """The cost of the run in whole dollars; `?` if a part has no known price, which `exclusions` names."""
    return _whole(None if row.usd.missing else row.usd.usd, digits=0)


def exclusions(rows: Sequence[Alternative]) -> list[str]:
    """A line for each impossible row, and for each with an unknown cost."""
    found = [f"{cells(row)[0]}: {row.why_not}" for row in rows if row.why_not]
    unknown = [
        f"{cells(row)[0]}: no known price for {'; '.join(row.usd.missing)}"
        for row in rows
        if row.why_not is None and row.usd.missing
    ]
    return [*unknown, *found]


def compare_document(rows: Sequence[Alternative]) -> list[Mapping[str, Any]]:
    """The rows as part of the document, in the same order."""
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
            "reason": row.why_not,
        }
        for row in rows
    ]


def _whole(amount: Usd | None, *, digits: int) -> str:
    if amount is None:
        return "?"
    low, high = f"{amount.low:,.{digits}f}", f"{amount.high:,.{digits}f}"
    return low if low == high else f"{low} - {high}"
