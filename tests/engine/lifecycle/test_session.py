"""Unwritable or full state directories are reported before the engine starts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from corral.engine.backend import backend_space
from corral.engine.backend.backend_space import require_space
from corral.engine.engine_errors import EngineError
from corral.engine.lifecycle.session import BASE, EngineSession
from corral.engine.progress.progress_display import PlainDisplay
from corral.engine.pulumi.binary import PulumiBinary
from corral.engine.pulumi.pulumi_cli import PulumiCli


def test_unwritable_state_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a directory should be")
    engine = PulumiCli(binary=PulumiBinary(path=Path("pulumi"), version=(3, 259, 0), search=()), environment={})
    session = EngineSession(
        engine=engine, stacks=tmp_path, state=tmp_path / "state", display=PlainDisplay(io.StringIO())
    )
    with pytest.raises(EngineError) as refused, session.stack(BASE, "dev"):
        pass
    assert refused.value.sentence == f"base dev: {tmp_path}/state/corral-base.dev: Not a directory"


def test_full_disk_is_reported_before_the_engine_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_space, "NEEDED_BYTES", 1 << 60)
    with pytest.raises(EngineError, match="free on this disk, but an update needs"):
        require_space(tmp_path)


def test_disk_with_space_is_ok(tmp_path: Path) -> None:
    require_space(tmp_path)
