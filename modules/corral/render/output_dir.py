"""The output directory of `corral render`. A manifest lists the files that corral wrote; others stay untouched.

A file is corral's if it has the bytes that corral last wrote there, or those that it would write now.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

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


def compare(directory: Path, files: Mapping[str, str]) -> tuple[FileChange, ...]:
    """The changes that writing these files would make, by path. Omits files that are not corral's."""
    ours = set(_hashes(directory)) | set(files)
    found = ((path, _read(directory / path)) for path in sorted(ours))
    changes = (FileChange(path=path, before=text, after=files.get(path)) for path, text in found)
    return tuple(change for change in changes if (change.before, change.after) != (None, None))


def write(directory: Path, files: Mapping[str, str]) -> tuple[FileChange, ...]:
    """Write these files, delete the others that corral wrote, and return the changes.

    Raises ForeignFiles before anything is written. An interrupted write can be repeated.
    """
    hashes, changes = _hashes(directory), compare(directory, files)
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
    """The hashes of the files that corral wrote, by path; several after an interrupted write."""
    text = _read(directory / MANIFEST)
    try:
        return dict(json.loads(text)["files"]) if text else {}
    except (ValueError, KeyError, TypeError):
        return {}  # a foreign manifest: no file is corral's


def _write_hashes(directory: Path, hashes: Mapping[str, list[str]]) -> None:
    text = json.dumps({"written_by": "corral render", "files": dict(sorted(hashes.items()))}, indent=2) + "\n"
    (directory / MANIFEST).write_text(text)
