"""The generated parts of docs/: whole pages, tables and errors between marks, a chart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.docs import catalog, forecast, mutations, reliability, slurm, spec
from tools.docs.scatter import scatter_svg

from corral.forecast.published.speed_validation import PublishedTable, compare_speeds, shipped_runs

DOCS = Path(__file__).parents[2] / "docs"


def texts(docs: Path = DOCS) -> Mapping[str, str]:
    """Return the text of each file with generated parts, by name; text written by hand stays."""

    def page(name: str) -> str:
        return (docs / name).read_text(encoding="utf-8")

    compared = {table: compare_speeds(shipped_runs(table)) for table in PublishedTable}
    return {
        "catalog.md": catalog.fill(page("catalog.md")),
        "development.md": mutations.fill(page("development.md")),
        "forecast.md": forecast.fill(page("forecast.md"), compared),
        "forecast.svg": scatter_svg(
            [*compared[PublishedTable.FIRST], *compared[PublishedTable.SECOND]], compared[PublishedTable.HELD_OUT]
        ),
        "reliability.md": reliability.fill(page("reliability.md")),
        "slurm.md": slurm.fill(page("slurm.md")),
        "spec.md": spec.reference(),
    }
