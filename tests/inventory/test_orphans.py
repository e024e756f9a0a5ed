"""Orphans among resources, given the live stacks."""

from corral.inventory.orphans import LiveStacks, find_orphans, find_retained, of_names
from corral.inventory.resources import AwsResource, ResourceKind

NOBODY = LiveStacks(bases=frozenset(), clusters=frozenset())
DEV = LiveStacks(bases=frozenset({"dev"}), clusters=frozenset({"dev"}))
HEAD = AwsResource(
    kind=ResourceKind.INSTANCE, id="i-1", tags={"corral:base": "dev", "corral:cluster": "dev"}, state="running"
)
NAT = AwsResource(kind=ResourceKind.NAT_GATEWAY, id="nat-1", tags={"corral:base": "dev"}, state="available")
HOME = AwsResource(kind=ResourceKind.HOME, id="fs-1", tags={"corral:base": "dev", "corral:keep": "home"})
LOOSE = AwsResource(
    kind=ResourceKind.VOLUME,
    id="vol-1",
    tags={"corral:base": "dev", "corral:cluster": "dev", "corral:queue": "train"},
    state="available",
)
HEAD_STATE = AwsResource(
    kind=ResourceKind.VOLUME, id="vol-2", tags={"corral:base": "dev", "corral:cluster": "dev"}, state="available"
)
EVERYTHING = (HEAD, NAT, HOME, LOOSE, HEAD_STATE)


def reasons(alive: LiveStacks) -> dict[str, str]:
    return {one.resource.id: one.reason for one in find_orphans(EVERYTHING, alive)}


def test_without_live_stacks_everything_but_retained_data_is_an_orphan() -> None:
    assert reasons(NOBODY) == {
        "i-1": "cluster dev is not up",
        "nat-1": "base dev is not up",
        "vol-1": "cluster dev is not up",
        "vol-2": "cluster dev is not up",
    }


def test_a_live_base_keeps_its_resources_without_its_cluster() -> None:
    alive = LiveStacks(bases=frozenset({"dev"}), clusters=frozenset())
    assert sorted(reasons(alive)) == ["i-1", "vol-1", "vol-2"]


def test_a_loose_volume_of_a_node_is_an_orphan_and_that_of_a_head_is_not() -> None:
    assert reasons(DEV) == {"vol-1": "its instance is gone"}


def test_a_cluster_and_a_base_of_one_name_are_distinct() -> None:
    alive = LiveStacks(bases=frozenset(), clusters=frozenset({"dev"}))
    assert sorted(reasons(alive)) == ["nat-1", "vol-1"]


def test_environment_is_its_cluster_and_the_base_without_other_clusters() -> None:
    other = AwsResource(kind=ResourceKind.INSTANCE, id="i-9", tags={"corral:base": "dev", "corral:cluster": "big"})
    found = find_orphans((HEAD, NAT, other), NOBODY)
    assert [one.resource.id for one in of_names(found, clusters=["dev"], bases=["dev"])] == ["i-1", "nat-1"]


def test_names_of_other_projects_are_not_ours() -> None:
    theirs = AwsResource(kind=ResourceKind.VPC, id="vpc-9", tags={"corral:base": "theirs"})
    found = find_orphans((HEAD, NAT, theirs), NOBODY)
    assert [one.resource.id for one in of_names(found, clusters=["dev"], bases=["dev"])] == ["i-1", "nat-1"]


NODE = AwsResource(
    kind=ResourceKind.INSTANCE,
    id="i-2",
    tags={"corral:base": "dev", "corral:cluster": "dev", "corral:queue": "old"},
    state="running",
)


def of_queues(*names: str) -> list[str]:
    alive = LiveStacks(bases=DEV.bases, clusters=DEV.clusters, queues={"dev": frozenset(names)})
    return [one.reason for one in find_orphans((HEAD, NODE), alive)]


def test_a_machine_of_a_missing_queue_is_an_orphan() -> None:
    assert of_queues("train") == ["cluster dev has no queue old"]


def test_a_machine_of_a_deployed_queue_is_no_orphan() -> None:
    assert of_queues("train", "old") == []


def test_a_machine_is_no_orphan_while_the_queues_are_unknown() -> None:
    assert find_orphans((NODE,), DEV) == ()


def test_data_of_a_deployed_base_is_not_retained_data() -> None:
    gone = AwsResource(kind=ResourceKind.KEY, id="key-9", tags={"corral:base": "old", "corral:keep": "key"})
    assert [resource.id for resource in find_retained((*EVERYTHING, gone), DEV)] == ["key-9"]


def test_data_of_a_deleted_base_is_retained_data() -> None:
    assert find_retained(EVERYTHING, NOBODY) == (HOME,)
