"""Which queues start no jobs, from scontrol's output."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.agent.cluster.partition_state import not_open, stopped

LINES = """PartitionName=cpu AllowGroups=ALL State=UP TotalCPUs=8 Nodes=cpu-[1-4]
PartitionName=train AllowGroups=ALL State=DOWN TotalCPUs=96 Nodes=train-[1-16]
PartitionName=gone AllowGroups=ALL State=DRAIN TotalCPUs=8 Nodes=gone-1
PartitionName=off AllowGroups=ALL State=INACTIVE TotalCPUs=8 Nodes=off-1
"""


@pytest.fixture(autouse=True)
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lines").write_text(LINES)
    (tmp_path / "scontrol").write_text(f"#!/bin/sh\ncat {tmp_path / 'lines'}\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_a_queue_that_drains_still_starts_the_jobs_that_it_has() -> None:
    assert stopped() == {"train", "off"}


def test_a_queue_is_not_open_if_its_partition_is_not_up() -> None:
    assert not_open(["train", "gone", "cpu", "new"]) == ("gone", "train")
