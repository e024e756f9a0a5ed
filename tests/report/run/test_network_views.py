"""The network of a run on the terminal, in the document and on the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from corral.forecast.fabric.run_network import NetworkOutlook, network_outlook
from corral.forecast.training.run_forecast import forecast_run
from corral.report.charts.all_reduce_chart import over_sizes, size_words
from corral.report.charts.line_plots import Line
from corral.report.run.network_summary import algorithm_rows, network_facts
from corral.report.run.run_json import network_document
from corral.report.sections.network_section import network_section
from corral.spec.yaml.run_files import read_run
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT

RISING = Line(name="rising", points=((2.0**20, 10.0), (2.0**24, 100.0), (2.0**30, 340.0)))
DOTS = Line(name="<measured>", points=((2.0**20, 20.0), (2.0**30, 400.0)), joined=False, tips=("a", "b"))


@pytest.fixture(scope="module")
def network() -> NetworkOutlook:
    """8B on the sixteen machines of the shipped `train`."""
    spec = read_run(Path(PROJECT, "examples/runs/llama3-8b.yaml"), read_environment(PROJECT, "train"))
    found = network_outlook(spec, forecast_run(spec).job)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def facts(network: NetworkOutlook) -> dict[str, str]:
    return dict(network_facts(network))


def picture() -> ElementTree.Element:
    return ElementTree.fromstring(over_sizes("Bus", [RISING, DOTS], y_words="GB/s"))


def test_gradients_of_a_mixture_exclude_experts(network: NetworkOutlook) -> None:
    facts = dict(network_facts(replace(network, mixture=True)))
    assert facts["gradients"].startswith("32.1 GB per rank, without its experts, reduced among")


def test_bisection_is_the_rate_of_half_the_cards(facts: dict[str, str]) -> None:
    assert facts["bisection"] == "3.2 TB/s each way between two halves of the nodes"


def test_network_without_a_taper_is_shown_as_such(facts: dict[str, str]) -> None:
    assert facts["taper"] == "none: all nodes can send at full rate at once"


def test_failed_card_is_shown_with_the_time_of_the_gradients(facts: dict[str, str]) -> None:
    assert facts["failed card"] == (
        "all nodes wait: network time x 1.03 to x 1.33, 0.157 to 0.201 s for the gradients;"
        " the run keeps 100.0% to 99.5% of its speed"
    )


def test_two_leaves_are_shown_with_and_without_a_taper(network: NetworkOutlook) -> None:
    crossing = "12.5% of a ring's steps cross leaves with ranks in order, 53% in random order"
    assert [text for name, text in network_facts(network) if name in ("two leaves", "")] == [
        f"as fast as one; {crossing}",
        "with a taper of 4 : 1: 1.0 times slower with ranks in order, 2.1 times in random order",
    ]


def test_each_algorithm_has_a_row(network: NetworkOutlook) -> None:
    assert [row[0] for row in algorithm_rows(network)] == ["ring", "tree", "hierarchical", "measured share"]


def test_the_document_has_bytes_and_seconds(network: NetworkOutlook) -> None:
    document = json.loads(json.dumps(network_document(network)))
    assert (document["bisection_bytes_per_s"], document["switches"], len(document["all_reduce"])) == (
        3.2e12,
        {"leaves": 32, "spines": 0, "cores": 0},
        10,
    )


def test_the_section_has_the_figures_of_its_picture(network: NetworkOutlook) -> None:
    section = network_section(network)
    assert (section.anchor, section.tables[0].rows[0][0], section.tables[0].rows[-1][0]) == (
        "network",
        "64 KiB",
        "16 GiB",
    )
    assert "16 GiB 487.1" in section.lines[-1]


def test_picture_has_a_line_per_algorithm_and_the_measured_points(network: NetworkOutlook) -> None:
    drawn = ElementTree.fromstring(network_section(network).pictures[0].wide)
    lines = [one for one in drawn.iter("path") if str(one.get("class")).startswith("line")]
    dots = [one for one in drawn.iter("rect") if one.find("title") is not None]
    assert (len(lines), len(dots)) == (4, 8)


def test_line_follows_its_points_from_left_to_right() -> None:
    (line,) = [one.get("d", "") for one in picture().iter("path") if str(one.get("class")).startswith("line")]
    across = [float(x) for x in re.findall(r"[ML]([\d.]+)", line)]
    # From 62 to 706, at 0, 4 and 10 of 10 doublings.
    assert across == [62.0, 319.6, 706.0]


def test_the_axis_begins_at_zero_and_ends_at_a_round_number() -> None:
    marks = [one.text for one in picture().iter("text") if one.get("text-anchor") == "end"]
    assert marks == ["0", "50", "100", "150", "200", "250", "300", "350", "400"]


def test_every_line_is_in_the_legend_and_names_are_escaped() -> None:
    assert [one.text for one in picture().iter("text")][-2:] == ["rising", "<measured>"]


@pytest.mark.parametrize(
    ("size", "words"), [(8.0, "8 B"), (2.0**16, "64 KiB"), (2.0**34, "16 GiB"), (2.0**44, "16 TiB")]
)
def test_sizes_have_their_unit(size: float, words: str) -> None:
    assert size_words(size) == words
