"""Simulated clusters: under any faults every job ends once, and no machine is paid for in vain. See `sim`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sim import first_seed
from sim.faults import Fault
from sim.invariants import check, violations
from sim.mutations import mutations
from sim.simulation import new_simulation, run_simulation

pytestmark = pytest.mark.long
SIMULATIONS = 300  # `make sim N=5000` runs more
# Seeds that once broke an invariant, or that showed an invariant to be wrong.
KNOWN_SEEDS = (
    777396,  # the second machine of a node was terminated while the first one hung
    300002371,  # the second machine of a node ended a minute before the first one
    300010055,  # a job's machine in one zone ended when the job got another in that zone
    300012917,  # a node that was to be replaced went DOWN first
    129700787,  # a resume that had been given up was served again after its suspend, as the autoscaler had been killed
    740001054,  # EC2 throttled an end for so long that the next job began first; nothing was wrong but the invariant
    217967015,  # a crash left a request; another offer served it after all first machines had ended: the invariant
    5002529,  # a person drained a node while its launch failed, and the reason of the failure replaced theirs
    267825093,  # EC2 throttled the end of machines that did not boot, and each retry counted them again
)


@pytest.mark.parametrize("part", range(SIMULATIONS // 10))
def test_every_invariant_holds_in_every_simulation(part: int) -> None:
    first = first_seed() + 10 * part
    assert {seed: found for seed in range(first, first + 10) if (found := violations(seed))} == {}


@pytest.mark.parametrize("seed", KNOWN_SEEDS)
def test_every_invariant_holds_in_simulations_that_broke_one(seed: int) -> None:
    assert violations(seed) == ()


def test_a_seed_always_gives_the_same_simulation() -> None:
    first, second = run_simulation(11), run_simulation(11)
    assert (first.ec2.calls, first.journal.counts) == (second.ec2.calls, second.journal.counts)


@pytest.mark.parametrize("seed", [1, 2, 3, 6, 7, 9, 11])  # of clusters with a static node
def test_a_queue_whose_machines_never_boot_launches_none_while_it_is_stopped(seed: int) -> None:
    simulation = new_simulation(seed)
    simulation.faults.listed = (Fault(kind="does not boot", since=0.0, until=8000.0, chance=1.0),)
    assert check(simulation) == ()


@pytest.mark.parametrize(
    "text",
    [
        "without PowerUp(nodes=_static_nodes_off(settled, cluster.static, stopped))",
        "without Undrain(nodes=_recovered(settled, held))",
    ],
)
def test_a_decision_that_is_broken_on_purpose_is_noticed(text: str) -> None:
    """In its own process, because a mutation replaces modules. `make sim` runs more mutations."""
    (number,) = (number for number, mutation in enumerate(mutations()) if mutation.text == text)
    command = [sys.executable, "-m", "sim.mutations", "--one", str(number)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 300
