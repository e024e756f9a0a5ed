"""HTML pages as files that the user names: refused before the work, not after it."""

from __future__ import annotations

import os
from pathlib import Path

from corral.cli.support.exit_codes import name_file_in_errors


def require_writable(file: Path) -> None:
    """Raises OSError if the page cannot be written. Leaves no empty file."""
    with name_file_in_errors(file):
        was_there = os.path.lexists(file)
        file.open("a").close()
        if not was_there:
            file.unlink()


def write_page(file: Path, text: str) -> None:
    """Write the page. Raises OSError that names the file."""
    with name_file_in_errors(file):
        file.write_text(text, encoding="utf-8")
