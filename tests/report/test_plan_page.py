"""The page of a plan and of a run: everything is in it, and nothing is fetched."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from corral.forecast.capacity import pool_counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.notes import notes
from corral.forecast.whole.run import forecast_whole
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.report.plan_page import page
from corral.spec.files import read_environment
from corral.spec.run_files import read_run
from environments import PROJECT
from worked_example import BASE, CLUSTER, RoundPrices


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
        if tag != "meta" and tag not in ("path", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect"):
            assert self.open.pop() == tag


def tags(text: str) -> Tags:
    found = Tags()
    found.feed(text)
    return found


@pytest.fixture(scope="module")
def run_page() -> str:
    """8B on the shipped `train`."""
    environment = read_environment(PROJECT, "train")
    base = plan_base(environment.base)
    cluster = plan_cluster(environment.cluster, base)
    prices, counts = catalogue_prices(cluster.region), pool_counts(environment.cluster)
    cost = forecast_cost(base, cluster, prices, counts)
    spec = read_run(Path(PROJECT, "examples/runs/llama3-8b.yaml"), environment)
    whole = forecast_whole(spec, base, cluster, cost, prices, counts)
    return page(base, cluster, cost, notes(base, cluster, prices, counts), whole)


def test_a_run_has_a_section_for_each_thing_that_people_ask(run_page: str) -> None:
    assert tags(run_page).sections == [
        "layout", "memory", "speed", "time", "money", "checkpoints", "mind", "assumed",
        "queues", "cost", "places", "notes",
    ]  # fmt: skip


def test_every_section_is_linked(run_page: str) -> None:
    found = tags(run_page)
    assert found.links == [f"#{name}" for name in found.sections]


def test_everything_that_opens_closes(run_page: str) -> None:
    assert tags(run_page).open == []


def test_nothing_is_fetched(run_page: str) -> None:
    assert re.findall(r"(?:src=|url\(|@import|https?://)[^\s]*", run_page) == []


def test_a_plan_without_a_run_is_a_page_as_well() -> None:
    text = page(BASE, CLUSTER, forecast_cost(BASE, CLUSTER, RoundPrices()), ())
    assert tags(text).sections == ["queues", "cost", "places"]
    assert f"<h1>Environment {CLUSTER.name}</h1>" in text
