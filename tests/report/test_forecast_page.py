"""docs/forecast.md and its chart: what they show is what is computed, and every run that is far off has its reason."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from corral.catalog.training_outliers import known_reason
from corral.forecast.training.validation import Table, compare, shipped_runs
from corral.report.forecast_page import FAR, fill
from corral.report.scatter import group_of, scatter_svg

DOCS = Path(__file__).parents[2] / "docs"
TABLES = {table: compare(shipped_runs(table)) for table in Table}
SEEN, HELD_OUT = [*TABLES[Table.FIRST], *TABLES[Table.SECOND]], TABLES[Table.HELD_OUT]
COMPARISONS = [*SEEN, *HELD_OUT]


def test_errors_on_the_page_are_current() -> None:
    page = (DOCS / "forecast.md").read_text()
    assert fill(page, TABLES) == page, "python -m corral.report.forecast_page docs"


def test_the_chart_is_current() -> None:
    assert (DOCS / "forecast.svg").read_text() == scatter_svg(SEEN, HELD_OUT), (
        "python -m corral.report.forecast_page docs"
    )


def test_the_chart_has_a_point_for_every_run_that_reported() -> None:
    root = ElementTree.fromstring(scatter_svg(SEEN, HELD_OUT))
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len([one for one in circles if one.find("{http://www.w3.org/2000/svg}title") is not None]) == 220


def test_the_chart_asks_for_nothing_from_elsewhere() -> None:
    assert "http" not in scatter_svg(SEEN, HELD_OUT).replace("http://www.w3.org/2000/svg", "")


def test_every_run_that_is_far_off_has_its_reason() -> None:
    far = [one.run.run_id for one in COMPARISONS if one.error is not None and abs(one.error) >= FAR]
    assert [run_id for run_id in far if known_reason(run_id) is None] == []


def test_groups_are_those_of_the_errors() -> None:
    names = sorted({group_of(one) for one in COMPARISONS})
    assert names == ["dense, 16 bits", "dense, fewer bits", "mixtures of experts"]
