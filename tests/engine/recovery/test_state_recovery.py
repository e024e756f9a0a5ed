"""Resources that an interrupted engine created are imported into its state."""

from __future__ import annotations

from states import resource, state

from corral.engine.recovery.state_recovery import recover, with_creations

VPC, TAGS = "aws:ec2/vpc:Vpc", {"tagsAll": {"Name": "vpc"}}


def test_pending_creation_is_imported_with_its_id() -> None:
    found = recover(state(creating=[resource(VPC, "vpc", inputs=TAGS)]), lambda _: ["vpc-1"])
    assert found.state == state(resource(VPC, "vpc", inputs=TAGS, id="vpc-1", outputs=TAGS))


def test_pending_creation_without_a_resource_is_dropped() -> None:
    found = recover(state(creating=[resource(VPC, "vpc")]), lambda _: [])
    assert (found.state, found.unfinished, found.found) == (state(), 1, 0)


def test_resource_in_the_state_is_not_imported_again() -> None:
    known = resource(VPC, "other", id="vpc-1")
    assert recover(state(known, creating=[resource(VPC, "vpc")]), lambda _: ["vpc-1"]).state == state(known)


def test_second_of_two_resources_is_marked_for_deletion() -> None:
    found = recover(state(creating=[resource(VPC, "vpc", protect=True)]), lambda _: ["vpc-1", "vpc-2"])
    entered = found.state["deployment"]["resources"]
    assert [(one["id"], one.get("delete", False), one["protect"]) for one in entered] == [
        ("vpc-1", False, True),
        ("vpc-2", True, False),
    ]


def test_replaced_resource_is_marked_for_deletion() -> None:
    old = resource(VPC, "vpc", id="vpc-1")
    found = recover(state(old, creating=[resource(VPC, "vpc")]), lambda _: ["vpc-2"])
    entered = found.state["deployment"]["resources"]
    assert [(one["id"], one.get("delete", False)) for one in entered] == [("vpc-2", False), ("vpc-1", True)]


def test_replaced_resource_deleted_before_is_dropped() -> None:
    old = resource(VPC, "vpc", id="vpc-1", pendingReplacement=True)
    found = recover(state(old, creating=[resource(VPC, "vpc")]), lambda _: ["vpc-2"])
    assert [one["id"] for one in found.state["deployment"]["resources"]] == ["vpc-2"]


def test_other_pending_operations_are_left_to_the_refresh() -> None:
    known = resource(VPC, "vpc", id="vpc-1")
    interrupted = state(known)
    interrupted["deployment"]["pending_operations"] = [{"type": "deleting", "resource": known}]
    assert recover(interrupted, lambda _: ["vpc-9"]).state == state(known)


def test_creation_with_a_lost_answer_is_pending_once() -> None:
    one, other = resource(VPC, "vpc"), resource(VPC, "other")
    assert with_creations(state(creating=[one]), [one, other]) == state(creating=[one, other])
