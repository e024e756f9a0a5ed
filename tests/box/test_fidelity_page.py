"""The tests that the fidelity page names exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parents[1] / "docs" / "fidelity.md"


def test_every_test_that_the_page_names_exists() -> None:
    written = {name for file in TESTS.rglob("test_*.py") for name in re.findall(r"def test_(\w+)", file.read_text())}
    cells = [line.split("|")[3] for line in PAGE.read_text().splitlines() if line.count("|") == 4]
    named = {name for cell in cells for name in re.findall(r"`(?:\w+: )?([\w.]+)`", cell) if "_" in name}
    pieces = {name: [piece for piece in name.split("...") if piece] for name in named if not name.startswith("box_")}
    missing = [
        name for name, parts in pieces.items() if not any(all(part in test for part in parts) for test in written)
    ]
    assert (len(pieces) > 40, missing) == (True, [])
