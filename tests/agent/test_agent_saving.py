"""What slurmctld knows and does not save: the keeper says it once more, with a call for nodes and one for jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from corral.agent.saving import Saving
from corral.agent.slurm import SlurmError
from corral.agent.world import SlurmNode

UP, BOOTING = frozenset({"IDLE", "CLOUD"}), frozenset({"IDLE", "CLOUD", "POWERING_UP"})
EARLY, LATE = "2026-11-22T09:00:00", "2026-11-22T10:00:00"


@dataclass
class Slurm:
    """Jobs by their state, and what was said."""

    running: str = ""
    configuring: str = ""
    comment: str = "(null)"
    ended: str = ""
    told: list[str] = field(default_factory=list)

    def place(self, addresses: Mapping[str, str]) -> None:
        self.told.append(f"{' '.join(addresses)} at {' '.join(addresses.values())}")

    def squeue(self, *arguments: str) -> str:
        if any("admin_comment" in word for word in arguments):
            return f"{self.comment}\n"
        return self.running if "--states=running" in arguments else self.configuring

    def scontrol(self, *arguments: str) -> str:
        if arguments[1] == f"jobid={self.ended}":
            raise SlurmError("Job/step already completing or completed")
        self.told.append(" ".join(arguments))
        return ""


def node(name: str, states: frozenset[str] = UP, started: str = LATE) -> SlurmNode:
    return SlurmNode(name=name, states=states, address=f"10.0.0.{name[-1]}", started=started)


def test_nodes_that_have_registered_are_placed_with_one_call() -> None:
    slurm = Slurm()
    Saving(scheduler=slurm).look([node("a-1"), node("a-2"), node("a-3", BOOTING)])
    assert slurm.told == ["a-1 a-2 at 10.0.0.1 10.0.0.2"]


def test_what_is_saved_is_not_said_again() -> None:
    slurm = Slurm()
    saving = Saving(scheduler=slurm)
    for _ in range(3):
        saving.look([node("a-1")])
    assert slurm.told == ["a-1 at 10.0.0.1"]


def test_a_node_that_has_registered_anew_is_placed_again() -> None:
    slurm = Slurm()
    saving = Saving(scheduler=slurm)
    for started in (EARLY, LATE):
        saving.look([node("a-1", started=started)])
    assert slurm.told == ["a-1 at 10.0.0.1"] * 2


def test_of_the_jobs_that_have_begun_on_launched_nodes_one_is_told_as_it_is() -> None:
    slurm = Slurm(configuring="7\n8\n9\n", comment="corral: for ann")
    saving = Saving(scheduler=slurm)
    saving.look([])
    slurm.configuring = "9\n"
    saving.look([])
    assert slurm.told == ["update jobid=7 AdminComment=corral: for ann"]


def test_one_that_has_ended_meanwhile_leaves_it_to_the_next() -> None:
    slurm = Slurm(configuring="7\n8\n", ended="7")
    saving = Saving(scheduler=slurm)
    saving.look([])
    slurm.configuring = ""
    saving.look([])
    assert slurm.told == ["update jobid=8 AdminComment="]


def test_a_keeper_that_begins_does_not_know_what_is_saved() -> None:
    slurm = Slurm(running="12\n3\n")
    Saving(scheduler=slurm).look([])
    assert slurm.told == ["update jobid=3 AdminComment="]


def test_what_slurmctld_did_not_hear_is_said_again() -> None:
    slurm = Slurm()
    saving = Saving(scheduler=slurm)
    slurm.squeue = lambda *_: (_ for _ in ()).throw(SlurmError("away"))  # type: ignore[method-assign]
    with pytest.raises(SlurmError, match="away"):
        saving.look([])
    del slurm.squeue
    slurm.running = "3\n"
    saving.look([])
    assert slurm.told == ["update jobid=3 AdminComment="]
