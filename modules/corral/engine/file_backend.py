"""What a killed Pulumi may leave half written in a backend of files.

Pulumi replaces its files in one step, but the small `.attrs` file beside each of them is written in place, just before
(gocloud.dev/blob/fileblob, NewTypedWriter). A kill in between leaves an empty one, and everything that reads the stack
ends with `EOF`. Without its `.attrs` the file is read as it is: it is the last complete state.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

TORN = re.compile(r"\bEOF\b|unexpected end of JSON input")


def looks_torn(complaint: str) -> bool:
    """True if the CLI complains of a file that ends too early."""
    return bool(TORN.search(complaint))


def mend(url: str) -> list[Path]:
    """The half-written files, which are gone now; none in a backend that is not a directory."""
    root = directory(url)
    torn = [file for file in sorted(root.rglob("*.attrs")) if _is_torn(file)] if root else []
    for file in torn:
        file.unlink(missing_ok=True)
    return torn


def directory(url: str) -> Path | None:
    """Where a backend of files keeps them; None for another kind of backend."""
    parts = urlsplit(url)
    return Path(unquote(parts.netloc + parts.path)).expanduser() / ".pulumi" if parts.scheme == "file" else None


def tags_file(root: Path, project: str, stack: str) -> Path:
    """Where Pulumi keeps the tags of a stack; absent for one that has none."""
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
