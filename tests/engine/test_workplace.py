"""Places where nothing can be noted, or hardly: said before an engine starts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from corral.engine import disk
from corral.engine.binary import Binary
from corral.engine.disk import require_space
from corral.engine.errors import EngineError
from corral.engine.printers import PlainPrinter
from corral.engine.process import Engine
from corral.engine.workplace import BASE, Workplace


def test_a_state_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a directory should be")
    engine = Engine(binary=Binary(path=Path("pulumi"), version=(3, 259, 0), search=()), environment={})
    place = Workplace(engine=engine, stacks=tmp_path, state=tmp_path / "state", printer=PlainPrinter(io.StringIO()))
    with pytest.raises(EngineError) as refused, place.stack(BASE, "dev"):
        pass
    assert refused.value.sentence == f"base dev: {tmp_path}/state/corral-base.dev: Not a directory"


def test_a_full_disk_is_told_before_anything_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "NEEDED", 1 << 60)
    with pytest.raises(EngineError, match="are free on this disk, an update needs"):
        require_space(tmp_path)


def test_a_disk_with_room_is_fine(tmp_path: Path) -> None:
    require_space(tmp_path)
