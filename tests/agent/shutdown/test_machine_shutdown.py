"""A machine that shuts down requeues its jobs first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from corral.agent import slurm
from corral.agent.__main__ import COMMANDS
from corral.agent.host.systemd_units import SHUTDOWN, SHUTDOWN_UNIT, STEPS_DROP_IN, steps_scopes
from corral.agent.shutdown.machine_shutdown import requeue_jobs

Calls = list[tuple[Sequence[str], str]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The nodes that are powered down, with the reason."""
    made: Calls = []
    monkeypatch.setattr(slurm, "power_down", lambda names, reason: made.append((names, reason)))
    monkeypatch.setattr(slurm, "node", lambda _: slurm.read_node("NodeName=train-1 NodeAddr=10.0.0.1 State=ALLOCATED"))
    return made


def test_a_node_with_a_job_is_powered_down(calls: Calls) -> None:
    requeue_jobs("train-1", working=lambda: True)
    assert calls == [(["train-1"], "corral: the machine shuts down")]


def test_a_node_without_a_job_is_left_to_its_next_machine(calls: Calls) -> None:
    requeue_jobs("train-1", working=lambda: False)
    assert calls == []


def test_a_node_that_somebody_drained_keeps_their_reason(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    drained = "NodeName=train-1 NodeAddr=10.0.0.1 State=ALLOCATED+DRAIN Reason=a fan is loud [ada@2026-11-26T10:00:00]"
    monkeypatch.setattr(slurm, "node", lambda _: slurm.read_node(drained))
    requeue_jobs("train-1", working=lambda: True)
    assert calls == [(["train-1"], "")]


def test_jobs_end_after_they_are_requeued() -> None:
    """systemd stops in the reverse order of starts, and ends what has no order at once."""
    assert f"Before={SHUTDOWN}" in STEPS_DROP_IN.splitlines()


def test_the_scope_of_jobs_is_that_of_debians_slurmd() -> None:
    """As `systemctl list-units` showed it on a virtual machine."""
    assert "cpu-2_slurmstepd.scope" in steps_scopes("cpu-2")


def test_systemd_runs_a_command_of_the_agent() -> None:
    (stop,) = (line for line in SHUTDOWN_UNIT.splitlines() if line.startswith("ExecStop="))
    assert stop.split()[1] in COMMANDS


def test_slurmd_and_munge_still_run_while_jobs_are_requeued() -> None:
    (after,) = (line for line in SHUTDOWN_UNIT.splitlines() if line.startswith("After="))
    assert {"munge.service", "slurmd.service"} <= set(after.removeprefix("After=").split())
