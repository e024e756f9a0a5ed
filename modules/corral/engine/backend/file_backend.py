"""A state backend in a directory: its paths, and the removal of files that a killed Pulumi left half written.

Pulumi replaces a state atomically, but writes the small `.attrs` file next to it in place just before
(gocloud.dev/blob/fileblob, NewTypedWriter). A kill in between leaves an empty `.attrs` file, and every read of the
stack fails with `EOF`. Without the `.attrs` file, Pulumi reads the last complete state.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

TORN = re.compile(r"\bEOF\b|unexpected end of JSON input")


def is_torn_file_error(stderr: str) -> bool:
    """True if the CLI reports a file that ends too early."""
    return bool(TORN.search(stderr))


def remove_torn_files(url: str) -> list[Path]:
    """Removes the half-written files. Returns their paths; empty for a backend that is not a directory."""
    root = directory(url)
    torn = [file for file in sorted(root.rglob("*.attrs")) if _is_torn(file)] if root else []
    for file in torn:
        file.unlink(missing_ok=True)
    return torn


def directory(url: str) -> Path | None:
    """The directory of a file backend; None for other kinds of backends."""
    parts = urlsplit(url)
    return Path(unquote(parts.netloc + parts.path)).expanduser() / ".pulumi" if parts.scheme == "file" else None


def tags_file(root: Path, project: str, stack: str) -> Path:
    """The file with the tags of a stack; it does not exist if the stack has none."""
    return root / "stacks" / project / f"{stack}.pulumi-tags"


def has_stack(root: Path, project: str, stack: str) -> bool:
    """Whether the backend holds a state of this stack."""
    folder = root / "stacks" / project
    return any((folder / f"{stack}.json{ending}").is_file() for ending in ("", ".gz"))


def _is_torn(file: Path) -> bool:
    try:
        json.loads(file.read_bytes())
    except ValueError:
        return True
    except OSError:
        return False
    return False
