"""One box for all tests of this room that need EC2 or secrets; each test starts with an empty cloud."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

import boxes
from box.ground import Clients, Ground, lay
from corral.box import control
from corral.box.control import BoxStatus


@pytest.fixture(scope="session")
def session_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("box") / "state") as status:
        yield status


@pytest.fixture
def box(session_box: BoxStatus) -> BoxStatus:
    """A running box with an empty cloud."""
    control.reset(session_box.dir)
    return session_box


@pytest.fixture
def aws(box: BoxStatus) -> Clients:
    """Makes boto3 clients of the box: `aws("ec2")`."""
    return partial(boxes.client, box)


@pytest.fixture
def ground(aws: Clients) -> Ground:
    """A network to launch in."""
    return lay(aws)
