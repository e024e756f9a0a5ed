"""Store the contents of large S3 objects in files, so that a save of the cloud does not rewrite them.

A file is named after its content and never changes. A save removes the files that the saved cloud does not refer to.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from moto.s3.models import FakeKey

LARGE = 64 * 1024  # bytes; smaller contents stay in the pickle

UNSAVED = ("_value_buffer", "lock")  # attributes of a key that are rebuilt

pending: list[tuple[Any, str]] = []  # keys loaded without their content


class LargeObjects:
    """The directory of contents during one save."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._named: set[str] = set()

    def reduce(self, key: FakeKey) -> Any:
        """The pickle reduction of an S3 object with large content; NotImplemented for a small or deleted one."""
        if key.disposed or key.contentsize < LARGE:
            return NotImplemented
        name = f"{str(key.etag).strip(chr(34))}-{key.contentsize}"
        self._named.add(name)
        path = self._directory / name
        if not path.exists():
            self._write(path, key.value)
        state = {attribute: value for attribute, value in vars(key).items() if attribute not in UNSAVED}
        return _without_content, (state, name)

    def remove_unreferenced(self) -> None:
        """Remove the files that this save does not refer to."""
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


def load_contents(directory: Path) -> None:
    """Read the contents of the keys that were just loaded."""
    while pending:
        key, name = pending.pop()
        key.value = (directory / name).read_bytes()


def _without_content(state: dict[str, Any], name: str) -> FakeKey:
    key = FakeKey.__new__(FakeKey)
    key.__setstate__({**state, "value": b""})
    pending.append((key, name))
    return key
