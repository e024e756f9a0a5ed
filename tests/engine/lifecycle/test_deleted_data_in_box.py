"""A base whose retained data was deleted comes up again, while AWS's tagging API still lists that data."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxes import running_box
from cli_session import CliSession, copy_project
from corral.box import control
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]


def test_an_up_does_not_import_deleted_data_that_the_tagging_api_lists(tmp_path: Path) -> None:
    with running_box(tmp_path / "box"):
        cli = CliSession(project=copy_project(tmp_path / "project", small=False), box=tmp_path / "box")
        control.inject_fault(cli.box, "stale-tags")
        with step("an environment is up, and down with its data"):
            assert cli.run("up", "dev", "--yes").returncode == 0
            assert cli.run("down", "dev", "--delete-data", "dev", "--yes").returncode == 0
        with step("it comes up again"):
            again = cli.run("up", "dev", "--yes")
            assert (again.returncode, again.stderr) == (0, "")
