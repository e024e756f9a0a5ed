"""The source of a cluster's files: its bucket, or a directory instead; only what the manifest names is read."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from corral.agent.errors import AgentError
from corral.model.manifest import MANIFEST, Manifest


class StoreError(AgentError):
    """The cluster's files cannot be read."""


class IncompleteUpload(StoreError):
    """A file is not the one that the manifest names."""


class Store(Protocol):
    """The files below a cluster's prefix."""

    def read(self, name: str) -> bytes:
        """The bytes of one of these files."""
        ...


class DirectoryStore:
    """A directory instead of a bucket."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, name: str) -> bytes:
        """The bytes of one of these files."""
        return (self._directory / name).read_bytes()


class ManifestStore:
    """The files that a manifest names, with its hashes. `believe`: the manifest in the bytes of manifest.json."""

    def __init__(self, store: Store, believe: Callable[[bytes], Manifest]) -> None:
        self._store = store
        self._believe = believe

    def manifest(self) -> Manifest:
        """The manifest. Raises StoreError."""
        return self._believe(self._store.read(MANIFEST))

    def read(self, manifest: Manifest, names: Iterable[str]) -> Mapping[str, bytes]:
        """The bytes of these files of the manifest. Raises StoreError; IncompleteUpload if one differs from it."""
        return {name: self._checked(name, manifest.files[name]) for name in names}

    def read_archive(self, path: str, sha256: str) -> bytes:
        """The bytes of an archive that the manifest names. Raises StoreError; IncompleteUpload if it differs."""
        return self._checked(path, sha256)

    def _checked(self, name: str, sha256: str) -> bytes:
        content = self._store.read(name)
        found = hashlib.sha256(content).hexdigest()
        if found != sha256:
            raise IncompleteUpload(
                f"{name} has hash {found}, expected {sha256}: an upload may be in progress - try again"
            )
        return content
