"""What counts as left behind; things and the living in, leftovers out."""

from corral.inventory.leftovers import Alive, find_kept, find_leftovers, of_names
from corral.inventory.things import Kind, Thing

NOBODY = Alive(bases=frozenset(), clusters=frozenset())
DEV = Alive(bases=frozenset({"dev"}), clusters=frozenset({"dev"}))
HEAD = Thing(kind=Kind.INSTANCE, id="i-1", tags={"corral:base": "dev", "corral:cluster": "dev"}, state="running")
NAT = Thing(kind=Kind.NAT_GATEWAY, id="nat-1", tags={"corral:base": "dev"}, state="available")
HOME = Thing(kind=Kind.HOME, id="fs-1", tags={"corral:base": "dev", "corral:keep": "home"})
LOOSE = Thing(
    kind=Kind.VOLUME,
    id="vol-1",
    tags={"corral:base": "dev", "corral:cluster": "dev", "corral:queue": "train"},
    state="available",
)
HEAD_STATE = Thing(
    kind=Kind.VOLUME, id="vol-2", tags={"corral:base": "dev", "corral:cluster": "dev"}, state="available"
)
EVERYTHING = (HEAD, NAT, HOME, LOOSE, HEAD_STATE)


def reasons(alive: Alive) -> dict[str, str]:
    return {one.thing.id: one.reason for one in find_leftovers(EVERYTHING, alive)}


def test_everything_but_kept_data_is_left_behind_where_nothing_lives() -> None:
    assert reasons(NOBODY) == {
        "i-1": "cluster dev is not up",
        "nat-1": "base dev is not up",
        "vol-1": "cluster dev is not up",
        "vol-2": "cluster dev is not up",
    }


def test_base_that_lives_keeps_its_own_when_its_cluster_is_gone() -> None:
    alive = Alive(bases=frozenset({"dev"}), clusters=frozenset())
    assert sorted(reasons(alive)) == ["i-1", "vol-1", "vol-2"]


def test_loose_volume_of_a_node_is_left_behind_and_that_of_a_head_is_not() -> None:
    assert reasons(DEV) == {"vol-1": "its instance is gone"}


def test_cluster_and_base_of_one_name_are_told_apart() -> None:
    alive = Alive(bases=frozenset(), clusters=frozenset({"dev"}))
    assert sorted(reasons(alive)) == ["nat-1", "vol-1"]


def test_environment_is_its_cluster_and_the_base_without_other_clusters() -> None:
    other = Thing(kind=Kind.INSTANCE, id="i-9", tags={"corral:base": "dev", "corral:cluster": "big"})
    found = find_leftovers((HEAD, NAT, other), NOBODY)
    assert [one.thing.id for one in of_names(found, clusters=["dev"], bases=["dev"])] == ["i-1", "nat-1"]


def test_names_of_other_projects_are_not_ours() -> None:
    theirs = Thing(kind=Kind.VPC, id="vpc-9", tags={"corral:base": "theirs"})
    found = find_leftovers((HEAD, NAT, theirs), NOBODY)
    assert [one.thing.id for one in of_names(found, clusters=["dev"], bases=["dev"])] == ["i-1", "nat-1"]


NODE = Thing(
    kind=Kind.INSTANCE,
    id="i-2",
    tags={"corral:base": "dev", "corral:cluster": "dev", "corral:queue": "old"},
    state="running",
)


def of_queues(*names: str) -> list[str]:
    alive = Alive(bases=DEV.bases, clusters=DEV.clusters, queues={"dev": frozenset(names)})
    return [one.reason for one in find_leftovers((HEAD, NODE), alive)]


def test_machine_of_a_queue_that_its_cluster_lacks_is_left_behind() -> None:
    assert of_queues("train") == ["cluster dev has no queue old"]


def test_machine_of_a_living_queue_is_not_left_behind() -> None:
    assert of_queues("train", "old") == []


def test_machine_is_not_judged_where_the_queues_are_not_known() -> None:
    assert find_leftovers((NODE,), DEV) == ()


def test_data_of_a_base_that_is_up_is_no_question() -> None:
    gone = Thing(kind=Kind.KEY, id="key-9", tags={"corral:base": "old", "corral:keep": "key"})
    assert [thing.id for thing in find_kept((*EVERYTHING, gone), DEV)] == ["key-9"]


def test_data_of_a_base_that_is_down_is_kept() -> None:
    assert find_kept(EVERYTHING, NOBODY) == (HOME,)
