"""Writing files where a machine's programs look for them: whole or not at all, and only if they differ.

Where which file belongs is decided in `places`.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One file as it shall be: an absolute path, its bytes, mode and owner (empty: whoever installs it).

    `keeps`: what is there already is left alone.
    """

    path: str
    content: bytes
    mode: int = 0o644
    owner: str = ""
    keeps: bool = False


def install(placements: Iterable[Placement], root: Path = Path("/")) -> tuple[str, ...]:
    """The paths whose file was written: those that were missing or had other bytes or another mode."""
    return tuple(placement.path for placement in placements if _install(placement, root))


def _install(placement: Placement, root: Path) -> bool:
    file = root / placement.path.lstrip("/")
    if _is_right(file, placement):
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    # In the same directory, so that the rename cannot leave half a file; the leading dot hides it from Include.
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
    if placement.keeps:
        return True
    return file.read_bytes() == placement.content and file.stat().st_mode & 0o7777 == placement.mode
