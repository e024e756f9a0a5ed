"""What is launched for which jobs, from which offer, and what is ended: decided on literals, done in the box."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agent.offered import offering, tags, with_efa, without_efa
from box.ground import Clients, Ground
from corral.agent.ec2 import Ec2
from corral.agent.power import Outcome, Wish, addresses, end, launch, strangers, wishes
from corral.model.cluster import QueuePlan
from corral.model.node_names import expand, fold
from render.plans import dev

PLAN = dev(with_efa(), without_efa())


@pytest.fixture
def ec2(aws: Clients) -> Ec2:
    return Ec2(aws("ec2"), "dev")


def together(queue: QueuePlan, nodes: str) -> Wish:
    return Wish(queue=queue, nodes=expand(nodes), together=True)


def loose(queue: QueuePlan, nodes: str) -> Wish:
    return Wish(queue=queue, nodes=expand(nodes), together=False)


def served(outcome: Outcome) -> tuple[str, str]:
    """The nodes that have an instance, and those that have none."""
    return fold(one.node for one in outcome.instances), fold(outcome.without)


def offers_used(aws: Clients) -> list[str]:
    return [held["corral:offer"] for held in tags(aws)]


@pytest.mark.parametrize(
    ("jobs", "wished"),
    [
        (["train-[1-2]"], [("train-[1-2]", True)]),
        (["train-[1-2]", "train-[3-4]"], [("train-[1-2]", True), ("train-[3-4]", True)]),
        (["train-[1-2]", "train-[2-4]"], [("train-[1-2]", True), ("train-[3-4]", True)]),
        (["train-1"], [("train-1", False)]),
        (["train-1", "train-2"], [("train-[1-2]", False)]),  # one call of EC2's for two jobs
        (["cpu-[1-2]", "cpu-3"], [("cpu-[1-3]", False)]),
        (["cpu-3,cpu-1"], [("cpu-[1,3]", False)]),
        (["cpu-1,train-1"], [("cpu-1", False), ("train-1", False)]),
        (["train-1,train-1"], [("train-1", False)]),
        (["old-[1-2]", "train-1"], [("train-1", False)]),
        ([], []),
    ],
)
def test_what_is_wished_for_jobs(jobs: Sequence[str], wished: Sequence[tuple[str, bool]]) -> None:
    found = wishes(PLAN, [expand(nodes) for nodes in jobs])
    assert [(fold(wish.nodes), wish.together) for wish in found] == wished


def test_nodes_of_a_queue_that_the_cluster_has_no_more_are_strangers() -> None:
    assert strangers(PLAN, expand("cpu-1,old-[1-2],train-1")) == ("old-1", "old-2")


@pytest.mark.parametrize("wish", [together(with_efa("open"), "train-[1-3]"), loose(without_efa("open"), "cpu-[1-3]")])
def test_every_node_has_an_instance(aws: Clients, ground: Ground, ec2: Ec2, wish: Wish) -> None:
    outcome = launch(wish, offering(aws, ground, {"open": None}), ec2, "1")
    assert ([one.node for one in outcome.instances], outcome.without) == (list(wish.nodes), ())


def test_the_second_offer_is_used_where_the_first_has_no_room(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"full": 0, "open": None})
    launch(together(with_efa("full", "open"), "train-[1-2]"), deployed, ec2, "1")
    assert offers_used(aws) == ["open", "open"]


def test_the_second_offer_is_left_alone_where_the_first_has_room(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"first": None, "second": None})
    launch(together(with_efa("first", "second"), "train-[1-2]"), deployed, ec2, "1")
    assert offers_used(aws) == ["first", "first"]


def test_nodes_that_must_be_together_do_not_share_two_offers(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"small": 2, "open": None})
    launch(together(with_efa("small", "open"), "train-[1-3]"), deployed, ec2, "1")
    assert offers_used(aws) == ["open", "open", "open"]


def test_they_are_together_also_where_they_are_too_many_for_one_call(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"small": 2, "open": None})
    launch(together(with_efa("small", "open"), "train-[1-3]"), deployed, ec2, "1", at_once=2)
    assert offers_used(aws) == ["open", "open", "open"]


def test_nodes_that_cannot_be_together_have_nothing_at_all(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"small": 2})
    outcome = launch(together(with_efa("small"), "train-[1-3]"), deployed, ec2, "1", at_once=2)
    assert (served(outcome), tags(aws)) == (("", "train-[1-3]"), [])


def test_nodes_that_need_not_be_together_take_what_there_is(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"small": 2, "smaller": 1})
    outcome = launch(loose(without_efa("small", "smaller"), "cpu-[1-5]"), deployed, ec2, "1")
    assert served(outcome) == ("cpu-[1-3]", "cpu-[4-5]")


def test_a_job_is_told_why_it_has_no_nodes(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    outcome = launch(together(with_efa("full"), "train-[1-2]"), offering(aws, ground, {"full": 0}), ec2, "1")
    assert outcome.reason.partition(":")[0] == "ReservationCapacityExceeded"


def test_a_job_whose_nodes_came_in_part_is_told_which_did_not(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    outcome = launch(loose(without_efa("small"), "cpu-[1-3]"), offering(aws, ground, {"small": 1}), ec2, "1")
    assert outcome.reason == "offer small had no room for cpu-[2-3]"


def test_a_queue_without_offers_says_so(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    outcome = launch(loose(without_efa(), "cpu-1"), offering(aws, ground, {}), ec2, "1")
    assert (served(outcome), outcome.reason) == (("", "cpu-1"), "the queue has no offer")


def test_an_offer_that_was_not_deployed_is_passed_over(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"open": None})
    launch(loose(without_efa("planned", "open"), "cpu-1"), deployed, ec2, "1")
    assert offers_used(aws) == ["open"]


def test_an_offer_that_is_refused_is_passed_over(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"gone": None, "open": None})
    aws("ec2").delete_launch_template(LaunchTemplateId=deployed.templates["gone"].id)
    launch(loose(without_efa("gone", "open"), "cpu-1"), deployed, ec2, "1")
    assert offers_used(aws) == ["open"]


def test_the_same_launch_again_launches_nothing(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed, wish = offering(aws, ground, {"open": None}), together(with_efa("open"), "train-[1-3]")
    first, second = (launch(wish, deployed, ec2, "1", at_once=2) for _ in range(2))
    assert (first == second, len(tags(aws))) == (True, 3)


def test_a_later_launch_of_a_node_that_has_ended_is_another_one(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed, wish = offering(aws, ground, {"open": None}), loose(without_efa("open"), "cpu-1")
    launch(wish, deployed, ec2, "1")
    end(["cpu-1"], ec2)
    assert served(launch(wish, deployed, ec2, "2")) == ("cpu-1", "")


def test_a_node_that_has_an_instance_gets_no_second_one(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"open": None})
    launch(loose(without_efa("open"), "cpu-[1-2]"), deployed, ec2, "1")
    outcome = launch(loose(without_efa("open"), "cpu-[2-3]"), deployed, ec2, "2", held=ec2.nodes())
    assert (served(outcome), len(tags(aws))) == (("cpu-[2-3]", ""), 3)


def test_an_offer_that_has_room_again_launches_no_node_twice(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"full": 0, "open": None})
    launch(loose(without_efa("full", "open"), "cpu-1"), deployed, ec2, "1")
    launch(loose(without_efa("open", "full"), "cpu-1"), deployed, ec2, "1", held=ec2.nodes())
    assert len(tags(aws)) == 1


def test_an_instance_that_is_stopped_is_no_node_that_comes(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"open": None})
    first = launch(loose(without_efa("open"), "cpu-1"), deployed, ec2, "1")
    aws("ec2").stop_instances(InstanceIds=[one.instance_id for one in first.instances])
    second = launch(loose(without_efa("open"), "cpu-1"), deployed, ec2, "2", held=ec2.nodes())
    assert {one.instance_id for one in first.instances} & {one.instance_id for one in second.instances} == set()


def test_scattered_nodes_are_so_many_a_call_as_a_tag_can_name(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    nodes = ",".join(str(number) for number in range(10_000, 10_090, 2))
    launch(loose(without_efa("open"), f"cpu-[{nodes}]"), offering(aws, ground, {"open": None}), ec2, "1")
    assert sorted({len(held["corral:nodes"]) for held in tags(aws)}) == [29, 251]


def test_ending_ends_these_nodes_alone(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    launch(together(with_efa("open"), "train-[1-3]"), offering(aws, ground, {"open": None}), ec2, "1")
    ended = end(["train-1", "train-3"], ec2)
    assert ([one.node for one in ended], [one.node for one in ec2.nodes()]) == (["train-1", "train-3"], ["train-2"])


def test_ending_a_node_ends_every_instance_that_says_it_is_that(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    deployed = offering(aws, ground, {"open": None})
    for epoch in ("1", "2"):
        launch(loose(without_efa("open"), "cpu-1"), deployed, ec2, epoch)
    assert (len(end(["cpu-1"], ec2)), ec2.nodes()) == (2, ())


def test_ending_nodes_that_have_no_machine_is_no_error(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    assert end(["train-1"], ec2) == ()


def test_ending_leaves_another_clusters_node_of_the_same_name(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    prod = offering(aws, ground, {"open": None}, cluster="prod")
    launch(loose(without_efa("open"), "cpu-1"), prod, ec2, "1")
    end(["cpu-1"], ec2)
    assert len(tags(aws)) == 1


def test_addresses_are_those_of_the_nodes_by_name(aws: Clients, ground: Ground, ec2: Ec2) -> None:
    outcome = launch(loose(without_efa("open"), "cpu-[1-2]"), offering(aws, ground, {"open": None}), ec2, "1")
    assert addresses(outcome.instances) == {"cpu-1": "10.64.1.4", "cpu-2": "10.64.1.5"}
