"""The actions for differences between Slurm and EC2: facts and a clock in, actions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.agent.autoscaler.decide import (
    Action,
    ClusterState,
    DisablePartition,
    MarkDown,
    PowerUp,
    Replace,
    Terminate,
    Undrain,
    decide,
    needs_stopped_queues,
)
from corral.agent.cluster.models import Instance, SlurmNode
from corral.agent.cluster.state import AutoscalerState, BootFailures
from corral.agent.slurm import read_node

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


def cluster(
    nodes: Sequence[SlurmNode], instances: Sequence[Instance], static: str = "", requests: str = "", stopped: str = ""
) -> ClusterState:
    return ClusterState(
        nodes=nodes,
        shown=instances,
        static=frozenset(static.split()),
        requested=frozenset(requests.split()),
        versions={"train/spot": "2"},
        now=NOW,
        stopped_queues=frozenset(stopped.split()),
    )


def decided(
    nodes: Sequence[SlurmNode],
    instances: Sequence[Instance],
    *,
    wrong_for: float = LONG,
    static: str = "",
    requests: str = "",
) -> list[Action]:
    """The actions where whatever looks wrong has looked so for this time."""
    keys = [*(one.name for one in nodes), *(one.instance_id for one in instances)]
    state_before = AutoscalerState(wrong_since=dict.fromkeys(keys, NOW - wrong_for))
    return list(decide(cluster(nodes, instances, static, requests), state_before)[0])


def test_nodes_with_their_machines_are_left_alone() -> None:
    nodes = [node("train-1"), node("train-2", "IDLE+CLOUD+POWERED_DOWN")]
    assert decided(nodes, [instance("train-1")], static="train-1") == []


def test_an_instance_whose_node_is_off_is_terminated() -> None:
    off = node("train-1", "IDLE+CLOUD+POWERED_DOWN")
    assert decided([off], [instance("train-1")]) == [Terminate(instance_ids=("i-train-1",), reason="no node wants it")]


def test_an_instance_of_a_removed_node_is_terminated() -> None:
    assert decided([], [instance("old-1")]) == [Terminate(instance_ids=("i-old-1",), reason="no node wants it")]


def test_an_instance_that_was_just_launched_is_left_alone() -> None:
    """slurmctld may show the node as off for a moment after its request."""
    assert decided([node("train-1", "IDLE+CLOUD+POWERED_DOWN")], [instance("train-1")], wrong_for=SHORT) == []


def test_a_machine_whose_node_powers_down_is_left_to_slurm() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+POWERING_DOWN")], [instance("train-1")]) == []


def test_a_node_whose_machine_is_gone_is_marked_down() -> None:
    assert decided([node("train-1", "ALLOCATED+CLOUD")], []) == [
        MarkDown(nodes=("train-1",), reason="its machine is gone")
    ]


def test_a_node_that_somebody_drained_keeps_their_reason_when_its_machine_is_gone() -> None:
    drained = node("train-1", "ALLOCATED+CLOUD+DRAIN", reason="disk [ann@now]")
    assert decided([drained], []) == [MarkDown(nodes=("train-1",), reason="its machine is gone", keeps_reason=True)]


def test_a_node_is_not_marked_down_again_while_its_job_completes() -> None:
    assert decided([node("train-1", "COMPLETING+CLOUD+POWER_DOWN")], []) == []


def test_a_requested_node_is_left_to_its_request() -> None:
    assert decided([node("train-1", "ALLOCATED+CLOUD+POWERING_UP")], [], requests="train-1") == []


def test_a_launch_that_ec2_does_not_show_yet_is_waited_for() -> None:
    assert decided([node("train-1", "ALLOCATED+CLOUD+POWERING_UP")], [], wrong_for=SHORT) == []


def test_the_machine_whose_address_slurm_does_not_use_is_terminated() -> None:
    two = [instance("train-1", "i-a", "10.0.0.9"), instance("train-1", "i-b", "10.0.0.1")]
    assert decided([node("train-1")], two) == [Terminate(instance_ids=("i-a",), reason="its node has another")]


def test_a_node_that_slurmctld_set_down_is_marked_down_with_its_machine() -> None:
    down = node("train-1", "DOWN+CLOUD+NOT_RESPONDING", reason="Not responding [slurm@2026-11-21T11:00:00]")
    assert decided([down], [instance("train-1")]) == [MarkDown(nodes=("train-1",), reason="it did not answer")]


def test_a_node_that_an_administrator_took_down_stays() -> None:
    assert (
        decided([node("train-1", "DOWN+CLOUD", reason="disk [ann@2026-11-21T11:00:00]")], [instance("train-1")]) == []
    )


def test_a_static_node_is_powered_up_at_once() -> None:
    off = [node(f"train-{number}", "IDLE+CLOUD+POWERED_DOWN") for number in (1, 2)]
    assert decided(off, [], wrong_for=0.0, static="train-1") == [PowerUp(nodes=("train-1",))]


def test_a_drained_static_node_stays_off() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+DRAIN+POWERED_DOWN")], [], static="train-1") == []


def test_a_resolved_difference_is_not_remembered() -> None:
    state_before = AutoscalerState(wrong_since={"train-1": NOW - LONG})
    assert decide(cluster([node("train-1")], [instance("train-1")]), state_before) == ((), AutoscalerState())


ENDED = replace(instance("train-1", "i-a"), state="terminated", address="", offer="train/spot", launched_at=NOW - 60)


def test_a_node_that_was_just_requested_again_is_not_blamed_for_its_former_machine() -> None:
    assert decided([node("train-1", "ALLOCATED+CLOUD+POWERING_UP")], [ENDED], wrong_for=0.0) == []


def test_a_silent_machine_is_terminated_before_its_jobs_run_elsewhere() -> None:
    down = node("train-1", "DOWN+CLOUD+NOT_RESPONDING", reason="Not responding [slurm@2026-11-21T11:00:00]")
    found = decided([down], [instance("train-1")], wrong_for=0.0)
    assert found == [MarkDown(nodes=("train-1",), reason="it did not answer")]


def test_a_node_whose_machine_has_ended_is_marked_down_at_once() -> None:
    found = decided([node("train-1", "ALLOCATED+CLOUD")], [ENDED], wrong_for=0.0)
    assert found == [MarkDown(nodes=("train-1",), reason="its machine is gone")]


def test_a_node_with_a_newer_machine_is_not_marked_down() -> None:
    other = instance("train-1", "i-b", "10.0.0.2")
    assert decided([node("train-1", "ALLOCATED+CLOUD", "10.0.0.2")], [ENDED, other], wrong_for=0.0) == []


@pytest.mark.parametrize(
    ("reason", "backoff_s"),
    [
        ("Server.InsufficientInstanceCapacity", 600.0),
        ("Server.SpotInstanceTermination", 600.0),
        ("Client.VolumeLimitExceeded", 3600.0),
        ("Client.InternalError", 3600.0),
        ("Client.UserInitiatedShutdown", None),
    ],
)
def test_an_offer_whose_machine_ends_before_its_node_is_up_backs_off(reason: str, backoff_s: float | None) -> None:
    waking = node("train-1", "ALLOCATED+CLOUD+POWERING_UP")
    _, state_before = decide(cluster([waking], [replace(ENDED, reason=reason)]), AutoscalerState())
    assert {key: cold.until - NOW for key, cold in state_before.backoffs.items()} == (
        {"train/spot": backoff_s} if backoff_s else {}
    )


def test_an_offer_of_a_reservation_backs_off_for_half_a_minute_when_its_machine_ends() -> None:
    waking = node("train-1", "ALLOCATED+CLOUD+POWERING_UP")
    seen = cluster([waking], [replace(ENDED, reason="Server.InternalError")])
    _, state = decide(replace(seen, reserved=frozenset({"train/spot"})), AutoscalerState())
    assert state.backoffs["train/spot"].until - NOW == 30.0


def test_the_end_of_a_machine_that_was_up_does_not_back_off_its_offer() -> None:
    broken = replace(ENDED, reason="Server.InternalError")
    assert decide(cluster([node("train-1", "ALLOCATED+CLOUD")], [broken]), AutoscalerState())[1].backoffs == {}


def test_a_node_whose_machine_ended_before_it_was_up_is_marked_down_ten_seconds_later() -> None:
    waking = node("train-1", "ALLOCATED+CLOUD+POWERING_UP")
    found = [decided([waking], [ENDED], wrong_for=after) for after in (9.0, 10.0)]
    assert found == [[], [MarkDown(nodes=("train-1",), reason="its machine is gone")]]


def test_the_end_of_an_old_machine_does_not_back_off_its_offer() -> None:
    taken = replace(ENDED, reason="Server.SpotInstanceTermination", launched_at=NOW - 7200)
    assert decide(cluster([node("train-1")], [taken]), AutoscalerState())[1].backoffs == {}


def test_each_end_is_counted_once() -> None:
    waking = [node("train-1", "ALLOCATED+CLOUD+POWERING_UP")]
    own = replace(ENDED, reason="Client.InstanceInitiatedShutdown")
    _, once = decide(cluster(waking, [own]), AutoscalerState())
    _, twice = decide(cluster(waking, [own]), once)
    assert (once.failures["train"].count, twice.failures["train"].count) == (1, 1)


def failed(count: int) -> AutoscalerState:
    return AutoscalerState(failures={"train": BootFailures(count=count, since=NOW - 100)})


def test_a_queue_whose_machines_do_not_boot_is_stopped_after_the_tenth() -> None:
    off = [node("train-1", "IDLE+CLOUD+POWERED_DOWN")]
    assert (decide(cluster(off, []), failed(9))[0], decide(cluster(off, []), failed(10))[0]) == (
        (),
        (DisablePartition(queue="train", reason="10 machines in a row did not boot"),),
    )


def test_a_stop_that_slurm_missed_is_repeated() -> None:
    off = [node("train-1", "IDLE+CLOUD+POWERED_DOWN")]
    _, state_before = decide(cluster(off, []), failed(10))
    assert decide(cluster(off, []), state_before)[0] == (
        DisablePartition(queue="train", reason="10 machines in a row did not boot"),
    )


def test_a_queue_that_is_opened_again_has_ten_more_boots() -> None:
    off = [node("train-1", "IDLE+CLOUD+POWERED_DOWN")]
    assert decide(cluster(off, [], stopped="train"), failed(10)) == ((), AutoscalerState())


def test_a_static_node_is_not_powered_up_when_its_queue_is_stopped() -> None:
    off = [node("train-1", "IDLE+CLOUD+POWERED_DOWN")]
    found, _ = decide(cluster(off, [], static="train-1"), failed(10))
    assert found == (DisablePartition(queue="train", reason="10 machines in a row did not boot"),)


@pytest.mark.parametrize(("stopped", "woken"), [("train", ("cpu-1",)), ("", ("cpu-1", "train-1"))])
def test_static_nodes_of_a_stopped_queue_stay_off_until_it_is_open(stopped: str, woken: tuple[str, ...]) -> None:
    off = [node(name, "IDLE+CLOUD+POWERED_DOWN") for name in ("train-1", "cpu-1")]
    assert decide(cluster(off, [], static="train-1 cpu-1", stopped=stopped), AutoscalerState())[0] == (
        PowerUp(nodes=woken),
    )


@pytest.mark.parametrize(
    ("states", "state_before", "is_needed"),
    [
        ("IDLE+CLOUD", AutoscalerState(), False),
        ("IDLE+CLOUD+POWERED_DOWN", AutoscalerState(), True),
        ("IDLE+CLOUD", AutoscalerState(failures={"train": BootFailures(count=1, since=NOW)}), True),
    ],
    ids=["all are there", "one is off", "boots have failed"],
)
def test_stopped_queues_are_queried_only_if_needed(states: str, state_before: AutoscalerState, is_needed: bool) -> None:
    assert needs_stopped_queues(cluster([node("train-1", states)], [], static="train-1"), state_before) == is_needed


def test_a_later_machine_that_boots_resets_the_count() -> None:
    up = replace(instance("train-1"), launched_at=NOW - 50)
    assert decide(cluster([node("train-1")], [up]), failed(10)) == ((), AutoscalerState())


def test_an_earlier_machine_does_not_reset_the_count() -> None:
    up = replace(instance("train-1"), launched_at=NOW - 5000)
    assert decide(cluster([node("train-1")], [up]), failed(9))[1].failures["train"].count == 9


OLD = replace(instance("train-1"), offer="train/spot", version="1")


@pytest.mark.parametrize(
    ("states", "replaced"),
    [("IDLE", True), ("ALLOCATED", False), ("MIXED", False), ("IDLE+COMPLETING", False), ("IDLE+DRAIN", False)],
)
def test_an_outdated_machine_is_replaced_when_idle(states: str, replaced: bool) -> None:
    found = decided([node("train-1", f"{states}+CLOUD")], [OLD])
    assert found == ([Replace(nodes=("train-1",), reason="its launch template is outdated")] if replaced else [])


def test_a_machine_of_a_removed_offer_is_outdated() -> None:
    assert decided([node("train-1")], [replace(OLD, offer="train/gone")]) != []


def test_a_machine_of_the_newest_template_is_not_outdated() -> None:
    assert decided([node("train-1")], [replace(OLD, version="2")]) == []


def in_zones(*zones: str, states: str = "IDLE", reserved: str = "") -> list[Action]:
    """What is done about nodes of a queue with EFA that are in these zones."""
    nodes = [node(f"train-{number}", f"{states}+CLOUD") for number, _ in enumerate(zones, start=1)]
    machines = [replace(instance(f"train-{number}"), offer=zone) for number, zone in enumerate(zones, start=1)]
    seen = replace(cluster(nodes, machines), zones={zone: zone for zone in zones}, reserved=frozenset(reserved.split()))
    return list(decide(seen, AutoscalerState())[0])


def test_idle_nodes_of_an_efa_queue_stay_in_one_zone() -> None:
    why = "the idle nodes of its queue are in another zone"
    assert in_zones("az1", "az2", "az2") == [Replace(nodes=("train-1",), reason=why)]


def test_idle_nodes_in_reserved_capacity_stay_before_those_of_other_markets() -> None:
    why = "the idle nodes of its queue are in another zone"
    assert in_zones("az1", "az2", "az2", reserved="az1") == [Replace(nodes=("train-2", "train-3"), reason=why)]


def test_nodes_with_jobs_may_be_in_several_zones() -> None:
    assert in_zones("az1", "az2", states="ALLOCATED") == []


SICK = "corral: i-0a: GPU 3 has fallen off the bus"


@pytest.mark.parametrize(("states", "replaced"), [("IDLE+DRAIN", True), ("MIXED+DRAIN", False), ("IDLE", False)])
def test_a_sick_machine_is_replaced_when_it_is_drained_and_idle(states: str, replaced: bool) -> None:
    found = decided([node("train-1", f"{states}+CLOUD", reason=SICK)], [instance("train-1", "i-0a")])
    assert found == ([Replace(nodes=("train-1",), reason="its machine is sick", keeps_reason=True)] if replaced else [])


def test_a_node_returns_to_service_when_its_sick_machine_is_gone() -> None:
    off = node("train-1", "IDLE+CLOUD+DRAIN+POWERED_DOWN", reason=SICK)
    on = node("train-2", "IDLE+CLOUD+DRAIN", reason=SICK)
    assert decided([off, on], [instance("train-2", "i-0b")]) == [Undrain(nodes=("train-1", "train-2"))]


def test_a_machine_that_slurm_drained_is_replaced_and_its_node_returns_to_service() -> None:
    reason = "Duplicate jobid [slurm@now]"
    on = node("train-1", "IDLE+CLOUD+DRAIN", reason=reason)
    off = node("train-2", "IDLE+CLOUD+DRAIN+POWERED_DOWN", reason=reason)
    assert decided([on, off], [instance("train-1", "i-0a")]) == [
        Replace(nodes=("train-1",), reason="its machine is sick", keeps_reason=True),
        Undrain(nodes=("train-2",)),
    ]


def test_a_node_that_somebody_drained_stays_as_it_is() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+DRAIN", reason="disk [ann@now]")], [instance("train-1")]) == []


def test_a_node_that_the_autoscaler_set_down_returns_to_service_when_it_is_off() -> None:
    off = node("train-1", "DOWN+CLOUD+POWERED_DOWN", reason="corral: its machine is gone [root@now]")
    assert decided([off], []) == [Undrain(nodes=("train-1",))]


def test_a_node_that_an_administrator_drained_stays_so() -> None:
    assert decided([node("train-1", "IDLE+CLOUD+DRAIN+POWERED_DOWN", reason="disk [ann@now]")], []) == []


STATES = st.sampled_from(["IDLE+CLOUD", "ALLOCATED+CLOUD+POWERING_UP", "IDLE+CLOUD+POWERED_DOWN", "DOWN+CLOUD"])
NODES = st.dictionaries(st.integers(1, 6).map("train-{}".format), STATES)
INSTANCES = st.lists(st.integers(1, 8).map("train-{}".format), max_size=10)


@given(states=NODES, launched=INSTANCES)
def test_executed_actions_leave_nothing_to_do(states: dict[str, str], launched: list[str]) -> None:
    nodes = [node(name, text, reason="Not responding" if "DOWN+" in text else "") for name, text in states.items()]
    instances = [instance(name, f"i-{number}") for number, name in enumerate(launched)]
    ended, off = set[str](), set[str]()
    for action in decided(nodes, instances):
        if isinstance(action, Terminate):
            ended.update(action.instance_ids)
        elif isinstance(action, MarkDown):
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
