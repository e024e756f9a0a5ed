"""The page of a plan and of a run: its sections; it loads nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from corral.forecast.cost.environment_cost import forecast_cost
from corral.report.pages.plan_page import plan_page
from shipped_run import shipped_plan
from worked_example import BASE, CLUSTER, RoundPrices

EMPTY = ("meta", "link", "path", "rect", "circle")


class Tags(HTMLParser):
    """Collects the open tags and the sections."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sections: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "section":
            self.sections.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given["href"]))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag


def tags(text: str) -> Tags:
    found = Tags()
    found.feed(text)
    return found


@pytest.fixture(scope="module")
def run_page() -> str:
    """8B on the shipped `train`."""
    found = shipped_plan()
    return plan_page(found.base, found.cluster, found.cost, found.warnings, found.run)


def test_run_page_has_a_section_per_subject(run_page: str) -> None:
    assert tags(run_page).sections == [
        "layout", "memory", "speed", "roofline", "scaling", "network", "interruptions",
        "time", "money", "checkpoints", "data", "power", "run-warnings", "assumed",
        "environment", "nics", "cost", "quotas", "warnings",
    ]  # fmt: skip


def test_cards_show_the_market_that_is_tried_first(run_page: str) -> None:
    assert "USD, capacity-block" in run_page[: run_page.index("<section")]


def test_reserved_memory_is_among_the_assumptions(run_page: str) -> None:
    assert "6 GiB + 5% of the rest" in run_page


def test_every_section_is_linked_from_the_contents(run_page: str) -> None:
    found = tags(run_page)
    assert found.links == ["#content", *(f"#{name}" for name in found.sections)]


def test_every_table_has_a_caption(run_page: str) -> None:
    assert run_page.count("<caption>") == run_page.count("<table>")


def test_every_table_row_has_a_header(run_page: str) -> None:
    bodies = re.findall(r"<tbody>(.*?)</tbody>", run_page, flags=re.DOTALL)
    assert [body for body in bodies if body.count("<tr>") != body.count('<tr><th scope="row">')] == []


def test_scrolling_tables_are_reachable_by_keyboard(run_page: str) -> None:
    boxes = re.findall(r'<div class="scroll"[^>]*>', run_page)
    assert [box for box in boxes if 'role="region"' not in box or 'tabindex="0"' not in box] == []


def test_every_tag_is_closed(run_page: str) -> None:
    assert tags(run_page).open == []


def test_page_loads_nothing(run_page: str) -> None:
    assert re.findall(r"(?:src=|url\(|@import|https?://)[^\s]*", run_page) == []


def test_plan_without_a_run_has_a_page() -> None:
    text = plan_page(BASE, CLUSTER, forecast_cost(BASE, CLUSTER, RoundPrices()), ())
    assert tags(text).sections == ["environment", "nics", "cost", "quotas"]
    assert f"<h1>Environment {CLUSTER.name}</h1>" in text


def section(text: str, anchor: str) -> str:
    """One section of the page."""
    return text.partition(f'<section id="{anchor}"')[2].partition("</section>")[0]


def test_every_assumed_figure_has_a_source(run_page: str) -> None:
    rows = re.findall(r"<tr>(.*?)</tr>", section(run_page, "assumed").partition("<tbody>")[2])
    assert (len(rows) > 10, [row for row in rows if row.endswith("<td></td>")]) == (True, [])


def test_dense_run_lists_no_figures_of_experts(run_page: str) -> None:
    assert re.findall("routing|experts", section(run_page, "assumed")) == []


def test_every_picture_has_a_wide_and_a_narrow_version(run_page: str) -> None:
    widths = re.findall(r'<svg viewBox="0 0 (\d+) ', run_page)
    assert (widths.count("720"), widths.count("340")) == (13, 13)


def test_roofline_shows_the_work_of_its_table(run_page: str) -> None:
    assert re.findall(r'<th scope="row">(\d: [^<]*)</th>', section(run_page, "roofline")) == [
        "1: matrix products",
        "2: attention",
        "3: output and loss",
        "4: residual sums",
        "5: a whole layer",
    ]


def test_the_runs_own_nodes_are_marked_in_the_scaling_table(run_page: str) -> None:
    assert re.findall(r'<th scope="row">([^<]*)</th>', section(run_page, "scaling")) == [
        "1", "2", "4", "8", "16 (this run)", "32", "64",
    ]  # fmt: skip


def test_each_price_source_is_listed_once(run_page: str) -> None:
    listed = re.findall(r"<li>(\[\d+\]) ", section(run_page, "cost"))
    marked = set(re.findall(r">(\[\d+\])<", section(run_page, "cost")))
    assert (listed, marked) == (sorted(set(listed)), set(listed))
