"""Tables between the marks of a page: `<!-- table: images -->` to `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

_TABLE = re.compile(r"(?<=<!-- table: )(\w+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str, tables: Mapping[str, str]) -> str:
    """Return the page with these tables, by name, between its marks."""
    return _TABLE.sub(lambda mark: f"{mark[1]}{mark[2]}{tables[mark[1]]}", page)


def table(rows: Iterator[Mapping[str, str]]) -> str:
    """Return the rows as a Markdown table; their keys are the header."""
    listed = list(rows)
    cells: Sequence[Sequence[str]] = [
        list(listed[0]),
        ["---"] * len(listed[0]),
        *(list(row.values()) for row in listed),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)
