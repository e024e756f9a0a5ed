"""One box for all tests of this package; each test starts with an empty cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from vpc_fixtures import LaunchNetwork, create_launch_network

import boxes
from corral.box import client
from corral.box.client import BoxStatus

Clients = Callable[..., Any]


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
def state_directory(tmp_path: Path) -> Iterator[Path]:
    """A directory for a box of the test's own, stopped at the end."""
    directory = tmp_path / "state"
    yield directory
    client.stop(directory)


@pytest.fixture
def launch_network(aws: Clients) -> LaunchNetwork:
    """A network to launch in."""
    return create_launch_network(aws)
