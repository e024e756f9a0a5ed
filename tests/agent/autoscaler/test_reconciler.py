"""What the autoscaler launches and terminates in the box's EC2, and the calls that it makes to Slurm."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent.autoscalers import AutoscalerFixture, autoscaler_fixture
from agent.offered import offer, offering, tags, with_efa, without_efa
from agent.waiting import until
from box.vpc_fixtures import Clients, LaunchNetwork
from corral.agent.autoscaler.launch_planner import AT_ONCE, market_of, tags_of
from corral.agent.autoscaler.reconciler import ClusterSnapshot
from corral.agent.cluster.ec2_client import Ec2
from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.cluster.models import PowerRequest, SlurmNode
from corral.agent.cluster.state import AutoscalerState, Backoff, back_off
from corral.agent.errors import AgentError
from corral.box import control
from corral.box.client import BoxStatus
from corral.model.cluster import QueuePlan
from corral.model.enums import Market
from render.plans import dev

Making = Callable[..., AutoscalerFixture]


@pytest.fixture
def made(aws: Clients, launch_network: LaunchNetwork) -> Making:
    """An autoscaler of a cluster with these queues, whose offers have this capacity."""

    def make(
        capacities: Mapping[str, int | None], *queues: QueuePlan, cluster: str = "dev", known: object = None
    ) -> AutoscalerFixture:
        deployed = offering(aws, launch_network, capacities, cluster=cluster)
        memory = known if isinstance(known, AutoscalerState) else None
        plan = replace(dev(*queues), name=cluster, tags={"corral:base": "dev", "corral:cluster": cluster})
        return autoscaler_fixture(plan, deployed, Ec2(aws("ec2"), cluster), memory)

    return make


def offers_used(aws: Clients) -> list[str]:
    return [held["corral:offer"] for held in tags(aws)]


def nodes(aws: Clients) -> list[str]:
    return sorted({held["corral:nodes"] for held in tags(aws)})


@pytest.mark.parametrize("queue", [with_efa("open"), without_efa("open")], ids=["efa", "none"])
def test_slurm_gets_the_address_of_every_node(made: Making, queue: QueuePlan) -> None:
    calls = made({"open": None}, queue).request("resume", f"{queue.name}-[1-2]", f"{queue.name}-[1-2]")
    assert calls == [f"place {queue.name}-1=10.64.1.4 {queue.name}-2=10.64.1.5"]


def test_the_second_offer_is_used_if_the_first_has_no_capacity(aws: Clients, made: Making) -> None:
    made({"full": 0, "open": None}, with_efa("full", "open")).request("resume", "train-[1-2]", "train-[1-2]")
    assert offers_used(aws) == ["open", "open"]


def test_the_second_offer_is_not_used_if_the_first_has_capacity(aws: Clients, made: Making) -> None:
    made({"first": None, "second": None}, with_efa("first", "second")).request("resume", "train-[1-2]", "train-[1-2]")
    assert offers_used(aws) == ["first", "first"]


def test_the_market_of_a_launch_is_that_of_its_offer() -> None:
    queue = with_efa("first")
    assert (market_of(queue, "first"), market_of(queue, "gone")) == ("on-demand", None)


def test_an_offer_without_capacity_is_not_tried_while_it_backs_off(aws: Clients, made: Making) -> None:
    head = made({"full": 0, "open": None}, without_efa("full", "open"))
    head.request("resume", "cpu-1", key="1-1")
    head.request("resume", "cpu-2", key="2-1")
    assert (head.autoscaler.state.backoffs["full"].refusals, offers_used(aws)) == (1, ["open", "open"])


def test_an_offer_is_tried_again_after_its_backoff(made: Making) -> None:
    head = made({"full": 0, "open": None}, without_efa("full", "open"))
    head.request("resume", "cpu-1", key="1-1")
    head.clock.now += 601
    head.request("resume", "cpu-2", key="2-1")
    assert head.autoscaler.state.backoffs["full"].until == head.clock.now + 1200


def test_nodes_that_must_be_together_do_not_share_two_offers(aws: Clients, made: Making) -> None:
    made({"small": 2, "open": None}, with_efa("small", "open")).request("resume", "train-[1-3]", "train-[1-3]")
    assert offers_used(aws) == ["open", "open", "open"]


def test_a_partial_launch_is_released_if_the_next_call_has_no_capacity(
    aws: Clients, made: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.agent.autoscaler.launch_planner.AT_ONCE", 2)
    made({"small": 2, "open": None}, with_efa("small", "open")).request("resume", "train-[1-3]", "train-[1-3]")
    assert offers_used(aws) == ["open", "open", "open"]


def test_nodes_that_cannot_be_together_get_no_machine(
    aws: Clients, made: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.agent.autoscaler.launch_planner.AT_ONCE", 2)
    calls = made({"small": 2}, with_efa("small")).request("resume", "train-[1-3]", "train-[1-3]")
    assert ([line.split(":")[0] for line in calls], tags(aws)) == (["notify 1", "power down train-[1-3]"], [])


def test_nodes_that_need_not_be_together_take_any_capacity(aws: Clients, made: Making) -> None:
    calls = made({"small": 2, "smaller": 1}, without_efa("small", "smaller")).request(
        "resume", "cpu-[1-5]", "cpu-[1-5]"
    )
    assert [line.split(":")[0] for line in calls] == [
        "place cpu-1=10.64.1.4 cpu-2=10.64.1.5 cpu-3=10.64.1.6",
        "notify 1",  # before its nodes are powered down: afterwards there is no one to notify
        "power down cpu-[4-5]",
    ]


def test_users_are_notified_of_each_offers_error_and_the_next_try(made: Making) -> None:
    head = made({"small": 1}, without_efa("small"))
    head.clock.now = 1_790_000_000.0  # 14:13:20 UTC
    assert head.request("resume", "cpu-[1-3]", "cpu-[1-3]")[1:] == [
        "notify 1: corral: no machines for cpu-[2-3]: small: no capacity for cpu-[2-3], tried again at 14:23 UTC",
        "power down cpu-[2-3]: corral: small: no capacity for cpu-[2-3], tried again at 14:23 UTC",
    ]


PROSE = "You can get it by choosing us-east-1a, us-east-1c."


def test_users_are_notified_of_the_codes_of_refusals_only(made: Making) -> None:
    def cold(kind: LaunchErrorKind, code: str, minutes: int) -> Backoff:
        return Backoff(until=1_790_000_000.0 + 60 * minutes, refusals=1, kind=kind, reason=f"{code}: {PROSE}")

    full, limit = "InsufficientInstanceCapacity", "VcpuLimitExceeded"
    known = {
        "a": cold(LaunchErrorKind.CAPACITY, full, 10),
        "b": cold(LaunchErrorKind.QUOTA, limit, 60),
        "c": cold(LaunchErrorKind.CAPACITY, full, 20),
    }
    head = made({}, without_efa("a", "b", "c"), known=AutoscalerState(backoffs=known))
    head.clock.now = 1_790_000_000.0  # 14:13:20 UTC
    why = f"a, c: {full}; b: {limit}, tried again at 14:23 UTC"
    assert head.request("resume", "cpu-1", "cpu-1") == [
        f"notify 1: corral: no machines for cpu-1: {why}",
        f"power down cpu-1: corral: {why}",
    ]


def test_only_the_event_of_the_refusal_has_ec2s_message(made: Making, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="corral.agent")
    made({"a": 0, "b": 0}, without_efa("a", "b")).request("resume", "cpu-1", "cpu-1")
    assert [(line.partition(" ")[0], "sufficient" in line) for line in caplog.messages] == [
        ("refused", True),
        ("refused", True),
        ("launch-failed", False),
    ]


def test_a_failed_notification_blocks_no_node(made: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise AgentError("squeue failed: Invalid job id specified")

    head = made({}, without_efa())
    monkeypatch.setattr(head.scheduler, "notify_waiting", gone)
    calls = head.request("resume", "cpu-1", "cpu-1")
    assert (calls, head.left) == (["power down cpu-1: corral: the queue has no offer"], [])


def test_nothing_is_launched_for_a_queue_that_is_stopped(aws: Clients, made: Making) -> None:
    head = made({"open": None}, with_efa("open"), without_efa("open"))
    head.autoscaler.stopped_queues = lambda: frozenset({"train"})
    calls = head.request("resume", "cpu-1,train-[1-2]", "train-[1-2]")
    assert (calls, nodes(aws)) == (
        [
            "notify 1: corral: no machines for train-[1-2]: queue train is stopped",
            "power down train-[1-2]: corral: queue train is stopped",
            "place cpu-1=10.64.1.4",
        ],
        ["cpu-1"],
    )


def test_nothing_is_launched_while_the_stopped_queues_are_unknown(aws: Clients, made: Making) -> None:
    def silent() -> frozenset[str]:
        raise AgentError("Unable to contact slurm controller")

    head = made({"open": None}, without_efa("open"))
    head.autoscaler.stopped_queues = silent
    head.request("resume", "cpu-1")
    assert ([request.verb for request in head.left], nodes(aws)) == (["resume"], [])


def test_static_nodes_of_a_stopped_queue_are_powered_up_when_it_is_opened(made: Making) -> None:
    head = made({"open": None}, replace(without_efa("open"), min_nodes=1))
    head.scheduler.known = (SlurmNode(name="cpu-1", states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"})),)
    for stopped in (frozenset({"cpu"}), frozenset[str]()):
        head.autoscaler.stopped_queues = lambda stopped=stopped: stopped
        head.scheduler.calls.append(f"stopped: {' '.join(stopped)}")
        head.autoscaler.reconcile(frozenset(), ())
    assert head.scheduler.calls == ["stopped: cpu", "stopped: ", "power up cpu-1"]


def test_the_event_of_an_action_has_its_reason(aws: Clients, made: Making, tmp_path: Path) -> None:
    plan = made({"open": None}, replace(without_efa("open"), min_nodes=1)).autoscaler
    head = autoscaler_fixture(plan.plan, plan.deployed, Ec2(aws("ec2"), "dev"), events=tmp_path / "events.jsonl")
    head.scheduler.known = (SlurmNode(name="cpu-1", states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"})),)
    head.autoscaler.stopped_queues = frozenset
    head.autoscaler.reconcile(frozenset(), ())
    (event,) = (json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines())
    assert (event["event"], event["nodes"], event["reason"]) == ("powered-up", "cpu-1", "static node")


def test_a_block_that_has_not_begun_is_tried_the_second_it_begins(aws: Clients, made: Making) -> None:
    head = made({"block": None}, without_efa("block"))
    head.clock.now = 1_790_000_000.0  # 14:13:20 UTC
    head.autoscaler.block_begins = {"block": head.clock.now + 1500}
    calls = head.request("resume", "cpu-1", key="1-1")
    why = "block: its capacity block begins at 2026-09-21 14:38 UTC, tried again at 14:38 UTC"
    head.clock.now += 1500
    head.request("resume", "cpu-1", key="2-1")
    assert (calls, nodes(aws)) == ([f"power down cpu-1: corral: {why}"], ["cpu-1"])


def test_a_published_node_is_in_the_snapshot(made: Making) -> None:
    """Else whoever keeps the names to what there is takes it away."""
    head = made({"open": None}, without_efa("open"))
    head.autoscaler.reconcile(frozenset(), ())
    head.request("resume", "cpu-1")
    assert head.autoscaler.snapshot == ClusterSnapshot(addresses={"cpu-1": "10.64.1.4"}, running={})


def test_a_queue_without_offers_is_reported(made: Making) -> None:
    calls = made({}, without_efa()).request("resume", "cpu-1")
    assert calls[0] == "power down cpu-1: corral: the queue has no offer"


def test_a_removed_queue_is_reported(made: Making) -> None:
    calls = made({"open": None}, with_efa("open")).request("resume", "old-[1-2]")
    assert calls[0] == "power down old-[1-2]: corral: cluster dev has no such queue"


def test_an_offer_without_a_template_is_skipped(aws: Clients, made: Making) -> None:
    made({"open": None}, without_efa("planned", "open")).request("resume", "cpu-1")
    assert offers_used(aws) == ["open"]


def test_an_offer_that_is_refused_backs_off_for_an_hour(aws: Clients, made: Making) -> None:
    head = made({"gone": None, "open": None}, without_efa("gone", "open"))
    aws("ec2").delete_launch_template(LaunchTemplateId=head.autoscaler.deployed.templates["gone"].id)
    head.clock.now += 300
    head.request("resume", "cpu-1")
    cold = head.autoscaler.state.backoffs["gone"]
    assert (offers_used(aws), str(cold.kind), cold.until - head.clock.now) == (["open"], "bad request", 3600)


def test_a_launch_denied_soon_after_a_new_configuration_is_tried_again_five_minutes_after_it(
    box: BoxStatus, made: Making
) -> None:
    """IAM may not know yet the policy that the same `corral up` has changed."""
    head = made({"new": None, "open": None}, without_efa("new", "open"))
    configured_at = head.clock.now
    control.inject_fault(box.dir, "refuse", code="UnauthorizedOperation", hits_left="1")
    head.clock.now += 10
    head.request("resume", "cpu-1")
    cold = head.autoscaler.state.backoffs["new"]
    assert (str(cold.kind), cold.until - configured_at) == ("permission", 300)


def test_a_new_configuration_ends_the_backoffs_that_it_may_have_fixed(made: Making) -> None:
    head = made({"wrong": None, "full": None}, without_efa("wrong", "full"))
    head.autoscaler.state = back_off(AutoscalerState(), "wrong", LaunchErrorKind.REQUEST, "x", head.clock.now)
    head.autoscaler.state = back_off(head.autoscaler.state, "full", LaunchErrorKind.CAPACITY, "x", head.clock.now)
    head.autoscaler.configure(head.autoscaler.plan, head.autoscaler.deployed)
    assert sorted(head.autoscaler.state.backoffs) == ["full"]


TAGGED = ("network-interface", "volume")
TAGS = {"corral:base", "corral:cluster", "corral:offer", "corral:queue", "Name"}


@pytest.mark.parametrize("faults", [(), ("request-tags-only",)], ids=["joined", "replaced"])
def test_a_launch_tags_all_that_it_creates_whatever_ec2_does_with_the_tags_of_its_template(
    box: BoxStatus, aws: Clients, made: Making, faults: tuple[str, ...]
) -> None:
    head = made({"open": None}, without_efa("open"))
    for fault in faults:
        control.inject_fault(box.dir, fault)
    head.request("resume", "cpu-1", "cpu-1")
    shown = aws("ec2").describe_tags(Filters=[{"Name": "resource-type", "Values": ["volume", "network-interface"]}])
    keys = {kind: {tag["Key"] for tag in shown["Tags"] if tag["ResourceType"] == kind} for kind in TAGGED}
    nodes = [one.node for one in Ec2(aws("ec2"), "dev").instances()]
    assert (nodes, keys) == (["cpu-1"], dict.fromkeys(TAGGED, TAGS))


def test_a_spot_launch_tags_its_request_too() -> None:
    queue = replace(without_efa("spot"), offers=(replace(offer("spot"), market=Market.SPOT),))
    assert sorted(tags_of(dev(queue), queue, "spot")) == [
        "instance",
        "network-interface",
        "spot-instances-request",
        "volume",
    ]


VERSION = "InvalidLaunchTemplateId.VersionNotFound"


def test_a_launch_template_that_ec2_does_not_find_yet_is_tried_again(
    box: BoxStatus, aws: Clients, made: Making
) -> None:
    head = made({"new": None, "open": None}, without_efa("new", "open"))
    control.inject_fault(box.dir, "refuse", code=VERSION, hits_left="1")
    head.request("resume", "cpu-1")
    waited = len(head.left)
    head.request("resume", "cpu-1")
    assert (waited, head.left, offers_used(aws)) == (1, [], ["new"])


def test_what_a_new_configuration_has_made_may_be_found_late_too(box: BoxStatus, aws: Clients, made: Making) -> None:
    head = made({"new": None, "open": None}, without_efa("new", "open"))
    head.clock.now += 86_400
    head.autoscaler.configure(head.autoscaler.plan, head.autoscaler.deployed)
    head.clock.now += 299
    control.inject_fault(box.dir, "refuse", code=VERSION, hits_left="1")
    head.request("resume", "cpu-1")
    assert (len(head.left), head.autoscaler.state.backoffs) == (1, {})


def test_the_intent_is_saved_before_the_launch(made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    head.request("resume", "cpu-1", key="7-1")
    intended, concluded = head.saved
    assert (intended.intents["7-1 cpu 0"].nodes, intended.launched, concluded.intents) == (("cpu-1",), (), {})


def test_an_autoscaler_that_was_killed_after_a_launch_repeats_it(aws: Clients, made: Making) -> None:
    first = made({"open": None}, with_efa("open"))
    first.request("resume", "train-[1-2]", "train-[1-2]")
    second = autoscaler_fixture(
        first.autoscaler.plan, first.autoscaler.deployed, Ec2(aws("ec2"), "dev"), first.saved[0]
    )
    second.request("resume", "train-[1-2]", "train-[1-2]")
    assert len(tags(aws)) == 2


def test_a_partial_launch_of_another_offer_is_released(aws: Clients, made: Making) -> None:
    """A crash between two offers must not give a job nodes of both."""
    head = made({"first": None, "second": None}, with_efa("first", "second"))
    head.request("resume", "train-1", key="1-1")
    aws("ec2").delete_launch_template(LaunchTemplateId=head.autoscaler.deployed.templates["first"].id)
    head.clock.now += 300  # later it is no longer what was just made
    head.request("resume", "train-[1-2]", "train-[1-2]", key="2-1")
    assert offers_used(aws) == ["second", "second"]


def test_a_node_that_has_an_instance_gets_no_second_one(aws: Clients, made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    head.request("resume", "cpu-[1-2]", key="1-1")
    head.request("resume", "cpu-[2-3]", key="2-1")
    assert nodes(aws) == ["cpu-3", "cpu-[1-2]"]


def test_a_stopped_instance_does_not_serve_a_node(aws: Clients, made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    head.request("resume", "cpu-1", key="1-1")
    (one,) = Ec2(aws("ec2"), "dev").instances()
    aws("ec2").stop_instances(InstanceIds=[one.instance_id])
    assert head.request("resume", "cpu-1", key="2-1") != ["place cpu-1=" + one.address]


def test_a_call_launches_as_many_scattered_nodes_as_fit_in_a_tag(aws: Clients, made: Making) -> None:
    scattered = ",".join(str(number) for number in range(10_000, 10_090, 2))
    made({"open": None}, without_efa("open")).request("resume", f"cpu-[{scattered}]")
    assert sorted({len(held["corral:nodes"]) for held in tags(aws)}) == [29, 251]


@pytest.mark.parametrize("verb", ["suspend", "resume-failed"])
def test_suspend_terminates_only_these_nodes(aws: Clients, made: Making, verb: str) -> None:
    head = made({"open": None}, with_efa("open"))
    head.request("resume", "train-[1-3]", "train-[1-3]", key="1-1")
    head.request(verb, "train-[1,3]", key="2-1")
    assert [one.node for one in Ec2(aws("ec2"), "dev").instances() if one.active] == ["train-2"]


def test_suspend_terminates_every_instance_of_the_node(aws: Clients, made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    for token in ("a", "b"):
        Ec2(aws("ec2"), "dev").launch(head.autoscaler.deployed.templates["open"], ["cpu-1"], token, at_least=1)
    head.request("suspend", "cpu-1")
    assert tags(aws) == []


def test_suspend_leaves_another_clusters_node_of_the_same_name(aws: Clients, made: Making) -> None:
    made({"open": None}, without_efa("open"), cluster="prod").request("resume", "cpu-1", key="1-1")
    made({"open": None}, without_efa("open")).request("suspend", "cpu-1", key="2-1")
    assert len(tags(aws)) == 1


def test_the_nodes_of_an_efa_job_are_in_the_zone_of_its_allocated_nodes(aws: Clients, made: Making) -> None:
    queue = with_efa("first", "second")
    apart = replace(queue, offers=(queue.offers[0], replace(queue.offers[1], zone_id="use1-az2")))
    head = made({"first": None, "second": None}, apart)
    second = head.autoscaler.deployed.templates["second"]
    Ec2(aws("ec2"), "dev").launch(second, ["train-1"], "a", at_least=1)
    head.request("resume", "train-[2-3]", "train-[1-3]")
    assert offers_used(aws) == ["second", "second", "second"]


def test_without_capacity_in_that_zone_the_allocated_nodes_are_replaced(aws: Clients, made: Making) -> None:
    queue = with_efa("first", "one")
    apart = replace(queue, offers=(queue.offers[0], replace(queue.offers[1], zone_id="use1-az2")))
    head = made({"first": None, "one": 1}, apart)
    Ec2(aws("ec2"), "dev").launch(head.autoscaler.deployed.templates["one"], ["train-1"], "a", at_least=1)
    calls = head.request("resume", "train-[2-3]", "train-[1-3]")
    assert [line.split(":")[0] for line in calls] == ["replace train-1", "notify 1", "power down train-[2-3]"]


def free_capacity(aws: Clients) -> int:
    return int(aws("ec2").describe_capacity_reservations()["CapacityReservations"][0]["AvailableInstanceCount"])


def in_a_reservation(aws: Clients, made: Making, capacity: int) -> AutoscalerFixture:
    """A queue whose first offer is in a reservation of this capacity, and the second in another zone."""
    head = made({"reserved": capacity, "open": None}, with_efa("reserved", "open"))
    held = aws("ec2").describe_capacity_reservations()["CapacityReservations"]
    reserved, other = head.autoscaler.plan.queues[0].offers
    offers = (
        replace(reserved, market=Market.RESERVATION, reservation=held[0]["CapacityReservationId"]),
        replace(other, zone_id="use1-az2"),
    )
    queue = replace(head.autoscaler.plan.queues[0], offers=offers)
    head.autoscaler.plan = replace(head.autoscaler.plan, queues=(queue,))
    return head


def test_a_replaced_machine_waits_until_its_capacity_is_cleaned(box: BoxStatus, aws: Clients, made: Making) -> None:
    head = in_a_reservation(aws, made, 2)
    head.request("resume", "train-[1-2]", "train-[1-2]", key="1-1")
    control.inject_fault(box.dir, "slow-termination", after="1h")
    head.request("suspend", "train-2", key="2-1")
    calls = head.request("resume", "train-2", "train-[1-2]", key="3-1")
    assert (calls, len(head.left), offers_used(aws)) == ([], 1, ["reserved"])


def test_a_node_that_waited_is_launched_into_its_cleaned_capacity(box: BoxStatus, aws: Clients, made: Making) -> None:
    head = in_a_reservation(aws, made, 2)
    head.request("resume", "train-[1-2]", "train-[1-2]", key="1-1")
    control.inject_fault(box.dir, "slow-termination", after="1s")
    head.request("suspend", "train-2", key="2-1")
    head.request("resume", "train-2", "train-[1-2]", key="3-1")
    until(lambda: free_capacity(aws) == 1)
    head.clock.now += 31
    head.request("resume", "train-2", "train-[1-2]", key="3-1")
    assert (offers_used(aws), head.left) == (["reserved", "reserved"], [])


def test_the_other_nodes_of_a_request_do_not_wait_for_reserved_capacity(
    box: BoxStatus, aws: Clients, made: Making
) -> None:
    head = in_a_reservation(aws, made, 2)
    head.request("resume", "train-[1-2]", "train-[1-2]", key="1-1")
    control.inject_fault(box.dir, "slow-termination", after="1h")
    head.request("suspend", "train-2", key="2-1")
    head.request("resume", "train-2,cpu-9", "train-[1-2]", key="3-1")  # there is no queue cpu
    assert head.request("resume", "train-2,cpu-9", "train-[1-2]", key="3-1") == []


def test_boots_that_failed_are_counted_for_their_queue(made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    head.request("resume", "cpu-[1-2]", key="1-1")
    head.request("resume-failed", "cpu-[1-2]", key="2-1")
    assert head.autoscaler.state.failures["cpu"].count == 2


def test_a_boot_that_failed_is_counted_once_however_often_ec2_refuses_to_end_its_machine(
    box: BoxStatus, made: Making
) -> None:
    head = made({"open": None}, without_efa("open"))
    head.request("resume", "cpu-1", key="1-1")
    control.inject_fault(box.dir, "refuse", code="UnauthorizedOperation", call="TerminateInstances", hits_left="2")
    answers = [head.request("resume-failed", "cpu-1", key="2-1") for _ in range(3)]
    assert head.autoscaler.state.failures["cpu"].count == 1, answers


def test_calls_are_of_a_hundred_machines() -> None:
    assert AT_ONCE == 100


def test_jobs_in_an_ending_block_are_signalled_once(made: Making) -> None:
    held = made({"block": None}, without_efa("block"))
    held.request("resume", "cpu-1")
    held.scheduler.calls.clear()
    held.scheduler.known = (SlurmNode(name="cpu-1", states=frozenset({"ALLOCATED", "CLOUD"}), address="10.64.1.4"),)
    held.autoscaler.block_ends = {"block": held.clock.now + 2400}
    held.autoscaler.reconcile(frozenset(), ())
    held.autoscaler.reconcile(frozenset(), ())
    assert held.scheduler.calls == ["drain cpu-1: corral: capacity block, machines end at 14:23:20 UTC", "ask cpu-1"]


def test_jobs_that_remain_at_the_end_of_a_block_are_requeued_once(made: Making) -> None:
    held = made({"block": None}, without_efa("block"))
    held.request("resume", "cpu-1")
    held.scheduler.known = (SlurmNode(name="cpu-1", states=frozenset({"ALLOCATED", "CLOUD"}), address="10.64.1.4"),)
    held.autoscaler.block_ends = {"block": held.clock.now + 1860}
    held.autoscaler.reconcile(frozenset(), ())
    held.scheduler.calls.clear()
    held.autoscaler.reconcile(frozenset(), ())
    held.autoscaler.reconcile(frozenset(), ())
    assert held.scheduler.calls == ["requeue jobs on cpu-1"]


def test_a_job_that_may_not_be_requeued_from_a_block_stops_no_other_decision(made: Making) -> None:
    held = made({"block": None}, without_efa("block"))
    held.request("resume", "cpu-1")
    held.scheduler.known = (SlurmNode(name="cpu-1", states=frozenset({"ALLOCATED", "CLOUD"}), address="10.64.1.4"),)
    held.autoscaler.block_ends = {"block": held.clock.now + 1860}
    held.scheduler.refuses_requeue = True
    held.autoscaler.reconcile(frozenset(), ())
    decided = len(held.saved)
    held.autoscaler.reconcile(frozenset(), ())
    assert len(held.saved) == decided + 1


def test_nothing_is_launched_into_a_block_that_ends(aws: Clients, made: Making) -> None:
    held = made({"block": None, "open": None}, without_efa("block", "open"))
    held.autoscaler.block_ends = {"block": held.clock.now + 2400}
    held.request("resume", "cpu-1")
    assert offers_used(aws) == ["open"]


def test_a_served_request_that_stays_blocks_later_ones_of_its_nodes(aws: Clients, made: Making) -> None:
    held = made({"open": None}, without_efa("open"))
    suspend = PowerRequest(key="1-1", verb="suspend", nodes=("cpu-1",), requested_at=held.clock.now)
    resumes = [
        PowerRequest(key=f"{at}-1", verb="resume", nodes=(node,), requested_at=held.clock.now)
        for at, node in ((2, "cpu-1"), (3, "cpu-2"))
    ]

    def stays(request: PowerRequest) -> None:
        if request is suspend:
            raise OSError(errno.EROFS, "Read-only file system")

    left = held.autoscaler.process_requests([suspend, *resumes], stays)
    assert (left, nodes(aws)) == (frozenset({"cpu-1"}), ["cpu-2"])
