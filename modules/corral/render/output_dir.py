"""The output directory of `corral render`. A manifest lists the files that corral wrote; others stay untouched.

A file is corral's if it has the bytes that corral last wrote there, or those that it would write now.

The directory may be a clone of somebody else's: its manifest and its links must not lead out of it. Whoever can write
to it while the command runs is not kept from that.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

MANIFEST = ".corral-render.json"


class FileStatus(StrEnum):
    """What happens to a file; the values appear in output."""

    NEW = "new"
    CHANGED = "changed"
    REMOVED = "removed"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file by its path in the directory, before and after; None if it does not exist."""

    path: str
    before: str | None
    after: str | None

    @property
    def change(self) -> FileStatus:
        """What happens to it."""
        if self.before is None:
            return FileStatus.NEW
        if self.after is None:
            return FileStatus.REMOVED
        return FileStatus.SAME if self.before == self.after else FileStatus.CHANGED

    def lines(self) -> Iterable[str]:
        """The difference as a unified diff, without line ends."""
        before, after = ((text or "").splitlines() for text in (self.before, self.after))
        return difflib.unified_diff(before, after, f"before/{self.path}", f"after/{self.path}", lineterm="")


class ForeignFiles(Exception):
    """Existing files that corral did not write; the text is a message for the user."""

    def __init__(self, directory: Path, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        listed = ", ".join(self.paths)
        super().__init__(
            f"{directory} contains files that corral did not write, or that have changed since: {listed}"
            " - nothing was written; move them away, or choose another directory"
        )


class UnsafePath(Exception):
    """A path that leads out of the directory; the text is a message for the user."""


def compare(directory: Path, files: Mapping[str, str]) -> tuple[FileChange, ...]:
    """The changes that writing these files would make, by path. Omits files that are not corral's.

    Raises UnsafePath.
    """
    return _compare(directory, files, _hashes(directory))


def _compare(directory: Path, files: Mapping[str, str], hashes: Mapping[str, list[str]]) -> tuple[FileChange, ...]:
    ours = {*hashes, *files}
    for path in sorted(ours):
        _require_inside(directory, path)
    found = ((path, _read(directory / path)) for path in sorted(ours))
    changes = (FileChange(path=path, before=text, after=files.get(path)) for path, text in found)
    return tuple(change for change in changes if (change.before, change.after) != (None, None))


def write(directory: Path, files: Mapping[str, str]) -> tuple[FileChange, ...]:
    """Write these files, delete the others that corral wrote, and return the changes.

    Raises ForeignFiles or UnsafePath before anything is written. An interrupted write can be repeated.
    """
    hashes = _hashes(directory)
    changes = _compare(directory, files, hashes)
    foreign = [one.path for one in changes if one.change is not FileStatus.SAME and _is_foreign(one, hashes)]
    if foreign:
        raise ForeignFiles(directory, foreign)
    directory.mkdir(parents=True, exist_ok=True)
    after = {path: [_hash(text)] for path, text in files.items()}
    _write_hashes(directory, {path: [*hashes.get(path, []), *after.get(path, [])] for path in {*hashes, *after}})
    for one in changes:
        _apply(directory / one.path, one)
    _write_hashes(directory, after)
    return changes


def _apply(file: Path, change: FileChange) -> None:
    if change.after is None:
        file.unlink(missing_ok=True)
    elif change.change is not FileStatus.SAME:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(change.after, encoding="utf-8")


def _is_foreign(change: FileChange, hashes: Mapping[str, list[str]]) -> bool:
    return change.before is not None and _hash(change.before) not in hashes.get(change.path, [])


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode(errors="surrogateescape")
    except FileNotFoundError:
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def _hashes(directory: Path) -> dict[str, list[str]]:
    """The hashes of the files that corral wrote, by path; several after an interrupted write. Raises UnsafePath."""
    _require_inside(directory, MANIFEST)
    text = _read(directory / MANIFEST)
    try:
        hashes = {path: [*map(str, found)] for path, found in json.loads(text)["files"].items()} if text else {}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}  # a foreign manifest: no file is corral's
    if outside := [path for path in hashes if not _is_below(path)]:
        raise UnsafePath(
            f"{directory / MANIFEST}: {outside[0]!r} is not the path of a file below {directory}"
            " - corral did not write this list: nothing was written; remove it, or choose another directory"
        )
    return hashes


def _is_below(path: str) -> bool:
    """Whether this leads to a file below the directory, links aside, in the only way that corral writes it."""
    parts = PurePosixPath(path).parts
    return path.isprintable() and bool(parts) and "/".join(parts) == path and not {"/", ".."} & {*parts}


def _require_inside(directory: Path, path: str) -> None:
    """Raises UnsafePath if the file, or a directory on the way to it, is a link, a device, a pipe, or a socket."""
    file = directory
    for part in PurePosixPath(path).parts:
        file = file / part
        try:
            mode = file.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            what = "a link, which may lead elsewhere" if stat.S_ISLNK(mode) else "neither a file nor a directory"
            raise UnsafePath(f"{file} is {what} - nothing was written; remove it, or choose another directory")


def _write_hashes(directory: Path, hashes: Mapping[str, list[str]]) -> None:
    text = json.dumps({"written_by": "corral render", "files": dict(sorted(hashes.items()))}, indent=2) + "\n"
    (directory / MANIFEST).write_text(text)
