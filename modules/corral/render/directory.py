"""A directory that rendered files are written to. It lists what corral wrote, so that nothing else is touched.

A file is ours if it has the bytes that we last wrote there, or those that we would write now.
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


class Change(StrEnum):
    """What happens to a file; the values are shown."""

    NEW = "new"
    CHANGED = "changed"
    REMOVED = "removed"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file by its path in the directory, before and after; None where it is not there."""

    path: str
    before: str | None
    after: str | None

    @property
    def change(self) -> Change:
        """What happens to it."""
        if self.before is None:
            return Change.NEW
        if self.after is None:
            return Change.REMOVED
        return Change.SAME if self.before == self.after else Change.CHANGED

    def lines(self) -> Iterable[str]:
        """The difference as a unified diff, without line ends."""
        before, after = ((text or "").splitlines() for text in (self.before, self.after))
        return difflib.unified_diff(before, after, f"before/{self.path}", f"after/{self.path}", lineterm="")


class ForeignFiles(Exception):
    """Files that are in the way and that corral did not write; the text is a sentence for a person."""

    def __init__(self, directory: Path, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        told = ", ".join(self.paths)
        super().__init__(
            f"{directory} holds files that corral did not write, or that were changed since: {told}"
            " - nothing was written; move them away, or choose another directory"
        )


def compare(directory: Path, files: Mapping[str, str]) -> tuple[FileChange, ...]:
    """What writing these files would change, by path. Files that we never wrote and would not write are left out."""
    ours = set(_hashes(directory)) | set(files)
    found = ((path, _read(directory / path)) for path in sorted(ours))
    changes = (FileChange(path=path, before=text, after=files.get(path)) for path, text in found)
    return tuple(change for change in changes if (change.before, change.after) != (None, None))


def write(directory: Path, files: Mapping[str, str]) -> tuple[FileChange, ...]:
    """What has changed: the directory now holds these files, and no other that we wrote before.

    Raises ForeignFiles before anything is written. A write that breaks off can be repeated.
    """
    hashes, changes = _hashes(directory), compare(directory, files)
    foreign = [one.path for one in changes if one.change is not Change.SAME and _is_foreign(one, hashes)]
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
    elif change.change is not Change.SAME:
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
    """What we wrote there, by path; several hashes where a write was broken off."""
    text = _read(directory / MANIFEST)
    try:
        return dict(json.loads(text)["files"]) if text else {}
    except (ValueError, KeyError, TypeError):
        return {}  # not our list any more: then nothing there is ours


def _write_hashes(directory: Path, hashes: Mapping[str, list[str]]) -> None:
    text = json.dumps({"written_by": "corral render", "files": dict(sorted(hashes.items()))}, indent=2) + "\n"
    (directory / MANIFEST).write_text(text)
