"""Nested boxes: they wrap, stay inside each other, and show the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest

from corral.catalog.aws.instance_types import find_instance_type
from corral.model.cluster import NicPlan
from corral.model.enums import InterfaceType
from corral.report.diagrams.boxes import DiagramBox, Squares, drawing, height
from corral.report.diagrams.environment_diagram import environment_boxes
from corral.report.diagrams.nic_diagram import node_box
from worked_example import BASE, CLUSTER, QUEUE

THREE = DiagramBox(kind="vpc", title="V", rows=(tuple(DiagramBox(kind="zone", title=name) for name in "abc"),))


def rectangles(svg: str, kind: str) -> list[tuple[float, ...]]:
    """Left, top, right, bottom of every box of this kind."""
    found = [one for one in ElementTree.fromstring(svg).iter("rect") if one.get("class") == f"box box-{kind}"]
    sides = [tuple(float(one.get(name, "")) for name in ("x", "y", "width", "height")) for one in found]
    return [(x, y, x + width, y + tall) for x, y, width, tall in sides]


def titles(boxes: tuple[DiagramBox, ...]) -> Iterator[str]:
    """The titles of all boxes, from the outside in."""
    for box in boxes:
        yield box.title
        for row in box.rows:
            yield from titles(row)


def within(boxes: tuple[DiagramBox, ...], title: str) -> list[str]:
    """The titles in the box of this title."""
    for box in boxes:
        if box.title == title:
            return [one for row in box.rows for one in titles(row)]
        for row in box.rows:
            if found := within(row, title):
                return found
    return []


def test_boxes_are_next_to_each_other_on_a_wide_page() -> None:
    assert len({top for _, top, _, _ in rectangles(drawing("t", (THREE,), 720), "zone")}) == 1


def test_boxes_are_stacked_on_a_narrow_page() -> None:
    assert len({left for left, _, _, _ in rectangles(drawing("t", (THREE,), 340), "zone")}) == 1


@pytest.mark.parametrize("width", [340, 720])
def test_boxes_do_not_overlap_and_stay_inside(width: int) -> None:
    svg = drawing("t", environment_boxes(BASE, CLUSTER), width)
    zones, (vpc,) = rectangles(svg, "zone"), rectangles(svg, "vpc")
    apart = [a[2] <= b[0] or a[3] <= b[1] or b[3] <= a[1] for a, b in combinations(zones, 2)]
    inside = [vpc[0] < zone[0] and vpc[1] < zone[1] and zone[2] < vpc[2] and zone[3] < vpc[3] for zone in zones]
    assert (apart, inside) == ([True], [True, True])


def test_long_line_wraps_and_makes_the_box_taller() -> None:
    long = DiagramBox(kind="queue", title="q", lines=("word " * 20,))
    assert height(long, 200) > height(DiagramBox(kind="queue", title="q", lines=("word",)), 200)
    lines = [one.text for one in ElementTree.fromstring(drawing("t", (long,), 200)).iter("text")][1:]
    assert (len(lines) > 1, " ".join(filter(None, lines)).split()) == (True, ["word"] * 20)


def test_square_stands_for_16_of_a_thousand_nodes() -> None:
    svg = drawing("t", (DiagramBox(kind="queue", title="q", squares=Squares(count=1000, filled=17)),), 720)
    assert (svg.count('class="full"'), svg.count('class="open"')) == (2, 61)


def test_drawing_shows_the_nodes_per_square() -> None:
    cluster = replace(CLUSTER, queues=(replace(QUEUE, max_nodes=1000),))
    assert "one square: 16 nodes" in drawing("t", environment_boxes(BASE, cluster), 720)


def test_names_are_escaped() -> None:
    svg = drawing("t", (DiagramBox(kind="queue", title="<script>", lines=("a&b",)),), 720)
    assert re.findall(r"<script>|a&b", svg) == []


def test_queue_appears_in_each_zone_of_its_offers() -> None:
    there = replace(QUEUE.offers[0], key="other", zone_id="use1-az2")
    cluster = replace(CLUSTER, queues=(replace(QUEUE, offers=(*QUEUE.offers, there)),))
    boxes = environment_boxes(BASE, cluster)
    assert [within(boxes, f"Zone {zone.zone_id}") for zone in BASE.zones] == [
        ["Head head-dev", "Queue train", "Lustre scratch", "/home"],
        ["Queue train", "/home"],
    ]


def test_existing_vpc_has_no_gateway_in_the_diagram() -> None:
    adopted = replace(BASE, adopted_vpc="vpc-1", vpc_cidr=None, public=None, interface_endpoints=())
    assert [one for one in titles(environment_boxes(adopted, CLUSTER)) if "ateway" in one or "VPC" in one] == [
        "VPC vpc-1, existing"
    ]


def test_each_accelerator_has_its_share_of_the_cards() -> None:
    nics = tuple(NicPlan(card=card, device=0, interface_type=InterfaceType.EFA_ONLY) for card in range(1, 17))
    box = node_box(replace(QUEUE, nics=(QUEUE.nics[0], *nics)))
    assert list(titles((box,)))[:6] == [
        "A node of queue train: p4d.24xlarge",
        "card 0",
        "gpu 0: a100",
        "cards 1-2",
        "gpu 1: a100",
        "cards 3-4",
    ]


def test_cards_that_do_not_divide_evenly_are_listed_separately() -> None:
    assert list(titles((node_box(QUEUE),)))[1:] == ["card 0", "card 0", "card 1"]


def test_node_shows_its_network_from_the_catalog() -> None:
    assert node_box(QUEUE, find_instance_type("p4d.24xlarge")).lines[0] == "network 400 Gb/s over 4 cards"
