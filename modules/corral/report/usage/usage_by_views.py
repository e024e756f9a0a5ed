"""Grouped usage as a table on a terminal, as a JSON document and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.report.formatting import count, lacking, summed
from corral.report.plan.plan_json import Document, usd_document
from corral.report.tables import heading, lines, table
from corral.report.usage.usage_by import GroupBy, RowKind, UsageRow, UsageTable
from corral.report.usage.usage_text import hours

_SECONDS_PER_HOUR = 3600
PRICES = (
    "Prices are the catalog's current ones before taxes, not those of the bill. A job pays for its part of each node;"
    " its GPU hours are those it had allocated. other: head, storage, network."
)


def usage_table_view(cluster: str, shown: UsageTable, remarks: Sequence[str]) -> Iterator[RenderableType]:
    """The period, the rows with their total, and what the sums lack."""
    yield heading(cluster, f"{shown.start:%Y-%m-%d %H:%M} to {shown.end:%Y-%m-%d %H:%M} UTC")
    yield Text()
    *rows, total = table_cells(shown)
    yield table(table_columns(shown.by), rows, total=total)
    yield Text()
    yield lines([*remarks, f"{PRICES}{lacking(shown.total.usd)}"])


def table_columns(by: GroupBy) -> tuple[str, ...]:
    """The names of the columns; `>` marks those of numbers."""
    return (*_text_columns(by), ">jobs", ">waited h", ">GPU h", ">node h", ">share", ">USD")


def table_cells(shown: UsageTable) -> Iterator[tuple[str, ...]]:
    """The cells of each row, and at last those of the total."""
    for row in shown.rows:
        yield (*_texts(row, shown.by), *_cells(row, shown))
    yield ("total", *[""] * (len(_text_columns(shown.by)) - 1), *_cells(shown.total, shown))


def usage_table_document(cluster: str, shown: UsageTable, remarks: Sequence[str]) -> Document:
    """The document of `corral usage --json`."""
    return {
        "schema": "corral.usage/1",
        "environment": cluster,
        "by": str(shown.by),
        "start": shown.start.isoformat(),
        "end": shown.end.isoformat(),
        "problems": list(remarks),
        "rows": [_row(row, shown.by) for row in shown.rows],
        "total": _numbers(shown.total),
    }


def usage_table_csv(shown: UsageTable) -> str:
    """The rows as CSV with a header, without the total. Numbers have no separators; USD without a price is empty."""
    names = ("name", "user") if shown.by is GroupBy.JOB else ()
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(
        ("kind", str(shown.by), *names, "jobs", "waited_hours", "gpu_hours", "node_hours", "usd_low", "usd_high")
    )
    for row in shown.rows:
        usd = (f"{row.usd.usd.low:.6f}", f"{row.usd.usd.high:.6f}") if row.usd.usd else ("", "")
        times = (f"{seconds / _SECONDS_PER_HOUR:.6f}" for seconds in (row.waited_s, row.gpu_s, row.node_s))
        texts = [_inert(text) for text in (row.group, *((row.name, row.user) if names else ()))]
        writer.writerow((str(row.kind), *texts, row.jobs, *times, *usd))
    return written.getvalue()


def _text_columns(by: GroupBy) -> tuple[str, ...]:
    if by is GroupBy.JOB:
        return (str(by), "name", "user")
    return (str(by), "use") if by in (GroupBy.DAY, GroupBy.QUEUE) else (str(by),)


def _texts(row: UsageRow, by: GroupBy) -> tuple[str, ...]:
    """The cells of the columns of text. Only a day and a queue have time of their own that no job used."""
    use = str(row.kind)
    if by in (GroupBy.DAY, GroupBy.QUEUE):
        return (row.group, use)
    group = (row.group or "(none)") if row.kind is RowKind.JOBS else use
    return (group, row.name, row.user) if by is GroupBy.JOB else (group,)


def _cells(row: UsageRow, shown: UsageTable) -> tuple[str, ...]:
    is_of_jobs = row.kind is RowKind.JOBS
    share = f"{row.node_s / shown.total.node_s:.0%}" if shown.total.node_s and row.kind is not RowKind.OTHER else ""
    return (
        count(row.jobs) if is_of_jobs else "",
        hours(row.waited_s) if is_of_jobs else "",
        hours(row.gpu_s) if row.kind is not RowKind.OTHER else "",
        hours(row.node_s) if row.kind is not RowKind.OTHER else "",
        share,
        summed(row.usd),
    )


def _row(row: UsageRow, by: GroupBy) -> Document:
    names = {"name": row.name, "user": row.user} if by is GroupBy.JOB and row.kind is RowKind.JOBS else {}
    return {"kind": str(row.kind), str(by): row.group or None, **names, **_numbers(row)}


def _numbers(row: UsageRow) -> Document:
    return {
        "jobs": row.jobs,
        "waited_hours": round(row.waited_s / _SECONDS_PER_HOUR, 6),
        "gpu_hours": round(row.gpu_s / _SECONDS_PER_HOUR, 6),
        "node_hours": round(row.node_s / _SECONDS_PER_HOUR, 6),
        "usd": usd_document(row.usd.usd),
        "unpriced": list(row.usd.missing),
    }


def _inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula: users name their jobs. Source: OWASP, "CSV Injection"."""
    return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text
