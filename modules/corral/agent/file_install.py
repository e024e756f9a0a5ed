"""Install files atomically, and only if they differ.

`file_placements` decides what is installed where.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HEADER = "# Managed by corral: written by `corral-agent boot`.\n"  # of files that a boot makes up itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A file to install: absolute path, bytes, mode and owner (empty: the current user).

    `only_if_missing`: leave an existing file alone.
    """

    path: str
    content: bytes
    mode: int = 0o644
    owner: str = ""
    only_if_missing: bool = False


def install(placements: Iterable[Placement], root: Path = Path("/")) -> tuple[str, ...]:
    """Install the files; return the paths that were written because they were missing or differed in bytes or mode."""
    return tuple(placement.path for placement in placements if _install(placement, root))


def _install(placement: Placement, root: Path) -> bool:
    file = root / placement.path.lstrip("/")
    if _is_right(file, placement):
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    # In the same directory, so the rename is atomic. The leading dot hides the file from Include directives.
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(placement.content)
            os.fchmod(stream.fileno(), placement.mode)
            if placement.owner:
                shutil.chown(temporary, placement.owner)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def _is_right(file: Path, placement: Placement) -> bool:
    if not file.is_file():
        return False
    if placement.only_if_missing:
        return True
    return file.read_bytes() == placement.content and file.stat().st_mode & 0o7777 == placement.mode
