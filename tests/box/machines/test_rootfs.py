"""The system of a box's machines, and its image profile."""

from __future__ import annotations

from pathlib import Path

import pytest

import boxes
from corral.box import client
from corral.box.client import BoxError
from corral.box.machines.rootfs import image_profile, system_from_environment, system_of
from corral.box.state.directory import StateDirectory
from corral.box.vpc.virtual_network import copy_etc


def system(directory: Path, version: str) -> Path:
    """A root directory with this version of Slurm."""
    (directory / "etc").mkdir(parents=True)
    (directory / "etc/corral-slurm").write_text(f"{version}\n")
    return directory


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({}, None), ({"CORRAL_BOX_SYSTEM": ""}, None), ({"CORRAL_BOX_SYSTEM": "/debian"}, Path("/debian"))],
    ids=["nothing", "an empty word", "a directory"],
)
def test_the_environment_names_the_system(environ: dict[str, str], expected: Path | None) -> None:
    assert system_from_environment(environ) == expected


@pytest.mark.parametrize(("version", "profile"), [("24.11.5", "box-debian-13"), ("26.05.5", "box-debian-sid")])
def test_a_system_is_known_by_its_slurm(tmp_path: Path, version: str, profile: str) -> None:
    assert image_profile(system(tmp_path / "root", version)) == profile


def test_this_system_has_the_boxs_own_profile() -> None:
    assert image_profile(Path("/")) == "box-debian-12"


def test_a_slurm_without_a_profile_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    root = system(tmp_path / "root", "25.05.1")
    expected = f"^{root} has Slurm 25.05.1; the box supports 22.05, 24.11, 26.05$"
    with pytest.raises(BoxError, match=expected):
        image_profile(root)


def test_a_directory_that_does_not_say_its_slurm_is_no_system(tmp_path: Path) -> None:
    with pytest.raises(BoxError, match=f"^{tmp_path} cannot be the system of a box's machines: etc/corral-slurm: "):
        image_profile(tmp_path)


def test_machines_have_the_settings_of_their_system_without_its_secrets(tmp_path: Path) -> None:
    root = system(tmp_path / "root", "24.11.5")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/shadow").write_text("root:$y$secret:1::::::\n")
    copy_etc(tmp_path / "etc", root)
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
        boxes.start(tmp_path / "box", system=chosen)
        client.stop(tmp_path / "box")
    assert system_of(StateDirectory(tmp_path / "box")) == root


@pytest.mark.box
def test_a_box_passes_the_image_of_its_system_to_commands(tmp_path: Path) -> None:
    boxes.start(tmp_path / "box", system=system(tmp_path / "root", "26.05.5"))
    variables = client.environment(tmp_path / "box")
    client.stop(tmp_path / "box")
    assert variables["CORRAL_BOX_IMAGE"] == "box-debian-sid"


@pytest.mark.box
def test_a_box_that_holds_anything_takes_no_other_system(tmp_path: Path) -> None:
    boxes.start(tmp_path / "box")
    client.stop(tmp_path / "box")
    root = system(tmp_path / "root", "24.11.5")
    expected = f"^the box in {tmp_path}/box uses the system in /, not {root} - choose another "
    with pytest.raises(BoxError, match=expected):
        boxes.start(tmp_path / "box", system=root)
