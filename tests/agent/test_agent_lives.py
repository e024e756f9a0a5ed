"""Clusters lived in memory: whatever goes wrong, jobs end once, and nothing that costs money stays. See `sim`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sim.claims import broken, judged
from sim.faults import Fault
from sim.life import begun, lived
from sim.mutations import mutations

LIVES = 60  # `make sim N=5000` lives more


@pytest.mark.parametrize("first", range(1, LIVES + 1, 10))
def test_what_must_hold_holds_in_every_life(first: int) -> None:
    assert {seed: broken(seed) for seed in range(first, first + 10) if broken(seed)} == {}


def test_a_seed_is_always_the_same_life() -> None:
    first, second = lived(11), lived(11)
    assert (first.ec2.calls, first.journal.told) == (second.ec2.calls, second.journal.told)


@pytest.mark.parametrize("seed", [1, 2, 3, 6, 7, 9, 11])  # of clusters with a node that is always there
def test_a_queue_whose_machines_never_boot_launches_none_while_it_is_stopped(seed: int) -> None:
    life = begun(seed)
    life.faults.listed = (Fault(kind="does not boot", since=0.0, until=8000.0, chance=1.0),)
    assert judged(life) == ()


@pytest.mark.parametrize(
    "text",
    [
        "without Wake(nodes=_asleep(settled, world.static, stopped))",
        "without Undrain(nodes=_healed(settled, held))",
    ],
)
def test_a_decision_that_is_broken_on_purpose_is_noticed(text: str) -> None:
    """A process of its own, since it breaks the modules that it has. `make sim` breaks more of them."""
    (number,) = (place for place, one in enumerate(mutations()) if one.text == text)
    command = [sys.executable, "-m", "sim.mutations", "--one", str(number)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 300
