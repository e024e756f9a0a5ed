"""A newer agent or library replaces the running one."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from agent.stores import uploaded
from corral.agent.config.apply_journal import is_renewed
from corral.agent.config.self_update import update_agent
from corral.agent.config_store import ManifestStore, StoreError
from corral.model.deployed import BootFacts
from corral.model.manifest import Manifest
from corral.model.serialization import from_json
from corral.render.agent_bundle import packed
from render.plans import boot_facts

AGENT, LIBRARY = packed([("agent.py", b"new\n")]), packed([("library.py", b"new\n")])
FACTS = boot_facts()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What a boot has left."""
    for name in ("agent", "library"):
        (tmp_path / "home" / name).mkdir(parents=True)
        (tmp_path / "home" / name / f"{name}.py").write_text("old\n")
    return tmp_path / "home"


@pytest.fixture
def store(tmp_path: Path) -> ManifestStore:
    for name, content in (("agent", AGENT), ("library", LIBRARY)):
        (tmp_path / "bucket" / name).mkdir(parents=True)
        (tmp_path / "bucket" / name / "n.tar.gz").write_bytes(content)
    return uploaded(tmp_path / "bucket")


def manifest(agent: str = FACTS.bundle_sha256, library: str = FACTS.library_sha256) -> Manifest:
    """It names what was booted, but for what is given."""
    old = {"bundle": "agent/0123456789abcdef.tar.gz", "library": "library/fedcba9876543210.tar.gz"}
    paths = {
        "bundle": old["bundle"] if agent == FACTS.bundle_sha256 else "agent/n.tar.gz",
        "library": old["library"] if library == FACTS.library_sha256 else "library/n.tar.gz",
    }
    return Manifest(version=1, files={}, bundle_sha256=agent, library_sha256=library, **paths)


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def texts(home: Path) -> list[str]:
    return [(home / name / f"{name}.py").read_text() for name in ("agent", "library")]


def test_an_agent_that_the_manifest_names_is_unchanged(home: Path, store: ManifestStore) -> None:
    assert (update_agent(store, FACTS, manifest(), home), texts(home)) == (False, ["old\n", "old\n"])


def test_a_newer_agent_alone_leaves_the_library(home: Path, store: ManifestStore) -> None:
    assert (update_agent(store, FACTS, manifest(hash_of(AGENT)), home), texts(home)) == (True, ["new\n", "old\n"])


def test_a_newer_library_alone_restarts_the_agent_too(home: Path, store: ManifestStore) -> None:
    assert (update_agent(store, FACTS, manifest(library=hash_of(LIBRARY)), home), texts(home)) == (
        True,
        ["old\n", "new\n"],
    )


def test_a_library_with_another_hash_leaves_both_as_they_are(home: Path, store: ManifestStore) -> None:
    with pytest.raises(StoreError, match="has hash"):
        update_agent(store, FACTS, manifest(hash_of(AGENT), "0" * 64), home)
    assert texts(home) == ["old\n", "old\n"]


def test_a_rebooted_head_uses_the_updated_agent(home: Path, store: ManifestStore) -> None:
    update_agent(store, FACTS, manifest(hash_of(AGENT), hash_of(LIBRARY)), home)
    named = from_json(BootFacts, (home / "boot.json").read_text())
    marks = [(home / name / ".sha256").read_text() for name in ("agent", "library")]
    assert (named, marks) == (
        replace(
            FACTS,
            bundle_key="clusters/dev/agent/n.tar.gz",
            bundle_sha256=hash_of(AGENT),
            library_key="clusters/dev/library/n.tar.gz",
            library_sha256=hash_of(LIBRARY),
        ),
        [hash_of(AGENT), hash_of(LIBRARY)],
    )


def test_the_restart_is_marked_before_anything_changes(home: Path, store: ManifestStore) -> None:
    with pytest.raises(StoreError, match="has hash"):
        update_agent(store, FACTS, manifest(library="0" * 64), home)
    assert (is_renewed(home), texts(home)) == (True, ["old\n", "old\n"])


def test_no_update_marks_no_restart(home: Path, store: ManifestStore) -> None:
    update_agent(store, FACTS, manifest(), home)
    assert not is_renewed(home)
