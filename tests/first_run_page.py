"""docs/first-real-run.md, read: its specs and its commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "first-real-run.md"


def specs() -> Mapping[str, str]:
    """The text of each stack file that the page shows, by its path in the project."""
    return dict(re.findall(r"`(stacks/\S+\.yaml)`:\n\n```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))


def commands() -> Sequence[Sequence[str]]:
    """The words after `corral` of each command that the page shows, in its order."""
    lines = re.findall(r"^    corral (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.split(line) for line in lines]


def write_specs(project: Path) -> None:
    """Replace the stack files of a project with those of the page."""
    for name, text in specs().items():
        (project / name).write_text(text, encoding="utf-8")
