"""Lines and points on axes: where they are drawn, and that every picture can be read."""

from __future__ import annotations

from xml.etree import ElementTree

from corral.report.plots import Axis, Dot, Line, Mark, log_axis, log_ticks, plot

X = Axis(words="x", low=0.0, high=10.0, ticks=(0.0, 5.0, 10.0), shown=lambda at: f"{at:g}")
Y = log_axis("y", 1.0, 10_000.0, lambda at: f"{at:g}")
RISING = Line(name="rising", points=((0.0, 1.0), (10.0, 10_000.0)))


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words(svg: str) -> list[str]:
    return [one.text or "" for one in parsed(svg).iter("text")]


def test_a_line_goes_from_corner_to_corner() -> None:
    (line,) = [one for one in parsed(plot("t", X, Y, (RISING,))).iter("path") if one.get("class") == "line l0"]
    assert line.get("d") == "M62.0 230.0L706.0 26.0"


def test_half_of_a_logarithmic_axis_is_the_square_root() -> None:
    assert Y.part(100.0) == 0.5


def test_what_is_beyond_an_axis_is_at_its_end() -> None:
    assert (Y.part(0.5), Y.part(1e9)) == (0.0, 1.0)


def test_many_decades_are_marked_at_powers_of_ten() -> None:
    assert log_ticks(0.05, 1000.0) == (0.1, 1.0, 10.0, 100.0, 1000.0)


def test_few_decades_are_marked_in_between_as_well() -> None:
    assert log_ticks(40.0, 600.0) == (50.0, 100.0, 200.0, 500.0)


def test_words_of_ticks_that_would_meet_are_left_out() -> None:
    crowded = Axis(words="x", low=0.0, high=10.0, ticks=tuple(float(at) for at in range(11)), shown=lambda at: "9" * 9)
    assert words(plot("t", crowded, Y, (RISING,), width=340)).count("9" * 9) == 4


def test_one_line_needs_no_legend() -> None:
    assert "rising" not in words(plot("t", X, Y, (RISING,)))


def test_two_lines_are_named() -> None:
    other = Line(name="other", points=RISING.points, dashed=True)
    assert words(plot("t", X, Y, (RISING, other)))[-2:] == ["rising", "other"]


def test_numbers_of_points_at_one_place_stand_below_each_other() -> None:
    dots = [Dot(x=5.0, y=100.0, name=name, words=name) for name in "ab"]
    numbers = [one for one in parsed(plot("t", X, Y, (RISING,), dots=dots)).iter("text") if one.text in ("1", "2")]
    assert [float(one.get("y", "")) for one in numbers if one.get("class") is None] == [149.0, 166.0]


def test_points_are_named_by_their_numbers() -> None:
    dots = [Dot(x=5.0, y=100.0, name=name, words=name) for name in "ab"]
    assert words(plot("t", X, Y, (RISING,), dots=dots))[-2:] == ["1: a", "2: b"]


def test_a_mark_near_the_right_edge_has_its_words_on_the_left() -> None:
    (text,) = [one for one in parsed(plot("t", X, Y, (RISING,), marks=(Mark(x=9.0, words="best"),))).iter("text")
               if one.text == "best"]  # fmt: skip
    assert text.get("text-anchor") == "end"
