"""What mends a difference between Slurm and EC2: facts and a clock in, actions out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from corral.agent.decide import Action, Forget, Seen, SlurmNode, Terminate, Wake, decide
from corral.agent.ec2 import Instance
from corral.agent.slurm import read_node

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LONG, SHORT = timedelta(minutes=5), timedelta(seconds=10)
LINE = (
    "NodeName=train-1 Arch=x86_64 CoresPerSocket=24 State=DOWN+CLOUD+NOT_RESPONDING NodeAddr=10.64.0.67"
    " NodeHostName=ip-10-64-0-67 OS=Linux 6.1.0 #1 SMP Partitions=train"
    " Reason=Not responding [slurm@2026-11-21T12:00:00]"
)


def node(name: str, states: str = "IDLE+CLOUD", address: str = "10.0.0.1", reason: str = "") -> SlurmNode:
    return SlurmNode(name=name, states=frozenset(states.split("+")), address=address, reason=reason)


def instance(of: str, id: str = "", address: str = "10.0.0.1") -> Instance:
    return Instance(instance_id=id or f"i-{of}", node=of, state="running", address=address)


def decided(
    nodes: list[SlurmNode], instances: list[Instance], *, wrong_for: timedelta = LONG, static: str = "", notes: str = ""
) -> list[Action]:
    """The actions where whatever looks wrong has looked so for this time."""
    keys = [*(one.name for one in nodes), *(one.instance_id for one in instances)]
    seen: Seen = dict.fromkeys(keys, NOW - wrong_for)
    words = {"static": frozenset(static.split()), "asked_for": frozenset(notes.split())}
    return list(decide(nodes, instances, **words, seen=seen, now=NOW)[0])


def test_nodes_with_their_machines_are_left_alone() -> None:
    nodes = [node("train-1"), node("train-2", "IDLE+CLOUD+POWERED_DOWN")]
    assert decided(nodes, [instance("train-1")], static="train-1") == []


def test_an_instance_whose_node_is_off_is_ended() -> None:
    off = node("train-1", "IDLE+CLOUD+POWERED_DOWN")
    assert decided([off], [instance("train-1")]) == [Terminate(instance_ids=("i-train-1",), why="no node wants it")]


def test_an_instance_of_a_node_that_is_no_more_is_ended() -> None:
    assert decided([], [instance("old-1")]) == [Terminate(instance_ids=("i-old-1",), why="no node wants it")]


def test_an_instance_that_was_just_launched_is_left_alone() -> None:
    """slurmctld may show the node as off for a moment after it asked for it."""
    assert decided([node("train-1", "IDLE+CLOUD+POWERED_DOWN")], [instance("train-1")], wrong_for=SHORT) == []


def test_a_machine_whose_node_is_being_powered_down_is_slurms_to_end() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+POWERING_DOWN")], [instance("train-1")]) == []


def test_a_node_whose_machine_is_gone_is_forgotten() -> None:
    assert decided([node("train-1", "ALLOCATED+CLOUD")], []) == [Forget(nodes=("train-1",), why="its machine is gone")]


def test_a_node_that_is_forgotten_is_not_forgotten_again_while_its_job_completes() -> None:
    assert decided([node("train-1", "COMPLETING+CLOUD+POWER_DOWN")], []) == []


def test_a_node_that_a_note_asks_for_is_left_to_the_note() -> None:
    assert decided([node("train-1", "ALLOCATED+CLOUD+POWERING_UP")], [], notes="train-1") == []


def test_a_launch_that_ec2_does_not_show_yet_is_waited_for() -> None:
    assert decided([node("train-1", "ALLOCATED+CLOUD+POWERING_UP")], [], wrong_for=SHORT) == []


def test_the_second_machine_of_a_node_is_ended_not_the_one_that_slurm_talks_to() -> None:
    two = [instance("train-1", "i-a", "10.0.0.9"), instance("train-1", "i-b", "10.0.0.1")]
    assert decided([node("train-1")], two) == [Terminate(instance_ids=("i-a",), why="its node has another")]


def test_a_node_that_slurmctld_gave_up_is_forgotten_with_its_machine() -> None:
    down = node("train-1", "DOWN+CLOUD+NOT_RESPONDING", reason="Not responding [slurm@2026-11-21T11:00:00]")
    assert decided([down], [instance("train-1")]) == [Forget(nodes=("train-1",), why="it did not answer")]


def test_a_node_that_an_administrator_took_down_stays() -> None:
    assert (
        decided([node("train-1", "DOWN+CLOUD", reason="disk [ann@2026-11-21T11:00:00]")], [instance("train-1")]) == []
    )


def test_a_static_node_is_woken_at_once() -> None:
    off = [node(f"train-{number}", "IDLE+CLOUD+POWERED_DOWN") for number in (1, 2)]
    assert decided(off, [], wrong_for=timedelta(0), static="train-1") == [Wake(nodes=("train-1",))]


def test_a_drained_static_node_sleeps() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+DRAIN+POWERED_DOWN")], [], static="train-1") == []


def test_what_is_right_again_is_not_remembered() -> None:
    seen = {"train-1": NOW - LONG}
    nothing: frozenset[str] = frozenset()
    found = decide([node("train-1")], [instance("train-1")], static=nothing, asked_for=nothing, seen=seen, now=NOW)
    assert found == ((), {})


STATES = st.sampled_from(["IDLE+CLOUD", "ALLOCATED+CLOUD+POWERING_UP", "IDLE+CLOUD+POWERED_DOWN", "DOWN+CLOUD"])
NODES = st.dictionaries(st.integers(1, 6).map("train-{}".format), STATES)
INSTANCES = st.lists(st.integers(1, 8).map("train-{}".format), max_size=10)


@given(states=NODES, launched=INSTANCES)
def test_what_was_done_leaves_nothing_to_do(states: dict[str, str], launched: list[str]) -> None:
    nodes = [node(name, text, reason="Not responding" if "DOWN+" in text else "") for name, text in states.items()]
    instances = [instance(name, f"i-{number}") for number, name in enumerate(launched)]
    ended, off = set[str](), set[str]()
    for action in decided(nodes, instances):
        if isinstance(action, Terminate):
            ended.update(action.instance_ids)
        elif isinstance(action, Forget):
            off.update(action.nodes)
    after = [node(one.name, "IDLE+CLOUD+POWERED_DOWN") if one.name in off else one for one in nodes]
    left = [one for one in instances if one.instance_id not in ended and one.node not in off]
    assert decided(after, left) == []


def test_a_node_is_read_from_scontrols_line() -> None:
    assert read_node(LINE) == SlurmNode(
        name="train-1",
        states=frozenset({"DOWN", "CLOUD", "NOT_RESPONDING"}),
        address="10.64.0.67",
        reason="Not responding [slurm@2026-11-21T12:00:00]",
    )
