"""`drain-all`, which `corral down` calls, and the metrics of the head: alerts are silent from then on."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from corral.agent.__main__ import main
from corral.agent.commands import head
from corral.agent.shutdown import drain
from corral.agent.shutdown.drain import is_draining
from corral.model.serialization import to_json
from render.plans import dev


@pytest.fixture
def idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the records of a cluster without jobs, whose Slurm does what it is told."""
    (tmp_path / "cluster.json").write_text(to_json(dev()))
    for name in ("squeue", "scontrol", "scancel"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(drain, "drain_before_down", partial(drain.drain_before_down, mark=tmp_path / "draining"))
    monkeypatch.setattr("corral.agent.commands.head_queries.save_to_bucket", lambda _: ())
    return tmp_path


def test_the_command_silences_alerts(idle: Path) -> None:
    assert main(["drain-all", f"--records={idle}", f"--state-dir={idle}"]) == 0
    assert is_draining(idle / "draining")


@pytest.mark.parametrize(
    ("applies", "drains", "silent"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_metrics_of_a_head_know_an_apply_and_a_drain(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, applies: bool, drains: bool, silent: bool
) -> None:
    monkeypatch.setattr(head, "is_held", lambda _: applies)
    monkeypatch.setattr(head, "is_draining", lambda: drains)
    chosen = argparse.Namespace(state_dir=tmp_path, wake_socket=tmp_path / "wake")
    assert head._exporter(chosen, cast(Any, None)).is_applied_or_drained() is silent
