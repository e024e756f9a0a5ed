"""Expiring capacity blocks: no launch and no new job from 40 minutes before, no machine 30 minutes before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from corral.agent.autoscaler.capacity_block import Requeue, Vacate, back_off_ending_blocks
from corral.agent.autoscaler.capacity_block import block_steps as all_steps
from corral.agent.autoscaler.decide import MarkDown
from corral.agent.cluster.models import Instance, SlurmNode
from corral.agent.cluster.state import AutoscalerState

END = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC
ENDS = {"block": END}
NODES = tuple(SlurmNode(name=f"train-{n}", states=frozenset({"ALLOCATED", "CLOUD"})) for n in (1, 2, 3))
INSTANCES = (
    Instance(instance_id="i-1", node="train-1", state="running", address="10.0.0.1", offer="block"),
    Instance(instance_id="i-2", node="train-2", state="running", address="10.0.0.2", offer="block"),
    Instance(instance_id="i-3", node="train-3", state="running", address="10.0.0.3", offer="spot"),
)
NOBODY = frozenset[str]()
BOTH = frozenset({"i-1", "i-2"})


def block_steps(
    ends: Mapping[str, float],
    nodes: Sequence[SlurmNode],
    instances: Sequence[Instance],
    signalled: frozenset[str],
    now: float,
) -> tuple[Vacate | Requeue | MarkDown, ...]:
    """What to do where nothing was requeued yet."""
    return all_steps(ends, nodes, instances, signalled, NOBODY, now)


def test_nothing_is_done_more_than_forty_minutes_before() -> None:
    assert block_steps(ENDS, NODES, INSTANCES, NOBODY, END - 2401) == ()


def test_forty_minutes_before_only_the_blocks_nodes_are_drained() -> None:
    reason = "corral: capacity block, machines end at 13:43:20 UTC"
    both = ("train-1", "train-2")
    assert block_steps(ENDS, NODES, INSTANCES, NOBODY, END - 2400) == (
        Vacate(nodes=both, to_drain=both, reason=reason),
    )


def by_hand(node: SlurmNode) -> SlurmNode:
    return replace(node, states=node.states | {"DRAIN"}, reason="bad cable")


def test_a_node_that_a_person_has_drained_keeps_the_reason_and_its_jobs_are_signalled() -> None:
    nodes = (by_hand(NODES[0]), *NODES[1:])
    (leave,) = block_steps(ENDS, nodes, INSTANCES, NOBODY, END - 2400)
    assert isinstance(leave, Vacate)
    assert (leave.nodes, leave.to_drain) == (("train-1", "train-2"), ("train-2",))


def test_a_node_that_a_person_has_drained_is_marked_down_with_its_reason() -> None:
    nodes = (by_hand(NODES[0]), *NODES[1:])
    assert block_steps(ENDS, nodes, INSTANCES, NOBODY, END - 1825) == (
        MarkDown(nodes=("train-2",), reason="its capacity block ends"),
        MarkDown(nodes=("train-1",), reason="its capacity block ends", keeps_reason=True),
    )


def test_a_machine_whose_jobs_were_signalled_is_left_alone() -> None:
    assert block_steps(ENDS, NODES, INSTANCES, BOTH, END - 2000) == ()


def test_a_minute_before_the_end_what_is_left_is_requeued_and_has_time_to_save() -> None:
    assert block_steps(ENDS, NODES, INSTANCES, BOTH, END - 1860) == (Requeue(nodes=("train-1", "train-2")),)


def test_what_was_requeued_is_not_requeued_again() -> None:
    assert all_steps(ENDS, NODES, INSTANCES, BOTH, frozenset({"i-1"}), END - 1860) == (Requeue(nodes=("train-2",)),)


def test_an_autoscaler_that_comes_late_drains_before_it_requeues() -> None:
    (leave,) = block_steps(ENDS, NODES, INSTANCES, NOBODY, END - 1850)
    assert isinstance(leave, Vacate)


def test_at_the_last_safe_second_nodes_are_marked_down() -> None:
    late = MarkDown(nodes=("train-1", "train-2"), reason="its capacity block ends")
    assert block_steps(ENDS, NODES, INSTANCES, BOTH, END - 1825) == (late,)


def test_a_node_is_marked_down_once() -> None:
    gone = tuple(SlurmNode(name=f"train-{n}", states=frozenset({"IDLE", "POWERING_DOWN"})) for n in (1, 2))
    assert block_steps(ENDS, gone, INSTANCES, NOBODY, END - 1800) == ()


def test_nothing_is_launched_into_a_block_that_ends() -> None:
    cold = back_off_ending_blocks(AutoscalerState(), ENDS, END - 2400).backoffs
    assert {offer: (held.until, held.reason) for offer, held in cold.items()} == {
        "block": (END, "its capacity block ends at 14:13:20 UTC")
    }


def test_a_block_that_does_not_end_soon_is_launched_into() -> None:
    assert back_off_ending_blocks(AutoscalerState(), ENDS, END - 2401) == AutoscalerState()
