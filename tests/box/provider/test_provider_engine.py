"""The real engine and the unmodified SDK against the stand-in: one wide program, its changes, and its end."""

from __future__ import annotations

import dataclasses
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import Project, project

import boxes
from corral.box import control
from corral.box.control import BoxStatus

pytestmark = pytest.mark.pulumi


@pytest.fixture(scope="module")
def wide_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("wide-box")) as status:
        yield status


@pytest.fixture(scope="module")
def wide(wide_box: BoxStatus, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The wide program, up."""
    made = project("wide", tmp_path_factory.mktemp("wide"), wide_box)
    said = made.up()
    assert "warning" not in said
    return made


@pytest.fixture
def settled(wide: Project) -> Iterator[Project]:
    """The wide program, and afterwards as it was."""
    yield wide
    wide.refresh()
    wide.succeed("config", "rm-all", *SETTINGS)
    wide.up()


SETTINGS = ("env", "name", "ssh", "max", "user_data", "image", "state", "lustre")


def _bare(project_: Project, box: BoxStatus, **environment: str) -> Project:
    return dataclasses.replace(project_, environment={**project_.environment, **environment})


def test_after_up_and_refresh_nothing_is_left_to_do(wide: Project) -> None:
    wide.refresh()
    assert wide.planned() == {}


def test_a_changed_line_of_a_file_is_shown_and_nothing_else_changes(wide: Project) -> None:
    said = wide.preview(max="6")
    lines = [line.strip() for line in said.splitlines() if "train-[1-" in line]
    assert (lines, re.findall(r"~ \d+ to update", said)) == (
        ["- NodeName=train-[1-4] State=CLOUD", "+ NodeName=train-[1-6] State=CLOUD"],
        ["~ 1 to update"],
    )


def test_a_changed_template_gets_a_version_that_is_the_default(settled: Project, wide_box: BoxStatus) -> None:
    assert settled.planned(user_data="IyEvYmluL3NoCmVjaG8K") == {"LaunchTemplate train-spot-a": "update"}
    settled.up(user_data="IyEvYmluL3NoCmVjaG8K")
    templates = boxes.client(wide_box, "ec2").describe_launch_templates()["LaunchTemplates"]
    assert [(one["DefaultVersionNumber"], one["LatestVersionNumber"]) for one in templates] == [(2, 2)]
