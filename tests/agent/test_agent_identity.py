"""Which node a machine is, by its launch's tag and its place in the launch."""

import pytest

from corral.agent.identity import Identity, IdentityError, identity_in


@pytest.mark.parametrize(
    ("nodes", "index", "identity"),
    [
        ("train-3", 0, Identity(node="train-3", queue="train")),
        ("train-[1-2,7]", 2, Identity(node="train-7", queue="train")),
        ("p5-big-[1-3]", 1, Identity(node="p5-big-2", queue="p5-big")),
        ("a-[1-2],b-3", 2, Identity(node="b-3", queue="b")),
    ],
)
def test_a_machine_is_the_node_at_its_place_in_the_launch(nodes: str, index: int, identity: Identity) -> None:
    assert identity_in(nodes, index) == identity


@pytest.mark.parametrize(
    ("nodes", "index", "message"),
    [
        ("train-[1-2]", 2, r"^the tag corral:nodes=train-\[1-2\]: 'train-\[1-2\]' has no node 2$"),
        ("train-[1-2]", -1, r"^the tag corral:nodes=train-\[1-2\]: 'train-\[1-2\]' has no node -1$"),
        ("", 0, r"^the tag corral:nodes=: '' has no node 0$"),
        ("web server", 0, r"^the tag corral:nodes=web server: 'web server' is not a list of nodes$"),
    ],
)
def test_a_machine_without_a_node_is_told_why(nodes: str, index: int, message: str) -> None:
    with pytest.raises(IdentityError, match=message):
        identity_in(nodes, index)
