"""Which node a machine is, by its launch's tag and its launch index."""

import pytest

from corral.agent.node_identity import IdentityError, NodeIdentity, identity_at


@pytest.mark.parametrize(
    ("nodes", "index", "identity"),
    [
        ("train-3", 0, NodeIdentity(node="train-3", queue="train")),
        ("train-[1-2,7]", 2, NodeIdentity(node="train-7", queue="train")),
        ("p5-big-[1-3]", 1, NodeIdentity(node="p5-big-2", queue="p5-big")),
        ("a-[1-2],b-3", 2, NodeIdentity(node="b-3", queue="b")),
    ],
)
def test_a_machine_is_the_node_at_its_launch_index(nodes: str, index: int, identity: NodeIdentity) -> None:
    assert identity_at(nodes, index) == identity


@pytest.mark.parametrize(
    ("nodes", "index", "message"),
    [
        ("train-[1-2]", 2, r"^the tag corral:nodes=train-\[1-2\]: 'train-\[1-2\]' has no node 2$"),
        ("train-[1-2]", -1, r"^the tag corral:nodes=train-\[1-2\]: 'train-\[1-2\]' has no node -1$"),
        ("", 0, r"^the tag corral:nodes=: '' has no node 0$"),
        ("web server", 0, r"^the tag corral:nodes=web server: 'web server' is not a list of nodes$"),
    ],
)
def test_a_machine_without_a_node_is_an_error(nodes: str, index: int, message: str) -> None:
    with pytest.raises(IdentityError, match=message):
        identity_at(nodes, index)
