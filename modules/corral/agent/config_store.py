"""The source of a cluster's files: its bucket, or a directory instead."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from corral.agent.errors import AgentError


class StoreError(AgentError):
    """The cluster's files cannot be read."""


class Store(Protocol):
    """The files below a cluster's prefix."""

    def names(self) -> Sequence[str]:
        """The path of every file below the prefix, sorted."""
        ...

    def read(self, name: str) -> bytes:
        """The bytes of one of these files."""
        ...


class DirectoryStore:
    """A directory instead of a bucket."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def names(self) -> Sequence[str]:
        """The path of every file below the directory, sorted."""
        paths = (path.relative_to(self._directory) for path in self._directory.rglob("*") if path.is_file())
        return sorted(path.as_posix() for path in paths)

    def read(self, name: str) -> bytes:
        """The bytes of one of these files."""
        return (self._directory / name).read_bytes()
