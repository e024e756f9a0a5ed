"""What looking at an environment needs of its files, while somebody edits them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import REPOSITORY, corral

import boxes
from corral.cli.outlines import Outline, read_outline
from corral.spec.errors import SpecErrors

THERE = "there are mistakes in"
TELLS = f"{THERE} stacks/cluster/Pulumi.dev.yaml - `corral plan dev` lists them"
OUTLINE = ("dev", "dev", "us-east-1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the shipped stacks."""
    shutil.copytree(REPOSITORY / "stacks", tmp_path / "project" / "stacks")
    return tmp_path / "project"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A box in which nothing is up."""
    with boxes.running_box(tmp_path_factory.mktemp("box")) as box:
        yield box.dir


def edit(project: Path, before: str, after: str, of: str = "cluster") -> None:
    file = project / f"stacks/{of}/Pulumi.dev.yaml"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def looked_at(project: Path) -> Outline:
    return read_outline(project, "dev", in_box=False, box_directory=None)


def outline(project: Path) -> tuple[str, str, str]:
    found = looked_at(project)
    return found.name, found.base, found.region


def test_files_without_mistakes_have_nothing_to_tell(project: Path) -> None:
    assert (outline(project), looked_at(project).mistakes) == (OUTLINE, "")


def test_a_mistake_leaves_name_base_and_region(project: Path) -> None:
    edit(project, "max: 4", "max: four")
    assert (outline(project), looked_at(project).mistakes) == (OUTLINE, TELLS)


def test_so_does_a_file_that_is_torn_after_its_base(project: Path) -> None:
    edit(project, "nodes: {min: 0", "nodes: {{min: 0")
    assert outline(project) == OUTLINE


def test_so_does_a_mistake_of_the_base(project: Path) -> None:
    edit(project, "  corral-base:spec:", "  corral-base:spec:\n    oops: 1", of="base")
    assert outline(project) == OUTLINE


def test_so_does_a_catalogue_that_cannot_be_read(project: Path) -> None:
    (project / "catalogue.toml").write_text("[")
    assert (outline(project), looked_at(project).mistakes) == (
        OUTLINE,
        f"{THERE} catalogue.toml - `corral plan dev` lists them",
    )


def test_a_region_that_is_wrong_is_no_place_to_look(project: Path) -> None:
    edit(project, "us-east-1", "us-eest-1")
    with pytest.raises(SpecErrors, match="aws:region"):
        looked_at(project)


@pytest.mark.box
@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("status", 0, f"corral: {TELLS}"),
        ("connect", 1, "corral: dev has no head now"),
        ("timeline", 1, "corral: dev has no head now, and no life of it is kept"),
    ],
)
def test_who_looks_is_not_kept_from_it_by_a_mistake(
    project: Path, box: Path, command: str, code: int, told: str
) -> None:
    edit(project, "max: 4", "max: four")
    done = corral(command, "dev", "--box-dir", str(box), cwd=project)
    assert (done.returncode, done.stderr.startswith(told)) == (code, True)
