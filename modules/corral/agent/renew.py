"""A newer agent in the place of the one that runs: fetched, checked by its hash, put there in one step."""

import ctypes
import dataclasses
import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path

from corral.agent.install import Placement, install
from corral.agent.store import Store, StoreError
from corral.model.deployed import BootFacts
from corral.model.jsons import to_json
from corral.model.manifest import Manifest

HOME = Path("/opt/corral")
_EXCHANGE, _HERE = 2, -100  # renameat2(2): RENAME_EXCHANGE, AT_FDCWD


def renew(store: Store, facts: BootFacts, manifest: Manifest, home: Path = HOME) -> bool:
    """True if the agent's code is another now. Raises StoreError where the bundle is not what the manifest says.

    The facts of the boot are made to name it too: a head that is rebooted fetches by them.
    """
    if facts.bundle_sha256 == manifest.bundle_sha256:
        return False
    bundle = store.read(manifest.bundle)
    found = hashlib.sha256(bundle).hexdigest()
    if found != manifest.bundle_sha256:
        raise StoreError(f"{manifest.bundle} has the hash {found}, expected {manifest.bundle_sha256}")
    new = home / "agent.new"
    shutil.rmtree(new, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        archive.extractall(new)
    exchange(new, home / "agent")
    shutil.rmtree(new, ignore_errors=True)
    key = f"{facts.prefix}/{manifest.bundle}"
    named = dataclasses.replace(facts, bundle_key=key, bundle_sha256=manifest.bundle_sha256)
    install((Placement(path="/boot.json", content=to_json(named).encode()),), home)
    return True


def exchange(one: Path, other: Path) -> None:
    """Swaps two directories: at no moment is there none, and slurmctld may start a program of the agent's at any."""
    if not other.exists():
        one.rename(other)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))
