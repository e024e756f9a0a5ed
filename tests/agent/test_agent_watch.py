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
    "squeue": 'cat "$HERE/jobs"',
    "scontrol": """case "$*" in
*"show node"*) cat "$HERE/node";;
"requeue 6") echo "$*" >>"$HERE/calls"; exit 1;;
*) echo "$*" >>"$HERE/calls";;
esac""",
}
BY_HAND = "NodeName=train-1 State=MIXED+CLOUD+DRAIN Reason=bad cable [ada@2026-11-21T11:00:00] Comment=x\n"
BY_CORRAL = "NodeName=train-1 State=MIXED+DRAIN Reason=corral: spot, ends at 12:00:20 [root@2026-11-21T11:58:00]\n"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm with two batch jobs on the node, the first of which cannot be requeued. Where the changes are written."""
    (tmp_path / "jobs").write_text("6 1 RUNNING\n7 1 RUNNING\n")
    (tmp_path / "node").write_text("NodeName=train-1 State=MIXED+CLOUD Comment=x\n")
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


def test_a_node_that_is_taken_back_is_drained_and_says_so(slurm: Path) -> None:
    (slurm.parent / "jobs").write_text("")
    turn(HERE, Taken(end=LATE.end, progress=Progress()), NOW)
    (said,) = slurm.read_text().splitlines()
    assert said.startswith("update nodename=train-1 comment=corral: notice at ")
    assert said.endswith(", ends at 2026-11-21T12:00:20Z state=drain reason=corral: spot, ends at 12:00:20")


def test_a_node_that_somebody_has_drained_keeps_the_reason(slurm: Path) -> None:
    (slurm.parent / "jobs").write_text("")
    (slurm.parent / "node").write_text(BY_HAND)
    turn(HERE, Taken(end=LATE.end, progress=Progress()), NOW)
    (said,) = slurm.read_text().splitlines()
    assert (said.split()[2], "state=" in said, "reason=" in said) == ("comment=corral:", False, False)


@pytest.mark.parametrize(
    ("node", "reason"), [(BY_HAND, "bad cable"), (BY_CORRAL, "corral: taken back by the spot market")]
)
def test_a_node_is_let_go_once_and_with_the_reason_of_whoever_drained_it(slurm: Path, node: str, reason: str) -> None:
    (slurm.parent / "jobs").write_text("")
    (slurm.parent / "node").write_text(node)
    turn(HERE, turn(HERE, LATE, NOW), NOW)
    down, power = slurm.read_text().splitlines()
    assert down == f"update nodename=train-1 state=down reason={reason}"
    assert power.startswith("update nodename=train-1 state=power_down_force")


def test_a_node_is_not_let_go_while_processes_of_a_job_that_was_requeued_live(slurm: Path) -> None:
    (slurm.parent / "jobs").write_text("7 1 COMPLETING\n")
    turn(HERE, LATE, NOW)
    assert not slurm.exists()


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


def test_the_head_is_first_listened_for_after_the_time_of_the_nodes_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "read", lambda _: None)
    slept: list[float] = []

    def beat() -> None:
        raise Over

    with pytest.raises(Over):
        watch(HERE, beat, slept.append, tmp_path / "lock")
    assert sum(slept) == pytest.approx(18.54, abs=0.01)
