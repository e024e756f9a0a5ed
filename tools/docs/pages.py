"""The generated parts of docs/: whole pages, tables and errors between marks, a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from tools.docs import catalog, dashboards, forecast, monitoring, mutations, reliability, slurm, spec
from tools.docs.scatter import scatter_svg

from corral.forecast.published.speed_validation import PublishedTable, SpeedComparison, compare_speeds, shipped_runs

DOCS = Path(__file__).parents[2] / "docs"


def texts(docs: Path = DOCS) -> Mapping[str, str]:
    """Return the text of each file with generated parts, by name; text written by hand stays."""
    return {name: text(name, docs) for name in PAGES}


def text(name: str, docs: Path = DOCS) -> str:
    """Return the text of one file of PAGES."""
    return PAGES[name](docs / name)


@cache
def _compared(table: PublishedTable) -> tuple[SpeedComparison, ...]:
    return compare_speeds(shipped_runs(table))


def _forecast(page: Path) -> str:
    return forecast.fill(_written(page), {table: _compared(table) for table in PublishedTable})


def _chart(_page: Path) -> str:
    fitted = [*_compared(PublishedTable.FIRST), *_compared(PublishedTable.SECOND)]
    return scatter_svg(fitted, _compared(PublishedTable.HELD_OUT))


def _written(page: Path) -> str:
    return page.read_text(encoding="utf-8")


# Each file, and its text from the file as it is.
PAGES: Mapping[str, Callable[[Path], str]] = {
    "catalog.md": lambda page: catalog.fill(_written(page)),
    "development.md": lambda page: mutations.fill(_written(page)),
    "forecast.md": _forecast,
    "forecast.svg": _chart,
    "monitoring.md": lambda page: monitoring.fill(_written(page)),
    "reliability.md": lambda page: reliability.fill(_written(page)),
    "slurm.md": lambda page: slurm.fill(_written(page)),
    "spec.md": lambda _page: spec.reference(),
    **{f"grafana/{name}.json": lambda page: dashboards.dashboard_json(page.stem) for name in dashboards.DASHBOARDS},
}
