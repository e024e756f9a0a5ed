"""Which manifest a machine believes at its boot: none older than it, or who launched it, has seen."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from corral.agent.commands import boot, head, login
from corral.agent.config_store import ManifestStore, StoreError
from corral.agent.node_identity import NodeIdentity


def refuse(_: argparse.Namespace, seen: int) -> ManifestStore:
    raise StoreError(f"nothing older than {seen}")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """1002 is what this machine has seen, 1003 what the head had that launched it."""
    for module in (head, login):
        monkeypatch.setattr(module, "seen_version", lambda: 1002)
        monkeypatch.setattr(module, "store_of", refuse)
    monkeypatch.setattr(boot, "store_of", refuse)
    monkeypatch.setattr(boot, "manifest_version", lambda: 1003)
    monkeypatch.setattr(boot, "read_identity", lambda: NodeIdentity(node="train-1", queue="train"))
    monkeypatch.setattr(login, "_name", lambda: "login-1")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(("role", "version"), [("head", 1002), ("login", 1002), ("compute", 1003)])
def test_a_machine_boots_with_no_older_manifest_than_is_known(role: str, version: int) -> None:
    with pytest.raises(StoreError, match=f"nothing older than {version}"):
        boot._boot(argparse.Namespace(role=role))


def test_a_head_looks_again_once_its_state_volume_is_mounted_and_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The volume knows what the head before this one has seen."""
    remembered: list[int] = []
    versions = iter((0, 1002))

    def store(_: argparse.Namespace, seen: int) -> Any:
        return SimpleNamespace(manifest=lambda: SimpleNamespace(version=seen + 1))

    def boot_head(*parts: Any) -> None:
        check_manifest: Callable[[], None] = parts[5]
        check_manifest()

    monkeypatch.setattr(head, "seen_version", lambda: next(versions))
    monkeypatch.setattr(head, "store_of", store)
    deployed = SimpleNamespace(region="us-east-1")
    replaced: tuple[tuple[ModuleType, str, Any], ...] = (
        (head, "fetch", lambda *_, **__: (SimpleNamespace(), deployed)),
        (head, "client", lambda *_: None),
        (head, "host_in", lambda _: None),
        (head, "_backup_store", lambda *_: None),
        (head, "boot_head", boot_head),
        (head, "remember_version", remembered.append),
    )
    for module, name, value in replaced:
        monkeypatch.setattr(module, name, value)
    head.boot(argparse.Namespace())
    assert remembered == [1003]


def test_a_login_node_follows_no_older_manifest_than_it_has_seen(
    monkeypatch: pytest.MonkeyPatch, known: None, tmp_path: Path
) -> None:
    def follow(**parts: Any) -> Any:
        parts["store"]()

    deployed = SimpleNamespace(region="us-east-1", account="123456789012")
    monkeypatch.setattr(login, "records_in", lambda _: (None, deployed))
    monkeypatch.setattr(login, "host_in", lambda _: None)
    monkeypatch.setattr(login, "boot_facts", lambda _: None)
    monkeypatch.setattr(login, "BucketStore", lambda *_: SimpleNamespace(tag=lambda _: ""))
    monkeypatch.setattr(login, "client", lambda *_: None)
    monkeypatch.setattr(login, "FollowedConfig", follow)
    with pytest.raises(StoreError, match="nothing older than 1002"):
        login._watch(argparse.Namespace(records=tmp_path, facts=tmp_path))
