"""Update the running agent and its library: fetch the archive, check its hash, and swap the directory atomically."""

import ctypes
import dataclasses
import io
import os
import shutil
import tarfile
from pathlib import Path

from corral.agent.config.apply_journal import HOME, mark_renewed
from corral.agent.config_store import ManifestStore
from corral.agent.file_install import Placement, install
from corral.model.deployed import BootFacts
from corral.model.manifest import Manifest
from corral.model.serialization import to_json

CONTENT = ".sha256"  # the hash of a directory's archive; templates/boot/fetch.py.j2 writes it too
_EXCHANGE, _HERE = 2, -100  # renameat2(2): RENAME_EXCHANGE, AT_FDCWD


def update_agent(store: ManifestStore, facts: BootFacts, manifest: Manifest, home: Path = HOME) -> bool:
    """Update the agent; True if its code has changed. Raises StoreError if an archive differs from the manifest.

    The boot facts then name the new archives, which a rebooted head fetches. The restart is marked first, because
    afterwards the facts no longer differ.
    """
    named = dataclasses.replace(
        facts,
        bundle_key=f"{facts.prefix}/{manifest.bundle}",
        bundle_sha256=manifest.bundle_sha256,
        library_key=f"{facts.prefix}/{manifest.library}",
        library_sha256=manifest.library_sha256,
    )
    if named == facts:
        return False
    mark_renewed(home)
    if facts.library_sha256 != manifest.library_sha256:  # first: the newer agent may need it
        _put(store, manifest.library, manifest.library_sha256, home / "library")
    if facts.bundle_sha256 != manifest.bundle_sha256:
        _put(store, manifest.bundle, manifest.bundle_sha256, home / "agent")
    install((Placement(path="/boot.json", content=to_json(named).encode()),), home)
    return True


def _put(store: ManifestStore, name: str, sha256: str, directory: Path) -> None:
    content = store.read_archive(name, sha256)
    new = directory.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        # Trusted: the hash matches. Python 3.12 and 3.13 warn without a filter; 3.11 may not know the attribute.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(new)  # noqa: S202
    (new / CONTENT).write_text(sha256, encoding="ascii")
    swap_directories(new, directory)
    shutil.rmtree(new, ignore_errors=True)


def swap_directories(one: Path, other: Path) -> None:
    """Swap two directories atomically: slurmctld may start a program of the agent's at any moment."""
    if not other.exists():
        one.rename(other)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))
