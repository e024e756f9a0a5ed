"""Lines and points on axes: geometry, and legible labels."""

from __future__ import annotations

from xml.etree import ElementTree

from corral.report.charts.line_plots import Axis, AxisMark, Dot, Line, log_axis, log_ticks, plot

X = Axis(words="x", low=0.0, high=10.0, ticks=(0.0, 5.0, 10.0), shown=lambda at: f"{at:g}")
Y = log_axis("y", 1.0, 10_000.0, lambda at: f"{at:g}")
RISING = Line(name="rising", points=((0.0, 1.0), (10.0, 10_000.0)))


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def words(svg: str) -> list[str]:
    return [one.text or "" for one in parsed(svg).iter("text")]


def test_rising_line_goes_from_lower_left_to_upper_right() -> None:
    (line,) = [one for one in parsed(plot("t", X, Y, (RISING,))).iter("path") if one.get("class") == "line l0"]
    (left, bottom), (right, top) = (map(float, point.split()) for point in line.get("d", "").lstrip("M").split("L"))
    width, height = map(float, parsed(plot("t", X, Y, (RISING,))).get("viewBox", "").split()[2:])
    assert 0 < left < width / 4 < width * 3 / 4 < right < width
    assert 0 < top < height / 4 < height * 3 / 4 < bottom < height


def test_half_of_a_logarithmic_axis_is_the_square_root() -> None:
    assert Y.part(100.0) == 0.5


def test_values_beyond_an_axis_are_clamped() -> None:
    assert (Y.part(0.5), Y.part(1e9)) == (0.0, 1.0)


def test_many_decades_have_ticks_at_powers_of_ten() -> None:
    assert log_ticks(0.05, 1000.0) == (0.1, 1.0, 10.0, 100.0, 1000.0)


def test_few_decades_have_intermediate_ticks() -> None:
    assert log_ticks(40.0, 600.0) == (50.0, 100.0, 200.0, 500.0)


def test_overlapping_tick_labels_are_omitted() -> None:
    crowded = Axis(words="x", low=0.0, high=10.0, ticks=tuple(float(at) for at in range(11)), shown=lambda at: "9" * 9)
    assert words(plot("t", crowded, Y, (RISING,), width=340)).count("9" * 9) == 4


def test_one_line_needs_no_legend() -> None:
    assert "rising" not in words(plot("t", X, Y, (RISING,)))


def test_two_lines_are_named() -> None:
    other = Line(name="other", points=RISING.points, dashed=True)
    assert words(plot("t", X, Y, (RISING, other)))[-2:] == ["rising", "other"]


def test_numbers_of_coinciding_points_are_stacked() -> None:
    dots = [Dot(x=5.0, y=100.0, name=name, words=name) for name in "ab"]
    numbers = [one for one in parsed(plot("t", X, Y, (RISING,), dots=dots)).iter("text") if one.text in ("1", "2")]
    first, second = ((one.get("x"), float(one.get("y", ""))) for one in numbers if one.get("class") is None)
    assert (first[0] == second[0], second[1] - first[1] > 12.0) == (True, True)  # letters are 12 tall


def test_numbered_points_are_named_in_the_key() -> None:
    dots = [Dot(x=5.0, y=100.0, name=name, words=name) for name in "ab"]
    assert words(plot("t", X, Y, (RISING,), dots=dots))[-2:] == ["1: a", "2: b"]


def test_mark_near_the_right_edge_has_its_label_on_the_left() -> None:
    (text,) = [one for one in parsed(plot("t", X, Y, (RISING,), marks=(AxisMark(x=9.0, words="best"),))).iter("text")
               if one.text == "best"]  # fmt: skip
    assert text.get("text-anchor") == "end"
