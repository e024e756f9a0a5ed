"""Tables on a terminal: column widths, wrapped headers aligned to the bottom, a total row."""

import io

from rich.console import Console

from corral.report.tables import table


def drawn(width: int, *, colour: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, markup=False, emoji=False)
    rows = [("a volume of the head", "1.00"), ("arn:aws:a-long-id", "20.00")]
    console.print(table(("", ">USD a month"), rows, total=("2 in all", "21.00")), crop=False)
    return out.getvalue().splitlines()


def test_table_is_as_wide_as_its_text() -> None:
    assert drawn(80) == [
        "                         USD a month",
        "  ──────────────────────────────────",
        "  a volume of the head          1.00",
        "  arn:aws:a-long-id            20.00",
        "",
        "  2 in all                     21.00",
    ]


def test_narrow_table_wraps_only_between_words() -> None:
    assert drawn(28) == [
        "                       USD a",
        "                       month",
        "  ──────────────────────────",
        "  a volume of the       1.00",
        "  head",
        "  arn:aws:a-long-id    20.00",
        "",
        "  2 in all             21.00",
    ]


def test_names_are_dim_and_the_total_is_bold() -> None:
    lines = drawn(80, colour=True)
    assert (lines[0].count("\x1b[2m"), lines[-1].count("\x1b[1m"), lines[2].count("\x1b")) == (1, 1, 0)
