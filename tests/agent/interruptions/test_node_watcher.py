"""The node watcher under errors: an invalid document, a job that Slurm does not requeue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from corral.agent import imds_client
from corral.agent.interruptions.node_watcher import Reclaim, check_notice, watch
from corral.agent.interruptions.spot import SpotProgress
from corral.agent.node_identity import NodeIdentity

HERE = NodeIdentity(node="train-1", queue="train")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATE = Reclaim(
    end=NOW + timedelta(seconds=20),
    progress=SpotProgress(drained=True, signalled=frozenset({"6", "7"}), requeued=frozenset()),
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


def test_a_job_that_cannot_be_requeued_does_not_block_the_next_one(slurm: Path) -> None:
    check_notice(HERE, LATE, NOW)
    assert slurm.read_text().splitlines() == ["requeue 6", "requeue 7"]


def test_a_job_that_could_not_be_requeued_is_tried_again(slurm: Path) -> None:
    after = check_notice(HERE, LATE, NOW)
    assert after and after.progress.requeued == {"7"}


def test_a_reclaimed_node_is_drained_with_a_comment(slurm: Path) -> None:
    (slurm.parent / "jobs").write_text("")
    check_notice(HERE, Reclaim(end=LATE.end, progress=SpotProgress()), NOW)
    (output,) = slurm.read_text().splitlines()
    assert output.startswith("update nodename=train-1 comment=corral: notice at ")
    assert output.endswith(", ends at 2026-11-21T12:00:20Z state=drain reason=corral: spot, ends at 12:00:20")


def test_a_node_that_somebody_has_drained_keeps_the_reason(slurm: Path) -> None:
    (slurm.parent / "jobs").write_text("")
    (slurm.parent / "node").write_text(BY_HAND)
    check_notice(HERE, Reclaim(end=LATE.end, progress=SpotProgress()), NOW)
    (output,) = slurm.read_text().splitlines()
    assert (output.split()[2], "state=" in output, "reason=" in output) == ("comment=corral:", False, False)


@pytest.mark.parametrize(
    ("node", "reason"), [(BY_HAND, "bad cable"), (BY_CORRAL, "corral: reclaimed by the spot market")]
)
def test_a_node_is_released_once_and_keeps_a_persons_reason(slurm: Path, node: str, reason: str) -> None:
    (slurm.parent / "jobs").write_text("")
    (slurm.parent / "node").write_text(node)
    check_notice(HERE, check_notice(HERE, LATE, NOW), NOW)
    down, power = slurm.read_text().splitlines()
    assert down == f"update nodename=train-1 state=down reason={reason}"
    assert power.startswith("update nodename=train-1 state=power_down_force")


def test_a_node_is_not_released_while_a_requeued_job_has_processes(slurm: Path) -> None:
    (slurm.parent / "jobs").write_text("7 1 COMPLETING\n")
    check_notice(HERE, LATE, NOW)
    assert not slurm.exists()


class Over(BaseException):
    """The machine's end."""


@pytest.mark.parametrize("document", ["{}", "[]", "{", "5"])
def test_a_document_that_is_no_notice_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: str
) -> None:
    monkeypatch.setattr(imds_client, "read", lambda _: document)
    beats: list[int] = []

    def sleep(_: float) -> None:
        if len(beats) == 3:
            raise Over

    with pytest.raises(Over):
        watch(HERE, lambda: beats.append(1), lambda: None, sleep, tmp_path / "lock")
    assert len(beats) == 3


def test_the_first_head_check_is_delayed_by_the_nodes_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imds_client, "read", lambda _: None)
    slept: list[float] = []

    def beat() -> None:
        raise Over

    with pytest.raises(Over):
        watch(HERE, beat, lambda: None, slept.append, tmp_path / "lock")
    assert sum(slept) == pytest.approx(18.54, abs=0.01)


def test_the_watch_follows_the_clusters_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imds_client, "read", lambda _: None)

    def follow() -> None:
        raise Over

    with pytest.raises(Over):
        watch(HERE, lambda: None, follow, lambda _: None, tmp_path / "lock")
