"""Which system the machines of a box are, and the image profile that follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.box import control
from corral.box.control import BoxError
from corral.box.directory import StateDirectory
from corral.box.system import chosen_system, image_profile, system_of
from corral.box.vpc.network import copy_settings


def system(directory: Path, version: str) -> Path:
    """A root directory that says it has this Slurm."""
    (directory / "etc").mkdir(parents=True)
    (directory / "etc/corral-slurm").write_text(f"{version}\n")
    return directory


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({}, None), ({"CORRAL_BOX_SYSTEM": ""}, None), ({"CORRAL_BOX_SYSTEM": "/debian"}, Path("/debian"))],
    ids=["nothing", "an empty word", "a directory"],
)
def test_the_environment_names_the_system(environ: dict[str, str], expected: Path | None) -> None:
    assert chosen_system(environ) == expected


@pytest.mark.parametrize(("version", "profile"), [("24.11.5", "box-debian-13"), ("26.05.5", "box-debian-sid")])
def test_a_system_is_known_by_its_slurm(tmp_path: Path, version: str, profile: str) -> None:
    assert image_profile(system(tmp_path / "root", version)) == profile


def test_this_system_has_the_boxs_own_profile() -> None:
    assert image_profile(Path("/")) == "box-debian-12"


def test_a_slurm_that_no_profile_has_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    root = system(tmp_path / "root", "25.05.1")
    expected = f"^{root} has Slurm 25.05.1, the box's machines can have that of 22.05, 24.11, 26.05$"
    with pytest.raises(BoxError, match=expected):
        image_profile(root)


def test_a_directory_that_does_not_say_its_slurm_is_no_system(tmp_path: Path) -> None:
    with pytest.raises(BoxError, match=f"^{tmp_path} cannot be the system of a box's machines: etc/corral-slurm: "):
        image_profile(tmp_path)


def test_machines_have_the_settings_of_their_system_without_its_secrets(tmp_path: Path) -> None:
    root = system(tmp_path / "root", "24.11.5")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/shadow").write_text("root:$y$secret:1::::::\n")
    copy_settings(tmp_path / "etc", root)
    found = {path.name: path.read_text() for path in (tmp_path / "etc").iterdir()}
    assert found == {
        "corral-slurm": "24.11.5\n",
        "passwd": "root:x:0:0:root:/root:/bin/sh\n",
        "shadow": "root:*:::::::\n",
    }


@pytest.mark.box
def test_a_box_keeps_the_system_that_it_began_with(tmp_path: Path) -> None:
    root = system(tmp_path / "root", "24.11.5")
    for chosen in (root, None):
        control.start(tmp_path / "box", system=chosen)
        control.stop(tmp_path / "box")
    assert system_of(StateDirectory(tmp_path / "box")) == root


@pytest.mark.box
def test_a_box_tells_commands_the_image_of_its_system(tmp_path: Path) -> None:
    control.start(tmp_path / "box", system=system(tmp_path / "root", "26.05.5"))
    variables = control.environment(tmp_path / "box")
    control.stop(tmp_path / "box")
    assert variables["CORRAL_BOX_IMAGE"] == "box-debian-sid"


@pytest.mark.box
def test_a_box_that_holds_anything_takes_no_other_system(tmp_path: Path) -> None:
    control.start(tmp_path / "box")
    control.stop(tmp_path / "box")
    root = system(tmp_path / "root", "24.11.5")
    expected = f"^the box in {tmp_path}/box holds what began with the system in /, not in {root} - choose another "
    with pytest.raises(BoxError, match=expected):
        control.start(tmp_path / "box", system=root)
