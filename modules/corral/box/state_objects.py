"""The contents of large S3 objects, each in a file of its own, so that saving the cloud does not write them again.

A file is named after its content and never changes; those that the saved cloud does not name are removed after a save.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from moto.s3.models import FakeKey

LARGE = 64 * 1024  # bytes; smaller contents stay in the pickle, where they cost next to nothing

UNSAVED = ("_value_buffer", "lock")  # attributes of a key that are rebuilt

pending: list[tuple[Any, str]] = []  # keys that were loaded without their content


class Contents:
    """The directory of contents during one save."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._named: set[str] = set()

    def reduce(self, key: FakeKey) -> Any:
        """How pickle writes an S3 object whose content is large; NotImplemented for a small or deleted one."""
        if key.disposed or key.contentsize < LARGE:
            return NotImplemented
        name = f"{str(key.etag).strip(chr(34))}-{key.contentsize}"
        self._named.add(name)
        path = self._directory / name
        if not path.exists():
            self._write(path, key.value)
        state = {
            attribute: value for attribute, value in vars(key).items() if attribute not in ("_value_buffer", "lock")
        }
        return _without_content, (state, name)

    def sweep(self) -> None:
        """Removes the files that this save did not name."""
        if self._directory.is_dir():
            for path in self._directory.iterdir():
                if path.name not in self._named:
                    path.unlink(missing_ok=True)

    def _write(self, path: Path, content: bytes) -> None:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        draft = path.with_suffix(".new")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)


def fill(directory: Path) -> None:
    """Gives the keys that were just loaded their content back."""
    while pending:
        key, name = pending.pop()
        key.value = (directory / name).read_bytes()


def _without_content(state: dict[str, Any], name: str) -> FakeKey:
    key = FakeKey.__new__(FakeKey)
    key.__setstate__({**state, "value": b""})
    pending.append((key, name))
    return key
