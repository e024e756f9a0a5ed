"""The wheel is complete, and corral installed from it needs no checkout."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from corral import __version__

if TYPE_CHECKING:
    from conftest import InstalledCorral

CHECKOUT = Path(__file__).parents[2]
LINKED = {"corral/templates": "templates", "corral/projects": "stacks", "corral/runbooks": "docs/runbooks"}

pytestmark = pytest.mark.wheel


def names(wheel: Path) -> list[str]:
    with ZipFile(wheel) as archive:
        return archive.namelist()


def tracked(directory: str) -> set[str]:
    """The files that git tracks or would add below a directory of the checkout, relative to it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", directory]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    paths = {PurePosixPath(name) for name in listed.split("\0") if name and (CHECKOUT / name).exists()}
    return {str(path.relative_to(directory)) for path in paths}


@pytest.mark.parametrize("inside", LINKED)
def test_linked_directory_is_complete_in_the_wheel(wheel: Path, inside: str) -> None:
    packed = {name.removeprefix(f"{inside}/") for name in names(wheel) if name.startswith(f"{inside}/")}
    assert packed == tracked(LINKED[inside]) != set()


def test_both_stack_projects_are_in_the_wheel(wheel: Path) -> None:
    projects = {name for name in names(wheel) if PurePosixPath(name).name == "Pulumi.yaml"}
    assert projects == {"corral/projects/base/Pulumi.yaml", "corral/projects/cluster/Pulumi.yaml"}


def test_no_file_in_the_wheel_is_a_symbolic_link(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        links = [info.filename for info in archive.infolist() if stat.S_ISLNK(info.external_attr >> 16)]
    assert links == []


def test_no_bytecode_is_in_the_wheel(wheel: Path) -> None:
    assert [name for name in names(wheel) if name.endswith(".pyc") or "__pycache__" in name] == []


def test_no_stack_settings_in_the_wheel_have_a_salt(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        settings = [name for name in archive.namelist() if PurePosixPath(name).match("Pulumi.*.yaml")]
        salted = [name for name in settings if b"encryptionsalt" in archive.read(name)]
    assert salted == []


def test_the_wheel_installs_nothing_but_corral(wheel: Path) -> None:
    assert {name.split("/")[0] for name in names(wheel)} == {"corral", f"corral-{__version__}.dist-info"}


def test_installed_corral_comes_from_the_wheel(installed_corral: InstalledCorral) -> None:
    path = installed_corral.run_python("import corral; print(corral.__file__)")
    assert Path(path).is_relative_to(installed_corral.python.parents[1])


def test_installed_corral_reads_its_templates_and_projects(installed_corral: InstalledCorral) -> None:
    program = "from importlib.resources import files; print(*(files('corral').joinpath(d).is_dir() for d in {!r}))"
    assert installed_corral.run_python(program.format(("templates", "projects"))) == "True True"


def test_installed_corral_has_the_runbooks(installed_corral: InstalledCorral) -> None:
    assert installed_corral.run("runbook", "CorralNodeSlow").stdout.startswith("# CorralNodeSlow\n")


def test_installed_corral_has_the_version_of_the_package(installed_corral: InstalledCorral) -> None:
    assert installed_corral.run_python("import importlib.metadata as m; print(m.version('corral'))") == __version__


def test_installed_corral_shows_its_help(installed_corral: InstalledCorral) -> None:
    assert installed_corral.run("--help").returncode == 0


def test_showing_help_leaves_no_file_behind(installed_corral: InstalledCorral) -> None:
    installed_corral.run("--help")
    assert [*installed_corral.directory.iterdir(), *installed_corral.directory.with_name("home").iterdir()] == []


@pytest.fixture(scope="session")
def project(installed_corral: InstalledCorral) -> InstalledCorral:
    """The installed corral, with a new project in its directory."""
    done = installed_corral.run("new", ".")
    assert done.returncode == 0, done.stderr
    return installed_corral


def test_installed_corral_plans(project: InstalledCorral) -> None:
    done = project.run("plan", "dev")
    assert (done.returncode, "p4d.24xlarge" in done.stdout) == (0, True), done.stderr


def test_installed_corral_renders_the_same_as_the_checkout(project: InstalledCorral, tmp_path: Path) -> None:
    from corral import render
    from environments import dev_cluster

    done = project.run("render", "dev", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/slurm/slurm.conf").read_text() == render.cluster_files(dev_cluster())["slurm/slurm.conf"]


def test_second_new_fails(project: InstalledCorral) -> None:
    assert project.run("new", ".").returncode == 4
