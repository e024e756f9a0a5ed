"""A cluster's files in a directory instead of a bucket."""

from __future__ import annotations

import hashlib
from pathlib import Path

from corral.agent.config_store import DirectoryStore, ManifestStore
from corral.model.manifest import Manifest
from corral.model.serialization import from_json

VERSION = 1_700_000_000


def manifest_of(directory: Path) -> Manifest:
    """The manifest of all files in a directory."""
    files = {
        file.relative_to(directory).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file.name != "manifest.json"
    }
    return Manifest(version=VERSION, files=files, bundle="a", bundle_sha256="0", library="l", library_sha256="0")


class Uploaded(DirectoryStore):
    """A directory whose manifest names what is in it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.directory = directory
        self.reads: list[str] = []

    def read(self, name: str) -> bytes:
        self.reads.append(name)
        return b"" if name == "manifest.json" else super().read(name)


def uploaded(directory: Path) -> ManifestStore:
    """The files of this directory, complete at any time."""
    return ManifestStore(Uploaded(directory), lambda _: manifest_of(directory))


def unsigned(directory: Path) -> ManifestStore:
    """The files of this directory that its manifest.json names, which has no signature."""
    return ManifestStore(DirectoryStore(directory), lambda content: from_json(Manifest, content.decode()))
