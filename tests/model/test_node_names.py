"""Node names: folded as Slurm writes them, expanded in order; anything else is refused."""

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from corral.model.node_names import expand, fold, number_of, queue_of

QUEUES = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
NUMBERS = st.integers(min_value=0, max_value=99_999)
NAMES = st.sets(st.tuples(QUEUES, NUMBERS), max_size=30)
# ClusterShell folds every number in a name: p5-1 and p6-1 are p[5-6]-1 for it, and no list of one queue's nodes.
PLAIN_QUEUES = st.from_regex(r"[a-z]([a-z-]{0,8}[a-z])?", fullmatch=True)


@pytest.mark.parametrize(
    ("folded", "names"),
    [
        ("", ()),
        ("train-1", ("train-1",)),
        ("train-[1-2,7]", ("train-1", "train-2", "train-7")),
        ("train-[9-11]", ("train-9", "train-10", "train-11")),
        ("p5-big-[1-3]", ("p5-big-1", "p5-big-2", "p5-big-3")),
        ("p5-2-1", ("p5-2-1",)),
        ("a-[1-2],b-3", ("a-1", "a-2", "b-3")),
        ("a-3,b-[1,3],c-[5,7-8]", ("a-3", "b-1", "b-3", "c-5", "c-7", "c-8")),
    ],
)
def test_a_folded_list_and_its_names(folded: str, names: tuple[str, ...]) -> None:
    assert (expand(folded), fold(names)) == (names, folded)


@pytest.mark.parametrize(
    ("folded", "names"),
    [
        ("train-[7,1-2]", ("train-7", "train-1", "train-2")),
        ("b-1,a-1", ("b-1", "a-1")),
        ("train-1,train-2", ("train-1", "train-2")),
        ("train-[4]", ("train-4",)),
        ("train-[1-1]", ("train-1",)),
    ],
)
def test_names_come_in_the_order_of_the_list(folded: str, names: tuple[str, ...]) -> None:
    assert expand(folded) == names


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (("train-10", "train-9"), "train-[9-10]"),
        (("train-2", "train-2"), "train-2"),
        (("b-1", "a-2", "a-1"), "a-[1-2],b-1"),
        (("a-1", "a-1-1"), "a-1,a-1-1"),
    ],
)
def test_folding_sorts_by_queue_and_number_and_drops_duplicates(names: tuple[str, ...], folded: str) -> None:
    assert fold(names) == folded


@pytest.mark.parametrize(
    "folded",
    [
        "train",
        "train-",
        "-1",
        "train1",
        "Train-1",
        "train-[1-2",
        "train-1-2]",
        "train-[]",
        "train-[1,]",
        "train-[1-]",
        "train-[1--2]",
        "train-[3-1]",
        "train-[1-2-3]",
        "train-[1-2]x",
        "train-01",
        "train-[01-10]",
        "train-٣",
        "train-1 train-2",
        "rack[1-2]-[1-2]",
        "train-[1-99999999]",
        "*",
    ],
)
def test_an_invalid_list_of_nodes_is_refused_with_its_part(folded: str) -> None:
    with pytest.raises(ValueError, match=r"^'.*' is not a list of nodes"):
        expand(f"a-1,{folded}")


def test_a_list_of_more_nodes_than_slurm_has_is_refused() -> None:
    assert len(expand("a-[0-65535]")) == 65_536
    with pytest.raises(ValueError, match="a list of more than 65,536 nodes"):
        expand(",".join(f"a{queue}-[0-60000]" for queue in range(1000)))


def test_the_queue_is_the_part_before_the_last_dash() -> None:
    assert (queue_of("p5-big-12"), number_of("p5-big-12")) == ("p5-big", 12)


@given(NAMES)
def test_fold_and_expand_are_inverses(pairs: set[tuple[str, int]]) -> None:
    names = tuple(f"{queue}-{number}" for queue, number in sorted(pairs))
    assert expand(fold(names)) == names


@given(NAMES)
def test_clustershell_expands_a_folded_list_to_the_same_names(pairs: set[tuple[str, int]]) -> None:
    names = {f"{queue}-{number}" for queue, number in pairs}
    assert set(NodeSet(fold(names), resolver=RESOLVER_NOGROUP)) == names


@given(st.sets(st.tuples(PLAIN_QUEUES, NUMBERS), max_size=30))
def test_what_clustershell_folds_is_expanded_to_the_same_names(pairs: set[tuple[str, int]]) -> None:
    names = {f"{queue}-{number}" for queue, number in pairs}
    assert set(expand(str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP)))) == names


@given(PLAIN_QUEUES, st.sets(NUMBERS, min_size=1, max_size=30))
def test_the_nodes_of_a_queue_are_folded_as_clustershell_folds_them(queue: str, numbers: set[int]) -> None:
    names = [f"{queue}-{number}" for number in numbers]
    assert fold(names) == str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
