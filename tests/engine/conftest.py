"""The desk that tests with the real engine share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from boxes import running_box
from desks import Desk, furnished


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk whose box runs; a module's tests share it and continue from each other's stacks."""
    place = tmp_path_factory.mktemp("desk")
    with running_box(place / "box"):
        yield Desk(project=furnished(place / "project", small=True), box=place / "box")
