"""State that slurmctld would not save: one update of nodes and one of a job make it save."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from corral.agent.autoscaler.force_state_save import ForcedSave
from corral.agent.cluster.models import SlurmNode
from corral.agent.slurm import SlurmError

UP, BOOTING = frozenset({"IDLE", "CLOUD"}), frozenset({"IDLE", "CLOUD", "POWERING_UP"})
EARLY, LATE = "2026-11-22T09:00:00", "2026-11-22T10:00:00"


@dataclass
class Slurm:
    """Jobs by their state, and what was output."""

    running: str = ""
    configuring: str = ""
    comment: str = "(null)"
    ended: str = ""
    calls: list[str] = field(default_factory=list)

    def set_addresses(self, addresses: Mapping[str, str]) -> None:
        self.calls.append(f"{' '.join(addresses)} at {' '.join(addresses.values())}")

    def squeue(self, *arguments: str) -> str:
        if any("admin_comment" in word for word in arguments):
            return f"{self.comment}\n"
        return self.running if "--states=running" in arguments else self.configuring

    def scontrol(self, *arguments: str) -> str:
        if arguments[1] == f"jobid={self.ended}":
            raise SlurmError("Job/step already completing or completed")
        self.calls.append(" ".join(arguments))
        return ""


def node(name: str, states: frozenset[str] = UP, started: str = LATE) -> SlurmNode:
    return SlurmNode(name=name, states=states, address=f"10.0.0.{name[-1]}", started=started)


def test_nodes_that_have_registered_are_updated_with_one_call() -> None:
    slurm = Slurm()
    ForcedSave(commands=slurm).save_new([node("a-1"), node("a-2"), node("a-3", BOOTING)])
    assert slurm.calls == ["a-1 a-2 at 10.0.0.1 10.0.0.2"]


def test_a_saved_node_is_not_updated_again() -> None:
    slurm = Slurm()
    saving = ForcedSave(commands=slurm)
    for _ in range(3):
        saving.save_new([node("a-1")])
    assert slurm.calls == ["a-1 at 10.0.0.1"]


def test_a_node_that_has_registered_again_is_updated_again() -> None:
    slurm = Slurm()
    saving = ForcedSave(commands=slurm)
    for started in (EARLY, LATE):
        saving.save_new([node("a-1", started=started)])
    assert slurm.calls == ["a-1 at 10.0.0.1"] * 2


def test_one_of_the_jobs_that_have_started_is_updated_unchanged() -> None:
    slurm = Slurm(configuring="7\n8\n9\n", comment="corral: for ann")
    saving = ForcedSave(commands=slurm)
    saving.save_new([])
    slurm.configuring = "9\n"
    saving.save_new([])
    assert slurm.calls == ["update jobid=7 AdminComment=corral: for ann"]


def test_the_next_job_is_updated_if_one_has_ended() -> None:
    slurm = Slurm(configuring="7\n8\n", ended="7")
    saving = ForcedSave(commands=slurm)
    saving.save_new([])
    slurm.configuring = ""
    saving.save_new([])
    assert slurm.calls == ["update jobid=8 AdminComment="]


def test_a_new_autoscaler_does_not_know_what_is_saved() -> None:
    slurm = Slurm(running="12\n3\n")
    ForcedSave(commands=slurm).save_new([])
    assert slurm.calls == ["update jobid=3 AdminComment="]


def test_a_failed_update_is_repeated() -> None:
    slurm = Slurm()
    saving = ForcedSave(commands=slurm)
    slurm.squeue = lambda *_: (_ for _ in ()).throw(SlurmError("away"))  # type: ignore[method-assign]
    with pytest.raises(SlurmError, match="away"):
        saving.save_new([])
    del slurm.squeue
    slurm.running = "3\n"
    saving.save_new([])
    assert slurm.calls == ["update jobid=3 AdminComment="]
