"""The errors in docs/forecast.md, and its chart; `python -m corral.report.forecast_page docs` writes them again."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from corral.catalog.training_outliers import known_reason
from corral.forecast.training.validation import Comparison, compare, grouped_errors, shipped_runs
from corral.report.scatter import scatter_svg

FAR = 0.15  # errors from here on are told with their reason
_BLOCK = re.compile(r"(<!-- errors: .*? -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(page: str, comparisons: Sequence[Comparison]) -> str:
    """The page with the errors of these runs between its marks."""
    lines = "\n".join([*_sums(comparisons), "", *_far(comparisons)])
    return _BLOCK.sub(lambda found: f"{found[1]}{lines}\n{found[2]}", page)


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
    comparisons = compare(shipped_runs())
    page = directory / "forecast.md"
    page.write_text(fill(page.read_text(encoding="utf-8"), comparisons), encoding="utf-8")
    (directory / "forecast.svg").write_text(scatter_svg(comparisons), encoding="utf-8")


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
