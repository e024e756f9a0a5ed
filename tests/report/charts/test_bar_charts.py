"""Charts as SVG: geometry, and escaping of labels."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from corral.report.charts.bar_charts import NARROW, Part, Range, ranges, stacked

PARTS = [Part(name="a", value=30.0, words="a: 30"), Part(name="b", value=10.0, words="b: 10")]


LETTERS_TALL = 12.0


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def size(svg: str) -> tuple[float, float]:
    """Width and height."""
    _, _, width, height = map(float, parsed(svg).get("viewBox", "").split())
    return width, height


def widths(svg: str) -> list[float]:
    """The widths of the bars with a tooltip."""
    return [float(one.get("width", "0")) for one in parsed(svg).iter("rect") if one.find("title") is not None]


def test_width_of_a_part_is_its_share() -> None:
    first, second = widths(stacked("t", PARTS))
    assert round(first / second, 2) == 3.0


def test_limit_above_the_sum_makes_parts_narrower() -> None:
    assert sum(widths(stacked("t", PARTS, limit=80.0))) < sum(widths(stacked("t", PARTS)))


def test_every_part_is_named_in_the_legend() -> None:
    assert [one.text for one in parsed(stacked("t", PARTS)).iter("text")] == ["a", "b"]


def test_colour_of_a_part_is_used_in_bar_and_legend() -> None:
    parts = [Part(name="a", value=1.0, words="a", colour="idle"), Part(name="b", value=1.0, words="b")]
    assert [one.get("class") for one in parsed(stacked("t", parts)).iter("rect")] == ["idle", "c1", "idle", "c1"]


def test_picture_has_a_title_for_screen_readers() -> None:
    picture = parsed(stacked("Memory", PARTS))
    assert (picture.get("role"), picture.get("aria-label"), picture.findtext("title")) == ("img", "Memory", "Memory")


def test_unbounded_range_reaches_the_edge() -> None:
    bounded, open_ended = widths(
        ranges(
            "t", [Range(name="x", low=1, high=2, words="1 - 2"), Range(name="y", low=1, high=None, words="1 or more")]
        )
    )
    assert open_ended == bounded


def test_labels_are_escaped() -> None:
    svg = stacked("<script>", [Part(name="<b>&", value=1.0, words='"><script>')])
    assert (parsed(svg).findtext("title"), "<script>" in svg) == ("<script>", False)


def test_narrow_picture_keeps_the_letter_size() -> None:
    found = [Range(name="x", low=1, high=2, words="1 - 2")]
    (wide, low), (narrow, tall) = (size(ranges("t", found, width=width)) for width in (720, 340))
    assert (wide, narrow, low < tall) == (720.0, 340.0, True)


def test_label_too_long_for_a_narrow_picture_takes_two_lines() -> None:
    long = Range(name="p4d.24xlarge us-west-2 capacity-block", low=1.0, high=2.0, words="192,066.78 - 207,419.99 USD")
    above, below = parsed(ranges("Cost", [long], width=NARROW)).iter("text")
    assert (above.text, below.text) == ("p4d.24xlarge us-west-2 capacity-block:", "192,066.78 - 207,419.99 USD")
    assert float(below.get("y", "")) - float(above.get("y", "")) > LETTERS_TALL


def test_long_name_has_its_own_line_in_a_narrow_legend() -> None:
    long = [Part(name="exchange of gradients and weights", value=1.0, words="x"), *PARTS]
    tops = [float(one.get("y", "")) for one in parsed(stacked("t", long, width=340)).iter("text")]
    assert [below - above > LETTERS_TALL for above, below in pairwise(tops)] == [True, True]


def test_long_label_makes_the_bar_shorter() -> None:
    short, long = (widths(ranges("t", [Range(name="x", low=0, high=1, words=words)]))[0] for words in ("1", "1" * 50))
    assert 0 < long < short
