"""Charts as SVG: where things are drawn, and that nothing a user wrote can break out of them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from corral.report.charts import NARROW, Part, Range, ranges, stacked

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


def test_a_part_of_a_colour_has_it_in_the_bar_and_in_the_legend() -> None:
    parts = [Part(name="a", value=1.0, words="a", colour="idle"), Part(name="b", value=1.0, words="b")]
    assert [one.get("class") for one in parsed(stacked("t", parts)).iter("rect")] == ["idle", "c1", "idle", "c1"]


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


def test_words_cannot_break_out() -> None:
    svg = stacked("<script>", [Part(name="<b>&", value=1.0, words='"><script>')])
    assert (parsed(svg).findtext("title"), "<script>" in svg) == ("<script>", False)


def test_a_narrow_picture_has_less_room_and_no_smaller_letters() -> None:
    found = [Range(name="x", low=1, high=2, words="1 - 2")]
    assert [parsed(ranges("t", found, width=width)).get("viewBox", "") for width in (720, 340)] == [
        "0 0 720 44",
        "0 0 340 54",
    ]


def test_words_that_are_too_long_for_a_narrow_picture_are_two_lines() -> None:
    long = Range(name="p4d.24xlarge us-west-2 capacity-block", low=1.0, high=2.0, words="192,066.78 - 207,419.99 USD")
    lines = re.findall(r'<text x="0" y="(\d+)">(.*?)</text>', ranges("Cost", [long], width=NARROW))
    assert lines == [("14", "p4d.24xlarge us-west-2 capacity-block:"), ("29", "192,066.78 - 207,419.99 USD")]


def test_a_long_name_has_a_line_of_a_narrow_legend_for_itself() -> None:
    long = [Part(name="exchange of gradients and weights", value=1.0, words="x"), *PARTS]
    assert [one.get("x") for one in parsed(stacked("t", long, width=340)).iter("text")] == ["18", "18", "18"]


def test_long_words_beside_a_bar_make_it_shorter() -> None:
    short, long = (widths(ranges("t", [Range(name="x", low=0, high=1, words=words)]))[0] for words in ("1", "1" * 50))
    assert round(short - long) == round(49 * 7.1)
