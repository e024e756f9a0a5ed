"""The page of a plan and of a run: everything is in it, and nothing is fetched."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from corral.forecast.cost import forecast_cost
from corral.report.plan_page import page
from shipped_run import shipped_plan
from worked_example import BASE, CLUSTER, RoundPrices

EMPTY = ("meta", "link", "path", "rect", "circle")


class Tags(HTMLParser):
    """What opens and closes, and which sections there are."""

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
    return page(found.base, found.cluster, found.cost, found.notes, found.whole)


def test_a_run_has_a_section_for_each_thing_that_people_ask(run_page: str) -> None:
    assert tags(run_page).sections == [
        "layout", "memory", "speed", "roofline", "scaling", "network", "interruptions",
        "time", "money", "checkpoints", "data", "power", "mind", "assumed",
        "environment", "nics", "cost", "quotas", "notes",
    ]  # fmt: skip


def test_the_figure_on_top_is_that_of_the_market_that_is_tried_first(run_page: str) -> None:
    assert "USD, capacity-block" in run_page[: run_page.index("<section")]


def test_the_memory_that_is_kept_free_is_among_what_is_assumed(run_page: str) -> None:
    assert "6 GiB + 5% of the rest" in run_page


def test_the_content_and_every_section_are_linked(run_page: str) -> None:
    found = tags(run_page)
    assert found.links == ["#content", *(f"#{name}" for name in found.sections)]


def test_every_table_has_a_caption(run_page: str) -> None:
    assert run_page.count("<caption>") == run_page.count("<table>")


def test_every_row_of_a_table_says_what_it_is_about(run_page: str) -> None:
    bodies = re.findall(r"<tbody>(.*?)</tbody>", run_page, flags=re.DOTALL)
    assert [body for body in bodies if body.count("<tr>") != body.count('<tr><th scope="row">')] == []


def test_what_scrolls_sideways_is_reached_by_the_keyboard(run_page: str) -> None:
    boxes = re.findall(r'<div class="scroll"[^>]*>', run_page)
    assert [box for box in boxes if 'role="region"' not in box or 'tabindex="0"' not in box] == []


def test_everything_that_opens_closes(run_page: str) -> None:
    assert tags(run_page).open == []


def test_nothing_is_fetched(run_page: str) -> None:
    assert re.findall(r"(?:src=|url\(|@import|https?://)[^\s]*", run_page) == []


def test_a_plan_without_a_run_is_a_page_as_well() -> None:
    text = page(BASE, CLUSTER, forecast_cost(BASE, CLUSTER, RoundPrices()), ())
    assert tags(text).sections == ["environment", "nics", "cost", "quotas"]
    assert f"<h1>Environment {CLUSTER.name}</h1>" in text


def section(text: str, anchor: str) -> str:
    """One section of the page."""
    return text.partition(f'<section id="{anchor}"')[2].partition("</section>")[0]


def test_every_figure_that_is_assumed_has_a_source(run_page: str) -> None:
    rows = re.findall(r"<tr>(.*?)</tr>", section(run_page, "assumed").partition("<tbody>")[2])
    assert (len(rows) > 10, [row for row in rows if row.endswith("<td></td>")]) == (True, [])


def test_a_dense_run_rests_on_no_figure_of_experts(run_page: str) -> None:
    assert re.findall("routing|experts", section(run_page, "assumed")) == []


def test_every_picture_is_drawn_for_a_page_and_for_a_telephone(run_page: str) -> None:
    widths = re.findall(r'<svg viewBox="0 0 (\d+) ', run_page)
    assert (widths.count("720"), widths.count("340")) == (13, 13)


def test_the_roofline_shows_the_works_of_its_table(run_page: str) -> None:
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


def test_sources_of_prices_are_told_once_each(run_page: str) -> None:
    listed = re.findall(r"<li>(\[\d+\]) ", section(run_page, "cost"))
    marked = set(re.findall(r">(\[\d+\])<", section(run_page, "cost")))
    assert (listed, marked) == (sorted(set(listed)), set(listed))
