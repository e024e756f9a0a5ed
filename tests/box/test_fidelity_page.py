"""The tests that the fidelity page names exist, and each of its rules has a mark, which the page's head counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parents[1] / "docs" / "fidelity.md"
MARK = re.compile(r"(recorded|documented|likely): (.+)")
ISSUE = re.compile(r"[\w.-]+/[\w.-]+#\d+")
UNSEEN = re.compile(r"\(likely: [^)]+\)")


def test_every_test_that_the_page_names_exists() -> None:
    files = list(TESTS.rglob("test_*.py"))
    written = {name for file in files for name in re.findall(r"def test_(\w+)", file.read_text())}
    written |= {file.stem.removeprefix("test_") for file in files}  # a row may name a whole file
    cells = [line.split("|")[-2] for line in PAGE.read_text().splitlines() if line.count("|") in (4, 5)]
    named = {name for cell in cells for name in re.findall(r"`(?:\w+: )?([\w.]+)`", cell) if "_" in name}
    pieces = {name: [piece for piece in name.split("...") if piece] for name in named if not name.startswith("box_")}
    missing = [
        name for name, parts in pieces.items() if not any(all(part in test for part in parts) for test in written)
    ]
    assert (len(pieces) > 40, missing) == (True, [])


def rules() -> Iterator[tuple[str, str]]:
    """The rule and the source of each row of the page's tables of rules, of faults and of times."""
    source = None
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if cells[1:2] in (["rule"], ["fault"], ["what"]) and cells[-2] == "shown by":
            source = cells.index("from") if "from" in cells else 2
        elif not line.startswith("|"):
            source = None
        elif source and cells[1] != "---":
            yield cells[1], cells[source]


def mark_of(source: str) -> str:
    """The mark of a row; empty if it has none."""
    found = MARK.match(source)
    return found[1] if found else ""


def test_every_rule_has_a_mark_and_a_source() -> None:
    assert [rule for rule, source in rules() if not mark_of(source)] == []


def test_the_head_of_the_page_counts_the_marks() -> None:
    counted = re.findall(r"^\| `(\w+):` \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert {mark: int(number) for mark, number in counted} == Counter(mark_of(source) for _, source in rules())


def test_a_recorded_rule_names_where_the_answer_is() -> None:
    assert [rule for rule, source in rules() if mark_of(source) == "recorded" and not ISSUE.search(source)] == []


def test_a_likely_rule_names_the_part_that_nobody_has_seen_and_no_other_rule_has_one() -> None:
    marked = {rule for rule, source in rules() if mark_of(source) == "likely"}
    assert marked == {rule for rule, source in rules() if UNSEEN.search(source)}
