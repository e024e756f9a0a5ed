"""Records survive the round trip through JSON, and wrong JSON is refused with its location."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.model.enums import Market
from corral.model.serialization import from_json, to_json, to_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    address: IPv4Address
    market: Market
    price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    name: str
    count: int
    flag: bool
    leaves: tuple[Leaf, ...]
    labels: Mapping[str, str]


LEAVES = st.builds(
    Leaf,
    address=st.ip_addresses(v=4),
    market=st.sampled_from(Market),
    price=st.none() | st.floats(0, 1000, allow_nan=False),
)
TREES = st.builds(
    Tree,
    name=st.text(),
    count=st.integers(),
    flag=st.booleans(),
    leaves=st.lists(LEAVES).map(tuple),
    labels=st.dictionaries(st.text(), st.text()),
)
TREE = Tree(
    name="dev",
    count=4,
    flag=True,
    leaves=(Leaf(address=IPv4Address("10.64.0.10"), market=Market.SPOT, price=1.5),),
    labels={"b": "2", "a": "1"},
)


@given(TREES)
def test_from_json_undoes_to_json(tree: Tree) -> None:
    assert from_json(Tree, to_json(tree)) == tree


def test_json_keeps_the_order_of_fields_and_sorts_mappings() -> None:
    assert to_json(TREE).split() == [
        '{', '"name":', '"dev",', '"count":', '4,', '"flag":', 'true,', '"leaves":', '[', '{', '"address":',
        '"10.64.0.10",', '"market":', '"spot",', '"price":', '1.5', '}', '],', '"labels":', '{', '"a":', '"1",',
        '"b":', '"2"', '}', '}',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"count": 4', '"count": "4"', "Tree.count: expected <class 'int'>, found '4'"),
        ('"count": 4', '"count": true', "Tree.count: expected <class 'int'>, found True"),
        ('"count": 4', '"counts": 4', "Tree: missing fields ['count'], unknown fields ['counts']"),
        ('"price": 1.5', '"price": "x"', "Tree.leaves[0].price: expected (<class 'int'>, <class 'float'>), found 'x'"),
        ('"spot"', '"sport"', "'sport' is not a valid Market"),
        ('"price": 1.5', f'"price": {10**400}', "Tree.leaves[0].price: too large a number"),
        ('"price": 1.5', f'"price": {"[" * 100_000}', "Tree: nested too deeply"),
    ],
)
def test_wrong_json_is_refused_with_its_location(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        from_json(Tree, to_json(TREE).replace(old, new))
    assert str(caught.value) == message


def test_a_line_is_read_as_the_text_is() -> None:
    leaf = Leaf(address=IPv4Address("10.64.0.4"), market=Market.SPOT, price=None)
    tree = Tree(name="a", count=1, flag=True, leaves=(leaf,), labels={"b": "c"})
    assert (from_json(Tree, to_line(tree)), to_line(tree).count("\n")) == (tree, 1)
