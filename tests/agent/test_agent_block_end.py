"""Capacity blocks that end: no launch and no new job from 40 minutes before on, nothing left 30 minutes before."""

from __future__ import annotations

from corral.agent.block_end import Leave, closed, steps
from corral.agent.decide import Forget
from corral.agent.memory import Memory
from corral.agent.world import Instance, SlurmNode

END = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC
ENDS = {"block": END}
NODES = tuple(SlurmNode(name=f"train-{n}", states=frozenset({"ALLOCATED", "CLOUD"})) for n in (1, 2, 3))
INSTANCES = (
    Instance(instance_id="i-1", node="train-1", state="running", address="10.0.0.1", offer="block"),
    Instance(instance_id="i-2", node="train-2", state="running", address="10.0.0.2", offer="block"),
    Instance(instance_id="i-3", node="train-3", state="running", address="10.0.0.3", offer="spot"),
)
NOBODY = frozenset[str]()


def test_nothing_is_done_more_than_forty_minutes_before() -> None:
    assert steps(ENDS, NODES, INSTANCES, NOBODY, END - 2401) == ()


def test_forty_minutes_before_the_blocks_own_nodes_take_no_more_jobs() -> None:
    reason = "corral: capacity block, machines end at 13:43:20 UTC"
    assert steps(ENDS, NODES, INSTANCES, NOBODY, END - 2400) == (Leave(nodes=("train-1", "train-2"), reason=reason),)


def test_a_machine_whose_jobs_were_asked_is_left_alone() -> None:
    assert steps(ENDS, NODES, INSTANCES, frozenset({"i-1", "i-2"}), END - 2000) == ()


def test_at_the_last_safe_second_what_is_left_is_requeued() -> None:
    late = Forget(nodes=("train-1", "train-2"), why="its capacity block ends")
    assert steps(ENDS, NODES, INSTANCES, frozenset({"i-1", "i-2"}), END - 1825) == (late,)


def test_a_node_that_was_let_go_is_not_forgotten_again() -> None:
    gone = tuple(SlurmNode(name=f"train-{n}", states=frozenset({"IDLE", "POWERING_DOWN"})) for n in (1, 2))
    assert steps(ENDS, gone, INSTANCES, NOBODY, END - 1800) == ()


def test_nothing_is_launched_into_a_block_that_ends() -> None:
    cold = closed(Memory(), ENDS, END - 2400).cold
    assert {offer: (held.until, held.why) for offer, held in cold.items()} == {
        "block": (END, "its capacity block ends at 14:13:20 UTC")
    }


def test_a_block_that_does_not_end_soon_is_launched_into() -> None:
    assert closed(Memory(), ENDS, END - 2401) == Memory()
