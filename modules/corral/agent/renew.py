"""A newer agent, or its library, in the place of the one that runs: fetched, checked by its hash, put there at once."""

import ctypes
import dataclasses
import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path

from corral.agent.install import Placement, install
from corral.agent.pending import HOME, mark_renewed
from corral.agent.store import Store, StoreError
from corral.model.deployed import BootFacts
from corral.model.jsons import to_json
from corral.model.manifest import Manifest

CONTENT = ".sha256"  # says which archive a directory was made of, as templates/boot/fetch.py.j2 writes it
_EXCHANGE, _HERE = 2, -100  # renameat2(2): RENAME_EXCHANGE, AT_FDCWD


def renew(store: Store, facts: BootFacts, manifest: Manifest, home: Path = HOME) -> bool:
    """True if the agent's code is another now. Raises StoreError where an archive is not what the manifest says.

    The facts of the boot are made to name it too: a head that is rebooted fetches by them. They are the same from then
    on, so that what must follow is marked before.
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
    if facts.library_sha256 != manifest.library_sha256:  # first: a newer agent may need it
        _put(store, manifest.library, manifest.library_sha256, home / "library")
    if facts.bundle_sha256 != manifest.bundle_sha256:
        _put(store, manifest.bundle, manifest.bundle_sha256, home / "agent")
    install((Placement(path="/boot.json", content=to_json(named).encode()),), home)
    return True


def _put(store: Store, name: str, sha256: str, place: Path) -> None:
    content = store.read(name)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise StoreError(f"{name} has the hash {found}, expected {sha256}")
    new = place.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(new)
    (new / CONTENT).write_text(found, encoding="ascii")
    exchange(new, place)
    shutil.rmtree(new, ignore_errors=True)


def exchange(one: Path, other: Path) -> None:
    """Swaps two directories: at no moment is there none, and slurmctld may start a program of the agent's at any."""
    if not other.exists():
        one.rename(other)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))
