"""What an interrupted engine may have made is entered into its state."""

from __future__ import annotations

from states import resource, state

from corral.engine.recovery import recover, with_creations

VPC, TAGS = "aws:ec2/vpc:Vpc", {"tagsAll": {"Name": "vpc"}}


def test_what_was_being_created_is_entered_under_its_id() -> None:
    found = recover(state(creating=[resource(VPC, "vpc", inputs=TAGS)]), lambda _: ["vpc-1"])
    assert found.state == state(resource(VPC, "vpc", inputs=TAGS, id="vpc-1", outputs=TAGS))


def test_what_was_not_made_yet_is_forgotten() -> None:
    found = recover(state(creating=[resource(VPC, "vpc")]), lambda _: [])
    assert (found.state, found.unfinished, found.found) == (state(), 1, 0)


def test_what_the_state_knows_is_not_entered_again() -> None:
    known = resource(VPC, "other", id="vpc-1")
    assert recover(state(known, creating=[resource(VPC, "vpc")]), lambda _: ["vpc-1"]).state == state(known)


def test_of_two_the_second_is_left_to_be_deleted() -> None:
    found = recover(state(creating=[resource(VPC, "vpc", protect=True)]), lambda _: ["vpc-1", "vpc-2"])
    entered = found.state["deployment"]["resources"]
    assert [(one["id"], one.get("delete", False), one["protect"]) for one in entered] == [
        ("vpc-1", False, True),
        ("vpc-2", True, False),
    ]


def test_what_it_replaces_is_left_to_be_deleted() -> None:
    old = resource(VPC, "vpc", id="vpc-1")
    found = recover(state(old, creating=[resource(VPC, "vpc")]), lambda _: ["vpc-2"])
    entered = found.state["deployment"]["resources"]
    assert [(one["id"], one.get("delete", False)) for one in entered] == [("vpc-2", False), ("vpc-1", True)]


def test_what_it_replaces_and_was_deleted_before_is_gone() -> None:
    old = resource(VPC, "vpc", id="vpc-1", pendingReplacement=True)
    found = recover(state(old, creating=[resource(VPC, "vpc")]), lambda _: ["vpc-2"])
    assert [one["id"] for one in found.state["deployment"]["resources"]] == ["vpc-2"]


def test_other_operations_are_left_to_the_refresh() -> None:
    known = resource(VPC, "vpc", id="vpc-1")
    interrupted = state(known)
    interrupted["deployment"]["pending_operations"] = [{"type": "deleting", "resource": known}]
    assert recover(interrupted, lambda _: ["vpc-9"]).state == state(known)


def test_a_creation_whose_answer_was_lost_is_under_way_once() -> None:
    one, other = resource(VPC, "vpc"), resource(VPC, "other")
    assert with_creations(state(creating=[one]), [one, other]) == state(creating=[one, other])
