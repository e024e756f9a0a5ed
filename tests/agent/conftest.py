"""One box for all tests of the agent that need EC2 or secrets; each test starts with an empty cloud."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

import boxes
from box.vpc_fixtures import Clients, LaunchNetwork, create_launch_network
from corral.box import client
from corral.box.client import BoxStatus


@pytest.fixture(scope="session")
def session_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("box") / "state") as status:
        yield status


@pytest.fixture
def box(session_box: BoxStatus) -> BoxStatus:
    """A running box with an empty cloud."""
    client.reset(session_box.dir)
    return session_box


@pytest.fixture
def aws(box: BoxStatus) -> Clients:
    """Makes boto3 clients of the box: `aws("ec2")`."""
    return partial(boxes.client, box)


@pytest.fixture
def launch_network(aws: Clients) -> LaunchNetwork:
    """A network to launch in."""
    return create_launch_network(aws)
