"""What mends a difference between Slurm and EC2: facts and a clock in, actions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.agent.decide import (
    Action,
    Forget,
    Replace,
    Stop,
    Terminate,
    Undrain,
    Wake,
    World,
    asks_for_stopped,
    decide,
)
from corral.agent.memory import Failures, Memory
from corral.agent.slurm import read_node
from corral.agent.world import Instance, SlurmNode

NOW = 1_790_000_000.0
LONG, SHORT = 300.0, 10.0
LINE = (
    "NodeName=train-1 Arch=x86_64 CoresPerSocket=24 State=DOWN+CLOUD+NOT_RESPONDING NodeAddr=10.64.0.67"
    " NodeHostName=ip-10-64-0-67 OS=Linux 6.1.0 #1 SMP Partitions=train"
    " Reason=Not responding [slurm@2026-11-21T12:00:00]"
)


def node(name: str, states: str = "IDLE+CLOUD", address: str = "10.0.0.1", reason: str = "") -> SlurmNode:
    return SlurmNode(name=name, states=frozenset(states.split("+")), address=address, reason=reason)


def instance(of: str, id: str = "", address: str = "10.0.0.1") -> Instance:
    return Instance(instance_id=id or f"i-{of}", node=of, state="running", address=address)


def world(
    nodes: Sequence[SlurmNode], instances: Sequence[Instance], static: str = "", notes: str = "", stopped: str = ""
) -> World:
    return World(
        nodes=nodes,
        shown=instances,
        static=frozenset(static.split()),
        asked_for=frozenset(notes.split()),
        versions={"train/spot": "2"},
        now=NOW,
        stopped=frozenset(stopped.split()),
    )


def decided(
    nodes: Sequence[SlurmNode],
    instances: Sequence[Instance],
    *,
    wrong_for: float = LONG,
    static: str = "",
    notes: str = "",
) -> list[Action]:
    """The actions where whatever looks wrong has looked so for this time."""
    keys = [*(one.name for one in nodes), *(one.instance_id for one in instances)]
    memory = Memory(wrong=dict.fromkeys(keys, NOW - wrong_for))
    return list(decide(world(nodes, instances, static, notes), memory)[0])


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


def test_a_node_that_somebody_drained_keeps_their_reason_when_its_machine_is_gone() -> None:
    drained = node("train-1", "ALLOCATED+CLOUD+DRAIN", reason="disk [ann@now]")
    assert decided([drained], []) == [Forget(nodes=("train-1",), why="its machine is gone", silently=True)]


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
    assert decided(off, [], wrong_for=0.0, static="train-1") == [Wake(nodes=("train-1",))]


def test_a_drained_static_node_sleeps() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+DRAIN+POWERED_DOWN")], [], static="train-1") == []


def test_what_is_right_again_is_not_remembered() -> None:
    memory = Memory(wrong={"train-1": NOW - LONG})
    assert decide(world([node("train-1")], [instance("train-1")]), memory) == ((), Memory())


ENDED = replace(instance("train-1", "i-a"), state="terminated", address="", offer="train/spot", launched_at=NOW - 60)


def test_a_node_that_was_just_asked_for_again_is_not_taken_for_its_former_machine() -> None:
    assert decided([node("train-1", "ALLOCATED+CLOUD+POWERING_UP")], [ENDED], wrong_for=0.0) == []


def test_a_machine_that_fell_silent_is_ended_before_its_jobs_run_elsewhere() -> None:
    down = node("train-1", "DOWN+CLOUD+NOT_RESPONDING", reason="Not responding [slurm@2026-11-21T11:00:00]")
    found = decided([down], [instance("train-1")], wrong_for=0.0)
    assert found == [Forget(nodes=("train-1",), why="it did not answer")]


def test_a_node_whose_machine_was_seen_to_end_is_forgotten_at_once() -> None:
    found = decided([node("train-1", "ALLOCATED+CLOUD")], [ENDED], wrong_for=0.0)
    assert found == [Forget(nodes=("train-1",), why="its machine is gone")]


def test_a_node_that_got_another_machine_is_not_forgotten_for_the_end_of_its_last() -> None:
    other = instance("train-1", "i-b", "10.0.0.2")
    assert decided([node("train-1", "ALLOCATED+CLOUD", "10.0.0.2")], [ENDED, other], wrong_for=0.0) == []


@pytest.mark.parametrize(
    ("reason", "rests"),
    [
        ("Server.InsufficientInstanceCapacity", 600.0),
        ("Server.SpotInstanceTermination", 600.0),
        ("Client.VolumeLimitExceeded", 3600.0),
        ("Client.InternalError", 3600.0),
        ("Client.UserInitiatedShutdown", None),
    ],
)
def test_an_offer_whose_machine_ends_before_its_node_is_up_rests(reason: str, rests: float | None) -> None:
    waking = node("train-1", "ALLOCATED+CLOUD+POWERING_UP")
    _, memory = decide(world([waking], [replace(ENDED, reason=reason)]), Memory())
    assert {key: cold.until - NOW for key, cold in memory.cold.items()} == ({"train/spot": rests} if rests else {})


def test_the_end_of_a_machine_that_was_up_says_nothing_of_its_offer() -> None:
    broken = replace(ENDED, reason="Server.InternalError")
    assert decide(world([node("train-1", "ALLOCATED+CLOUD")], [broken]), Memory())[1].cold == {}


def test_a_node_whose_machine_ended_before_it_was_up_is_forgotten_ten_seconds_later() -> None:
    waking = node("train-1", "ALLOCATED+CLOUD+POWERING_UP")
    found = [decided([waking], [ENDED], wrong_for=after) for after in (9.0, 10.0)]
    assert found == [[], [Forget(nodes=("train-1",), why="its machine is gone")]]


def test_the_end_of_a_machine_that_worked_for_long_says_nothing_of_its_offer() -> None:
    taken = replace(ENDED, reason="Server.SpotInstanceTermination", launched_at=NOW - 7200)
    assert decide(world([node("train-1")], [taken]), Memory())[1].cold == {}


def test_each_end_is_counted_once() -> None:
    waking = [node("train-1", "ALLOCATED+CLOUD+POWERING_UP")]
    own = replace(ENDED, reason="Client.InstanceInitiatedShutdown")
    _, once = decide(world(waking, [own]), Memory())
    _, twice = decide(world(waking, [own]), once)
    assert (once.failures["train"].count, twice.failures["train"].count) == (1, 1)


def failed(count: int) -> Memory:
    return Memory(failures={"train": Failures(count=count, since=NOW - 100)})


def test_a_queue_whose_machines_do_not_boot_is_stopped_after_the_tenth() -> None:
    off = [node("train-1", "IDLE+CLOUD+POWERED_DOWN")]
    assert (decide(world(off, []), failed(9))[0], decide(world(off, []), failed(10))[0]) == (
        (),
        (Stop(queue="train", why="10 machines in a row did not boot"),),
    )


def test_a_stop_that_slurm_did_not_hear_of_is_said_again() -> None:
    off = [node("train-1", "IDLE+CLOUD+POWERED_DOWN")]
    _, memory = decide(world(off, []), failed(10))
    assert decide(world(off, []), memory)[0] == (Stop(queue="train", why="10 machines in a row did not boot"),)


def test_a_stopped_queue_that_somebody_lets_go_on_has_ten_more() -> None:
    off = [node("train-1", "IDLE+CLOUD+POWERED_DOWN")]
    assert decide(world(off, [], stopped="train"), failed(10)) == ((), Memory())


def test_a_static_node_is_not_woken_in_the_turn_that_stops_its_queue() -> None:
    off = [node("train-1", "IDLE+CLOUD+POWERED_DOWN")]
    found, _ = decide(world(off, [], static="train-1"), failed(10))
    assert found == (Stop(queue="train", why="10 machines in a row did not boot"),)


@pytest.mark.parametrize(("stopped", "woken"), [("train", ("cpu-1",)), ("", ("cpu-1", "train-1"))])
def test_static_nodes_of_a_stopped_queue_sleep_until_it_goes_on(stopped: str, woken: tuple[str, ...]) -> None:
    off = [node(name, "IDLE+CLOUD+POWERED_DOWN") for name in ("train-1", "cpu-1")]
    assert decide(world(off, [], static="train-1 cpu-1", stopped=stopped), Memory())[0] == (Wake(nodes=woken),)


@pytest.mark.parametrize(
    ("states", "memory", "asks"),
    [
        ("IDLE+CLOUD", Memory(), False),
        ("IDLE+CLOUD+POWERED_DOWN", Memory(), True),
        ("IDLE+CLOUD", Memory(failures={"train": Failures(count=1, since=NOW)}), True),
    ],
    ids=["all are there", "one is off", "boots have failed"],
)
def test_whether_queues_are_stopped_is_asked_only_where_it_matters(states: str, memory: Memory, asks: bool) -> None:
    assert asks_for_stopped(world([node("train-1", states)], [], static="train-1"), memory) == asks


def test_a_machine_that_boots_after_them_ends_the_row() -> None:
    up = replace(instance("train-1"), launched_at=NOW - 50)
    assert decide(world([node("train-1")], [up]), failed(10)) == ((), Memory())


def test_a_machine_that_was_up_before_them_does_not() -> None:
    up = replace(instance("train-1"), launched_at=NOW - 5000)
    assert decide(world([node("train-1")], [up]), failed(9))[1].failures["train"].count == 9


OLD = replace(instance("train-1"), offer="train/spot", version="1")


@pytest.mark.parametrize(
    ("states", "replaced"),
    [("IDLE", True), ("ALLOCATED", False), ("MIXED", False), ("IDLE+COMPLETING", False), ("IDLE+DRAIN", False)],
)
def test_an_outdated_machine_is_replaced_when_no_job_uses_it(states: str, replaced: bool) -> None:
    found = decided([node("train-1", f"{states}+CLOUD")], [OLD])
    assert found == ([Replace(nodes=("train-1",), why="its launch template is outdated")] if replaced else [])


def test_a_machine_of_an_offer_that_is_no_more_is_outdated() -> None:
    assert decided([node("train-1")], [replace(OLD, offer="train/gone")]) != []


def test_a_machine_of_todays_template_is_not() -> None:
    assert decided([node("train-1")], [replace(OLD, version="2")]) == []


def in_zones(*zones: str, states: str = "IDLE") -> list[Action]:
    """What is done about nodes of a queue with EFA that are in these zones."""
    nodes = [node(f"train-{number}", f"{states}+CLOUD") for number, _ in enumerate(zones, start=1)]
    machines = [replace(instance(f"train-{number}"), offer=zone) for number, zone in enumerate(zones, start=1)]
    seen = replace(world(nodes, machines), zones={zone: zone for zone in zones})
    return list(decide(seen, Memory())[0])


def test_idle_nodes_of_a_queue_with_efa_stay_in_one_zone() -> None:
    why = "the idle nodes of its queue are in another zone"
    assert in_zones("az1", "az2", "az2") == [Replace(nodes=("train-1",), why=why)]


def test_nodes_with_jobs_may_be_in_several_zones() -> None:
    assert in_zones("az1", "az2", states="ALLOCATED") == []


SICK = "corral: i-0a: GPU 3 has fallen off the bus"


@pytest.mark.parametrize(("states", "replaced"), [("IDLE+DRAIN", True), ("MIXED+DRAIN", False), ("IDLE", False)])
def test_a_sick_machine_is_replaced_when_it_is_drained_and_idle(states: str, replaced: bool) -> None:
    found = decided([node("train-1", f"{states}+CLOUD", reason=SICK)], [instance("train-1", "i-0a")])
    assert found == ([Replace(nodes=("train-1",), why="its machine is sick", drained=True)] if replaced else [])


def test_a_node_is_used_again_when_the_machine_that_it_was_drained_for_is_gone() -> None:
    off = node("train-1", "IDLE+CLOUD+DRAIN+POWERED_DOWN", reason=SICK)
    on = node("train-2", "IDLE+CLOUD+DRAIN", reason=SICK)
    assert decided([off, on], [instance("train-2", "i-0b")]) == [Undrain(nodes=("train-1", "train-2"))]


def test_a_machine_that_slurm_itself_drained_is_replaced_and_its_node_used_again() -> None:
    reason = "Duplicate jobid [slurm@now]"
    on = node("train-1", "IDLE+CLOUD+DRAIN", reason=reason)
    off = node("train-2", "IDLE+CLOUD+DRAIN+POWERED_DOWN", reason=reason)
    assert decided([on, off], [instance("train-1", "i-0a")]) == [
        Replace(nodes=("train-1",), why="its machine is sick", drained=True),
        Undrain(nodes=("train-2",)),
    ]


def test_a_node_that_somebody_drained_stays_as_it_is() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+DRAIN", reason="disk [ann@now]")], [instance("train-1")]) == []


def test_a_node_that_the_keeper_set_down_is_used_again_when_it_is_off() -> None:
    off = node("train-1", "DOWN+CLOUD+POWERED_DOWN", reason="corral: its machine is gone [root@now]")
    assert decided([off], []) == [Undrain(nodes=("train-1",))]


def test_a_node_that_an_administrator_drained_stays_so() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+DRAIN+POWERED_DOWN", reason="disk [ann@now]")], []) == []


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
