"""The errors in docs/forecast.md, from the published runs. The text outside the marks is written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from corral.catalog.accelerators.training_outliers import known_reason
from corral.forecast.published.speed_validation import PublishedTable, SpeedComparison, grouped_errors

FAR = 0.15  # larger errors are listed with their reason


def fill(page: str, tables: Mapping[PublishedTable, Sequence[SpeedComparison]]) -> str:
    """Return the page with the errors of each table between its marks."""
    for name, ones in tables.items():
        lines = "\n".join([*_sums(ones), "", *_far(ones)])
        block = re.compile(rf"(<!-- errors, {name}: .*? -->\n).*?(<!-- end -->)", re.DOTALL)
        if found := block.search(page):
            page = page[: found.end(1)] + lines + "\n" + page[found.start(2) :]
    return page


def _sums(comparisons: Sequence[SpeedComparison]) -> Iterator[str]:
    yield "| runs | number | median error | worst error | worst run |"
    yield "|---|---|---|---|---|"
    for errors in grouped_errors(comparisons):
        if errors.median is not None and errors.worst is not None:
            yield f"| {errors.name} | {errors.runs} | {errors.median:.1%} | {errors.worst:.1%} | {errors.worst_run} |"


def _far(comparisons: Sequence[SpeedComparison]) -> Iterator[str]:
    yield f"Off by {FAR:.0%} or more, and why:"
    yield ""
    yield "| run | predicted | reported | error | why |"
    yield "|---|---|---|---|---|"
    known = [(one, one.error) for one in comparisons if one.error is not None and abs(one.error) >= FAR]
    for one, error in sorted(known, key=lambda pair: -abs(pair[1])):
        why = known_reason(one.run.run_id) or "not known"
        yield f"| {one.run.run_id} | {one.predicted:,.1f} | {one.run.reported:,.1f} | {error:+.1%} | {why} |"
