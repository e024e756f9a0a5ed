"""The command-line session shared by tests with the real engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from boxes import running_box
from cli_session import CliSession, copy_project


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliSession]:
    """A session with a running box. The tests of a module share it and continue from each other's stacks."""
    directory = tmp_path_factory.mktemp("cli")
    with running_box(directory / "box"):
        yield CliSession(project=copy_project(directory / "project", small=True), box=directory / "box")
