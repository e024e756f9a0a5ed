"""What the keeper launches and ends in EC2, the box's, and what it tells Slurm of it."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from agent.keepers import Desk, desk
from agent.offered import offering, tags, with_efa, without_efa
from box.ground import Clients, Ground
from corral.agent.ec2 import Ec2
from corral.agent.errors import AgentError
from corral.agent.launches import AT_ONCE, market_of
from corral.agent.memory import Cold, Memory
from corral.agent.refusals import Kind
from corral.agent.turn import Seen
from corral.agent.world import Note, SlurmNode
from corral.model.cluster import QueuePlan
from render.plans import dev

Making = Callable[..., Desk]


@pytest.fixture
def made(aws: Clients, ground: Ground) -> Making:
    """A keeper of a cluster with these queues, whose offers have so much room."""

    def make(rooms: Mapping[str, int | None], *queues: QueuePlan, cluster: str = "dev", known: object = None) -> Desk:
        deployed = offering(aws, ground, rooms, cluster=cluster)
        memory = known if isinstance(known, Memory) else None
        return desk(dev(*queues), deployed, Ec2(aws("ec2"), cluster), memory)

    return make


def offers_used(aws: Clients) -> list[str]:
    return [held["corral:offer"] for held in tags(aws)]


def nodes(aws: Clients) -> list[str]:
    return sorted({held["corral:nodes"] for held in tags(aws)})


@pytest.mark.parametrize("queue", [with_efa("open"), without_efa("open")], ids=["efa", "none"])
def test_slurm_is_told_where_every_node_will_be(made: Making, queue: QueuePlan) -> None:
    told = made({"open": None}, queue).ask("resume", f"{queue.name}-[1-2]", f"{queue.name}-[1-2]")
    assert told == [f"place {queue.name}-1=10.64.1.4 {queue.name}-2=10.64.1.5"]


def test_the_second_offer_is_used_where_the_first_has_no_room(aws: Clients, made: Making) -> None:
    made({"full": 0, "open": None}, with_efa("full", "open")).ask("resume", "train-[1-2]", "train-[1-2]")
    assert offers_used(aws) == ["open", "open"]


def test_the_second_offer_is_left_alone_where_the_first_has_room(aws: Clients, made: Making) -> None:
    made({"first": None, "second": None}, with_efa("first", "second")).ask("resume", "train-[1-2]", "train-[1-2]")
    assert offers_used(aws) == ["first", "first"]


def test_the_market_of_a_launch_is_that_of_its_offer() -> None:
    queue = with_efa("first")
    assert (market_of(queue, "first"), market_of(queue, "gone")) == ("on-demand", None)


def test_an_offer_without_room_is_not_asked_again_while_it_rests(aws: Clients, made: Making) -> None:
    head = made({"full": 0, "open": None}, without_efa("full", "open"))
    head.ask("resume", "cpu-1", key="1-1")
    head.ask("resume", "cpu-2", key="2-1")
    assert (head.keeper.memory.cold["full"].strikes, offers_used(aws)) == (1, ["open", "open"])


def test_an_offer_that_has_rested_is_asked_again(made: Making) -> None:
    head = made({"full": 0, "open": None}, without_efa("full", "open"))
    head.ask("resume", "cpu-1", key="1-1")
    head.clock.now += 601
    head.ask("resume", "cpu-2", key="2-1")
    assert head.keeper.memory.cold["full"].until == head.clock.now + 1200


def test_nodes_that_must_be_together_do_not_share_two_offers(aws: Clients, made: Making) -> None:
    made({"small": 2, "open": None}, with_efa("small", "open")).ask("resume", "train-[1-3]", "train-[1-3]")
    assert offers_used(aws) == ["open", "open", "open"]


def test_what_one_call_gave_is_returned_where_the_next_has_no_room(
    aws: Clients, made: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.agent.launches.AT_ONCE", 2)
    made({"small": 2, "open": None}, with_efa("small", "open")).ask("resume", "train-[1-3]", "train-[1-3]")
    assert offers_used(aws) == ["open", "open", "open"]


def test_nodes_that_cannot_be_together_have_nothing_at_all(
    aws: Clients, made: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.agent.launches.AT_ONCE", 2)
    told = made({"small": 2}, with_efa("small")).ask("resume", "train-[1-3]", "train-[1-3]")
    assert ([line.split(":")[0] for line in told], tags(aws)) == (["tell 1", "power down train-[1-3]"], [])


def test_nodes_that_need_not_be_together_take_what_there_is(aws: Clients, made: Making) -> None:
    told = made({"small": 2, "smaller": 1}, without_efa("small", "smaller")).ask("resume", "cpu-[1-5]", "cpu-[1-5]")
    assert [line.split(":")[0] for line in told] == [
        "place cpu-1=10.64.1.4 cpu-2=10.64.1.5 cpu-3=10.64.1.6",
        "tell 1",  # before its nodes go: nobody is left then who could be told
        "power down cpu-[4-5]",
    ]


def test_who_waits_is_told_which_offer_said_what_and_when_it_is_asked_again(made: Making) -> None:
    head = made({"small": 1}, without_efa("small"))
    head.clock.now = 1_790_000_000.0  # 14:13:20 UTC
    assert head.ask("resume", "cpu-[1-3]", "cpu-[1-3]")[1:] == [
        "tell 1: corral: no machines for cpu-[2-3]: small: no room for cpu-[2-3], tried again at 14:23 UTC",
        "power down cpu-[2-3]: corral: small: no room for cpu-[2-3], tried again at 14:23 UTC",
    ]


PROSE = "You can get it by choosing us-east-1a, us-east-1c."


def test_who_waits_is_told_the_codes_of_refusals_and_not_what_ec2_says_to_them(made: Making) -> None:
    def cold(kind: Kind, code: str, minutes: int) -> Cold:
        return Cold(until=1_790_000_000.0 + 60 * minutes, strikes=1, kind=kind, why=f"{code}: {PROSE}")

    full, limit = "InsufficientInstanceCapacity", "VcpuLimitExceeded"
    known = {"a": cold(Kind.CAPACITY, full, 10), "b": cold(Kind.QUOTA, limit, 60), "c": cold(Kind.CAPACITY, full, 20)}
    head = made({}, without_efa("a", "b", "c"), known=Memory(cold=known))
    head.clock.now = 1_790_000_000.0  # 14:13:20 UTC
    why = f"a, c: {full}; b: {limit}, tried again at 14:23 UTC"
    assert head.ask("resume", "cpu-1", "cpu-1") == [
        f"tell 1: corral: no machines for cpu-1: {why}",
        f"power down cpu-1: corral: {why}",
    ]


def test_all_that_ec2_said_is_in_the_event_of_the_refusal_alone(made: Making, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="corral.agent")
    made({"a": 0, "b": 0}, without_efa("a", "b")).ask("resume", "cpu-1", "cpu-1")
    assert [(line.partition(" ")[0], "sufficient" in line) for line in caplog.messages] == [
        ("refused", True),
        ("refused", True),
        ("without", False),
    ]


def test_who_cannot_be_told_keeps_no_node_waiting(made: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise AgentError("squeue failed: Invalid job id specified")

    head = made({}, without_efa())
    monkeypatch.setattr(head.told, "tell_waiting", gone)
    told = head.ask("resume", "cpu-1", "cpu-1")
    assert (told, head.left) == (["power down cpu-1: corral: the queue has no offer"], [])


def test_nothing_is_launched_for_a_queue_that_is_stopped(aws: Clients, made: Making) -> None:
    head = made({"open": None}, with_efa("open"), without_efa("open"))
    head.keeper.stopped = lambda: frozenset({"train"})
    told = head.ask("resume", "cpu-1,train-[1-2]", "train-[1-2]")
    assert (told, nodes(aws)) == (
        [
            "tell 1: corral: no machines for train-[1-2]: queue train is stopped",
            "power down train-[1-2]: corral: queue train is stopped",
            "place cpu-1=10.64.1.4",
        ],
        ["cpu-1"],
    )


def test_nothing_is_launched_while_nobody_knows_which_queues_are_stopped(aws: Clients, made: Making) -> None:
    def silent() -> frozenset[str]:
        raise AgentError("Unable to contact slurm controller")

    head = made({"open": None}, without_efa("open"))
    head.keeper.stopped = silent
    head.ask("resume", "cpu-1")
    assert ([note.verb for note in head.left], nodes(aws)) == (["resume"], [])


def test_static_nodes_of_a_stopped_queue_are_woken_when_somebody_lets_it_go_on(made: Making) -> None:
    head = made({"open": None}, replace(without_efa("open"), min_nodes=1))
    head.told.known = (SlurmNode(name="cpu-1", states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"})),)
    for stopped in (frozenset({"cpu"}), frozenset[str]()):
        head.keeper.stopped = lambda stopped=stopped: stopped
        head.told.said.append(f"stopped: {' '.join(stopped)}")
        head.keeper.compare(frozenset(), ())
    assert head.told.said == ["stopped: cpu", "stopped: ", "power up cpu-1"]


def test_a_block_that_has_not_begun_is_asked_the_second_it_begins(aws: Clients, made: Making) -> None:
    head = made({"block": None}, without_efa("block"))
    head.clock.now = 1_790_000_000.0  # 14:13:20 UTC
    head.keeper.block_begins = {"block": head.clock.now + 1500}
    told = head.ask("resume", "cpu-1", key="1-1")
    why = "block: its capacity block begins at 2026-09-21 14:38 UTC, tried again at 14:38 UTC"
    head.clock.now += 1500
    head.ask("resume", "cpu-1", key="2-1")
    assert (told, nodes(aws)) == ([f"power down cpu-1: corral: {why}"], ["cpu-1"])


def test_a_node_that_is_named_is_among_those_that_were_seen(made: Making) -> None:
    """Else whoever keeps the names to what there is takes it away."""
    head = made({"open": None}, without_efa("open"))
    head.keeper.compare(frozenset(), ())
    head.ask("resume", "cpu-1")
    assert head.keeper.seen == Seen(addresses={"cpu-1": "10.64.1.4"}, running={})


def test_a_queue_without_offers_says_so(made: Making) -> None:
    told = made({}, without_efa()).ask("resume", "cpu-1")
    assert told[0] == "power down cpu-1: corral: the queue has no offer"


def test_a_queue_that_is_gone_is_said(made: Making) -> None:
    told = made({"open": None}, with_efa("open")).ask("resume", "old-[1-2]")
    assert told[0] == "power down old-[1-2]: corral: cluster dev has no such queue"


def test_an_offer_that_was_not_deployed_is_passed_over(aws: Clients, made: Making) -> None:
    made({"open": None}, without_efa("planned", "open")).ask("resume", "cpu-1")
    assert offers_used(aws) == ["open"]


def test_an_offer_that_is_refused_rests_for_an_hour(aws: Clients, made: Making) -> None:
    head = made({"gone": None, "open": None}, without_efa("gone", "open"))
    aws("ec2").delete_launch_template(LaunchTemplateId=head.keeper.deployed.templates["gone"].id)
    head.ask("resume", "cpu-1")
    cold = head.keeper.memory.cold["gone"]
    assert (offers_used(aws), str(cold.kind), cold.until - head.clock.now) == (["open"], "bad request", 3600)


def test_a_launch_is_written_down_before_it_is_made(made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    head.ask("resume", "cpu-1", key="7-1")
    intended, concluded = head.saved
    assert (intended.intents["7-1 cpu 0"].nodes, intended.launched, concluded.intents) == (("cpu-1",), (), {})


def test_a_keeper_that_was_killed_after_a_launch_makes_the_same_one_again(aws: Clients, made: Making) -> None:
    first = made({"open": None}, with_efa("open"))
    first.ask("resume", "train-[1-2]", "train-[1-2]")
    second = desk(first.keeper.plan, first.keeper.deployed, Ec2(aws("ec2"), "dev"), first.saved[0])
    second.ask("resume", "train-[1-2]", "train-[1-2]")
    assert len(tags(aws)) == 2


def test_what_was_half_launched_for_another_offer_is_returned(aws: Clients, made: Making) -> None:
    """A crash between two offers must not give a job nodes of both."""
    head = made({"first": None, "second": None}, with_efa("first", "second"))
    head.ask("resume", "train-1", key="1-1")
    aws("ec2").delete_launch_template(LaunchTemplateId=head.keeper.deployed.templates["first"].id)
    head.ask("resume", "train-[1-2]", "train-[1-2]", key="2-1")
    assert offers_used(aws) == ["second", "second"]


def test_a_node_that_has_an_instance_gets_no_second_one(aws: Clients, made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    head.ask("resume", "cpu-[1-2]", key="1-1")
    head.ask("resume", "cpu-[2-3]", key="2-1")
    assert nodes(aws) == ["cpu-3", "cpu-[1-2]"]


def test_an_instance_that_is_stopped_is_no_node_that_comes(aws: Clients, made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    head.ask("resume", "cpu-1", key="1-1")
    (one,) = Ec2(aws("ec2"), "dev").instances()
    aws("ec2").stop_instances(InstanceIds=[one.instance_id])
    assert head.ask("resume", "cpu-1", key="2-1") != ["place cpu-1=" + one.address]


def test_scattered_nodes_are_so_many_a_call_as_a_tag_can_name(aws: Clients, made: Making) -> None:
    scattered = ",".join(str(number) for number in range(10_000, 10_090, 2))
    made({"open": None}, without_efa("open")).ask("resume", f"cpu-[{scattered}]")
    assert sorted({len(held["corral:nodes"]) for held in tags(aws)}) == [29, 251]


@pytest.mark.parametrize("verb", ["suspend", "resume-failed"])
def test_ending_ends_these_nodes_alone(aws: Clients, made: Making, verb: str) -> None:
    head = made({"open": None}, with_efa("open"))
    head.ask("resume", "train-[1-3]", "train-[1-3]", key="1-1")
    head.ask(verb, "train-[1,3]", key="2-1")
    assert [one.node for one in Ec2(aws("ec2"), "dev").instances() if one.coming] == ["train-2"]


def test_ending_a_node_ends_every_instance_that_says_it_is_that(aws: Clients, made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    for token in ("a", "b"):
        Ec2(aws("ec2"), "dev").launch(head.keeper.deployed.templates["open"], ["cpu-1"], token, at_least=1)
    head.ask("suspend", "cpu-1")
    assert tags(aws) == []


def test_ending_leaves_another_clusters_node_of_the_same_name(aws: Clients, made: Making) -> None:
    made({"open": None}, without_efa("open"), cluster="prod").ask("resume", "cpu-1", key="1-1")
    made({"open": None}, without_efa("open")).ask("suspend", "cpu-1", key="2-1")
    assert len(tags(aws)) == 1


def test_the_nodes_of_a_job_with_efa_are_in_the_zone_of_those_that_it_has(aws: Clients, made: Making) -> None:
    queue = with_efa("first", "second")
    apart = replace(queue, offers=(queue.offers[0], replace(queue.offers[1], zone_id="use1-az2")))
    head = made({"first": None, "second": None}, apart)
    second = head.keeper.deployed.templates["second"]
    Ec2(aws("ec2"), "dev").launch(second, ["train-1"], "a", at_least=1)
    head.ask("resume", "train-[2-3]", "train-[1-3]")
    assert offers_used(aws) == ["second", "second", "second"]


def test_where_that_zone_has_no_room_the_job_begins_anew_without_them(aws: Clients, made: Making) -> None:
    queue = with_efa("first", "one")
    apart = replace(queue, offers=(queue.offers[0], replace(queue.offers[1], zone_id="use1-az2")))
    head = made({"first": None, "one": 1}, apart)
    Ec2(aws("ec2"), "dev").launch(head.keeper.deployed.templates["one"], ["train-1"], "a", at_least=1)
    told = head.ask("resume", "train-[2-3]", "train-[1-3]")
    assert [line.split(":")[0] for line in told] == ["replace train-1", "tell 1", "power down train-[2-3]"]


def test_boots_that_failed_are_counted_for_their_queue(made: Making) -> None:
    head = made({"open": None}, without_efa("open"))
    head.ask("resume", "cpu-[1-2]", key="1-1")
    head.ask("resume-failed", "cpu-[1-2]", key="2-1")
    assert head.keeper.memory.failures["cpu"].count == 2


def test_calls_are_of_a_hundred_machines() -> None:
    assert AT_ONCE == 100


def test_jobs_in_a_block_that_ends_are_asked_for_a_checkpoint_once(made: Making) -> None:
    held = made({"block": None}, without_efa("block"))
    held.ask("resume", "cpu-1")
    held.told.said.clear()
    held.told.known = (SlurmNode(name="cpu-1", states=frozenset({"ALLOCATED", "CLOUD"}), address="10.64.1.4"),)
    held.keeper.block_ends = {"block": held.clock.now + 2400}
    held.keeper.compare(frozenset(), ())
    held.keeper.compare(frozenset(), ())
    assert held.told.said == ["drain cpu-1: corral: capacity block, machines end at 14:23:20 UTC", "ask cpu-1"]


def test_jobs_that_have_not_left_a_block_at_its_end_are_requeued_once(made: Making) -> None:
    held = made({"block": None}, without_efa("block"))
    held.ask("resume", "cpu-1")
    held.told.known = (SlurmNode(name="cpu-1", states=frozenset({"ALLOCATED", "CLOUD"}), address="10.64.1.4"),)
    held.keeper.block_ends = {"block": held.clock.now + 1860}
    held.keeper.compare(frozenset(), ())
    held.told.said.clear()
    held.keeper.compare(frozenset(), ())
    held.keeper.compare(frozenset(), ())
    assert held.told.said == ["requeue jobs on cpu-1"]


def test_nothing_is_launched_into_a_block_that_ends(aws: Clients, made: Making) -> None:
    held = made({"block": None, "open": None}, without_efa("block", "open"))
    held.keeper.block_ends = {"block": held.clock.now + 2400}
    held.ask("resume", "cpu-1")
    assert offers_used(aws) == ["open"]


def test_a_note_that_stays_after_its_answer_keeps_later_ones_of_its_nodes_waiting(aws: Clients, made: Making) -> None:
    held = made({"open": None}, without_efa("open"))
    suspend = Note(key="1-1", verb="suspend", nodes=("cpu-1",), asked_at=held.clock.now)
    resumes = [
        Note(key=f"{at}-1", verb="resume", nodes=(node,), asked_at=held.clock.now)
        for at, node in ((2, "cpu-1"), (3, "cpu-2"))
    ]

    def stays(note: Note) -> None:
        if note is suspend:
            raise OSError(errno.EROFS, "Read-only file system")

    left = held.keeper.answer([suspend, *resumes], stays)
    assert (left, nodes(aws)) == (frozenset({"cpu-1"}), ["cpu-2"])
