"""`corral-agent apply`: which manifest it believes."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import pytest

from corral.agent.commands import apply
from corral.agent.config_store import ManifestStore, StoreError


def test_a_running_head_believes_no_older_manifest_than_it_has_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: argparse.Namespace, seen: int) -> ManifestStore:
        raise StoreError(f"nothing older than {seen}")

    monkeypatch.setattr(apply, "LOCK", tmp_path / "lock")
    monkeypatch.setattr(apply, "seen_version", lambda: 1002)
    monkeypatch.setattr(apply, "store_of", refuse)
    monkeypatch.setattr(apply, "boot_facts", lambda _: SimpleNamespace(region="us-east-1"))
    with pytest.raises(StoreError, match="nothing older than 1002"):
        apply._apply(argparse.Namespace(facts=tmp_path))
