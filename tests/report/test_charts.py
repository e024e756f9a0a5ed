"""Charts as SVG: where things are drawn, and that nothing a user wrote can break out of them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from corral.report.charts import Part, Range, curve, ranges, stacked

SVG = "{http://www.w3.org/2000/svg}"
PARTS = [Part(name="a", value=30.0, words="a: 30"), Part(name="b", value=10.0, words="b: 10")]


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def widths(svg: str) -> list[float]:
    """Of the bars that say something when they are pointed at."""
    return [float(one.get("width", "0")) for one in parsed(svg).iter("rect") if one.find("title") is not None]


def test_parts_are_as_wide_as_their_share() -> None:
    first, second = widths(stacked("t", PARTS))
    assert round(first / second, 2) == 3.0


def test_a_limit_beyond_the_parts_makes_them_narrower() -> None:
    assert sum(widths(stacked("t", PARTS, limit=80.0))) < sum(widths(stacked("t", PARTS)))


def test_every_part_is_named_in_the_legend() -> None:
    assert [one.text for one in parsed(stacked("t", PARTS)).iter("text")] == ["a", "b"]


def test_a_picture_has_a_title_for_who_does_not_see_it() -> None:
    picture = parsed(stacked("Memory", PARTS))
    assert (picture.get("role"), picture.get("aria-label"), picture.findtext("title")) == ("img", "Memory", "Memory")


def test_a_range_without_an_end_goes_to_the_edge() -> None:
    bounded, open_ended = widths(
        ranges(
            "t", [Range(name="x", low=1, high=2, words="1 - 2"), Range(name="y", low=1, high=None, words="1 or more")]
        )
    )
    assert open_ended == bounded


def test_a_curve_is_drawn_from_the_first_point_to_the_last() -> None:
    svg = curve("t", [(10.0, 0.5), (100.0, 0.9), (1000.0, 0.6)], x_words="x", y_words="y", marked=[(100.0, "best")])
    (line,) = [one for one in parsed(svg).iter("path") if one.get("class") == "line"]
    assert len(re.findall(r"[ML]", line.get("d", ""))) == 3


def test_words_cannot_break_out() -> None:
    svg = stacked("<script>", [Part(name="<b>&", value=1.0, words='"><script>')])
    assert (parsed(svg).findtext("title"), "<script>" in svg) == ("<script>", False)
