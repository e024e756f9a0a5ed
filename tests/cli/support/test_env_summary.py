"""Commands that only read an environment work while its files have errors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import REPOSITORY, corral

import boxes
from corral.cli.support.env_summary import EnvironmentSummary, read_summary
from corral.spec.spec_errors import SpecErrors

THERE = "errors in"
PROBLEM = f"{THERE} stacks/cluster/Pulumi.dev.yaml - `corral plan dev` lists them"
OUTLINE = ("dev", "dev", "us-east-1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the shipped stacks."""
    shutil.copytree(REPOSITORY / "stacks", tmp_path / "project" / "stacks")
    return tmp_path / "project"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A box with nothing deployed."""
    with boxes.running_box(tmp_path_factory.mktemp("box")) as box:
        yield box.dir


def edit(project: Path, before: str, after: str, of: str = "cluster") -> None:
    file = project / f"stacks/{of}/Pulumi.dev.yaml"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def summary(project: Path) -> EnvironmentSummary:
    return read_summary(project, "dev", in_box=False, box_directory=None)


def outline(project: Path) -> tuple[str, str, str]:
    found = summary(project)
    return found.name, found.base, found.region


def test_valid_files_have_no_error(project: Path) -> None:
    assert (outline(project), summary(project).problem) == (OUTLINE, "")


def test_spec_error_leaves_name_base_and_region(project: Path) -> None:
    edit(project, "max: 4", "max: four")
    assert (outline(project), summary(project).problem) == (OUTLINE, PROBLEM)


def test_truncated_file_leaves_name_base_and_region(project: Path) -> None:
    edit(project, "nodes: {min: 0", "nodes: {{min: 0")
    assert outline(project) == OUTLINE


def test_error_of_the_base_leaves_name_base_and_region(project: Path) -> None:
    edit(project, "  corral-base:spec:", "  corral-base:spec:\n    oops: 1", of="base")
    assert outline(project) == OUTLINE


def test_unreadable_catalog_leaves_name_base_and_region(project: Path) -> None:
    (project / "catalog.toml").write_text("[")
    assert (outline(project), summary(project).problem) == (
        OUTLINE,
        f"{THERE} catalog.toml - `corral plan dev` lists them",
    )


def test_invalid_region_is_not_searched(project: Path) -> None:
    edit(project, "us-east-1", "us-eest-1")
    with pytest.raises(SpecErrors, match="aws:region"):
        summary(project)


@pytest.mark.box
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("status", 0, f"corral: {PROBLEM}"),
        ("connect", 1, "corral: dev has no head now"),
        ("timeline", 1, "corral: dev has no head now and no recorded history"),
    ],
)
def test_read_commands_work_despite_a_spec_error(
    project: Path, box: Path, command: str, code: int, message: str
) -> None:
    edit(project, "max: 4", "max: four")
    done = corral(command, "dev", "--box-dir", str(box), cwd=project)
    assert (done.returncode, done.stderr.startswith(message)) == (code, True)
