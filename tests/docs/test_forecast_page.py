"""docs/forecast.md and its chart: every run has a point, and every large error a reason."""

from __future__ import annotations

from xml.etree import ElementTree

from tools.docs.forecast import FAR
from tools.docs.scatter import group_of, scatter_svg

from corral.catalog.accelerators.training_outliers import known_reason
from corral.forecast.published.speed_validation import PublishedTable, compare_speeds, shipped_runs

TABLES = {table: compare_speeds(shipped_runs(table)) for table in PublishedTable}
IN_SAMPLE = [*TABLES[PublishedTable.FIRST], *TABLES[PublishedTable.SECOND]]
HELD_OUT = TABLES[PublishedTable.HELD_OUT]
COMPARISONS = [*IN_SAMPLE, *HELD_OUT]


def test_chart_has_a_point_for_every_run_with_a_reported_speed() -> None:
    root = ElementTree.fromstring(scatter_svg(IN_SAMPLE, HELD_OUT))
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len([one for one in circles if one.find("{http://www.w3.org/2000/svg}title") is not None]) == 220


def test_chart_references_no_other_file() -> None:
    assert "http" not in scatter_svg(IN_SAMPLE, HELD_OUT).replace("http://www.w3.org/2000/svg", "")


def test_every_run_with_a_large_error_has_a_reason() -> None:
    far = [one.run.run_id for one in COMPARISONS if one.error is not None and abs(one.error) >= FAR]
    assert [run_id for run_id in far if known_reason(run_id) is None] == []


def test_groups_are_those_of_the_error_table() -> None:
    names = sorted({group_of(one) for one in COMPARISONS})
    assert names == ["dense, 16 bits", "dense, fewer bits", "mixtures of experts"]
