"""A node's watch where something is not as it should be: a document, a job that Slurm does not requeue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corral.agent import metadata
from corral.agent.identity import Identity
from corral.agent.notice import Progress
from corral.agent.watch import Taken, turn, watch

HERE = Identity(node="train-1", queue="train")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATE = Taken(
    end=NOW + timedelta(seconds=20), progress=Progress(drained=True, asked=frozenset({"6", "7"}), requeued=frozenset())
)
SCRIPTS = {
    "squeue": "printf '6 1\\n7 1\\n'",
    "scontrol": 'echo "$*" >>"$HERE/calls"; [ "$*" != "requeue 6" ]',
}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm with two batch jobs on the node, the first of which cannot be requeued. Where the calls are written."""
    for name, script in SCRIPTS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    return tmp_path / "calls"


def test_a_job_that_cannot_be_requeued_does_not_keep_the_next_one(slurm: Path) -> None:
    turn(HERE, LATE, NOW)
    assert slurm.read_text().splitlines() == ["requeue 6", "requeue 7"]


def test_a_job_that_could_not_be_requeued_is_tried_again(slurm: Path) -> None:
    after = turn(HERE, LATE, NOW)
    assert after and after.progress.requeued == {"7"}


class Over(BaseException):
    """The machine's end."""


@pytest.mark.parametrize("document", ["{}", "[]", "{", "5"])
def test_a_document_that_is_no_notice_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: str
) -> None:
    monkeypatch.setattr(metadata, "read", lambda _: document)
    beats: list[int] = []

    def sleep(_: float) -> None:
        if len(beats) == 3:
            raise Over

    with pytest.raises(Over):
        watch(HERE, lambda: beats.append(1), sleep, tmp_path / "lock")
    assert len(beats) == 3
