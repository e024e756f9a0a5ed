"""The errors in docs/forecast.md, and its chart; `python -m corral.report.forecast_page docs` writes them again."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from corral.catalog.training_outliers import known_reason
from corral.forecast.training.validation import Comparison, Table, compare, grouped_errors, shipped_runs
from corral.report.scatter import scatter_svg

FAR = 0.15  # errors from here on are told with their reason


def fill(page: str, tables: Mapping[Table, Sequence[Comparison]]) -> str:
    """The page with the errors of each table between its marks."""
    for name, ones in tables.items():
        lines = "\n".join([*_sums(ones), "", *_far(ones)])
        block = re.compile(rf"(<!-- errors, {name}: .*? -->\n).*?(<!-- end -->)", re.DOTALL)
        if found := block.search(page):
            page = page[: found.end(1)] + lines + "\n" + page[found.start(2) :]
    return page


def _sums(comparisons: Sequence[Comparison]) -> Iterator[str]:
    yield "| runs | number | median error | worst error | worst run |"
    yield "|---|---|---|---|---|"
    for errors in grouped_errors(comparisons):
        if errors.median is not None and errors.worst is not None:
            yield f"| {errors.name} | {errors.runs} | {errors.median:.1%} | {errors.worst:.1%} | {errors.worst_run} |"


def _far(comparisons: Sequence[Comparison]) -> Iterator[str]:
    yield f"Off by {FAR:.0%} or more, and why:"
    yield ""
    yield "| run | predicted | reported | error | why |"
    yield "|---|---|---|---|---|"
    known = [(one, one.error) for one in comparisons if one.error is not None and abs(one.error) >= FAR]
    for one, error in sorted(known, key=lambda pair: -abs(pair[1])):
        why = known_reason(one.run.run_id) or "not known"
        yield f"| {one.run.run_id} | {one.predicted:,.1f} | {one.run.reported:,.1f} | {error:+.1%} | {why} |"


def _write(directory: Path) -> None:
    tables = {table: compare(shipped_runs(table)) for table in Table}
    page = directory / "forecast.md"
    page.write_text(fill(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    (directory / "forecast.svg").write_text(
        scatter_svg([*tables[Table.FIRST], *tables[Table.SECOND]], tables[Table.HELD_OUT]), encoding="utf-8"
    )


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
