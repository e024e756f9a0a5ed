"""The claims of README.md: its sentences, the rows of its tables and the commands of its examples."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Sections that define words or list pages.
WITHOUT_CLAIMS = {"Terms", "Documentation"}


def readme_claims(page: str) -> list[tuple[str, str]]:
    """The section and the text of each claim, in the order of the page. The text before the first section is "Top"."""
    found = []
    for part in re.split(r"^##? ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        section = "Top" if not found else heading
        found += [(section, claim) for block in body.split("\n\n") for claim in _claims(block.strip("\n"))]
    return [(section, claim) for section, claim in found if section not in WITHOUT_CLAIMS]


def plain(text: str) -> str:
    """The text without marks, links and line breaks."""
    return " ".join(re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text).replace("`", "").replace("*", "").split())


def _claims(block: str) -> Iterator[str]:
    lines = block.splitlines()
    if block.startswith("    "):
        shown = [line.removeprefix("    $ ") for line in lines if line.startswith("    $ ")]
        yield from map(plain, shown or lines)
    elif block.startswith("|"):
        for row in lines[2:]:
            yield from _sentences(": ".join(cell.strip() for cell in row.strip("|").split(" | ")))
    else:
        for item in re.split(r"^(?:\*|\d\.) ", block, flags=re.MULTILINE):
            yield from _sentences(re.sub(r"^\*\*[^*]+\*\* ", "", item))


def _sentences(text: str) -> Iterator[str]:
    """The sentences and their parts after a semicolon, but for those in parentheses."""
    parts = re.split(r"(?<=[^.][.;]) (?![^(]*\))", plain(text))
    yield from (part.rstrip(".;:") for part in parts if part)
