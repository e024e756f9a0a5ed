"""An environment whose files were renamed: its stacks live on, and who makes it anew, or asks for it, is told.

The tests with a box continue from each other's stacks, in the order in which they stand here.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from corral.engine.binary import find_pulumi
from corral.engine.errors import UnknownEnvironment
from corral.engine.former_names import lost_line, with_its_state, without_file
from corral.engine.printers import default_printer
from corral.engine.process import Engine, Files
from corral.engine.stack import Stack
from desks import Desk

UNKNOWN = UnknownEnvironment("there is no environment 'dev'", code=2)


def resource(name: str, kind: str) -> dict[str, object]:
    return {"urn": f"urn:pulumi:{name}::corral-cluster::{kind}::x", "type": kind, "custom": False}


@pytest.fixture
def backend(tmp_path: Path) -> Stack:
    """The stack `new`, which is not made yet, beside `full`, which holds something, and `empty`, which does not."""
    folder, state = tmp_path / "cluster", tmp_path / "state.json"
    folder.mkdir()
    (tmp_path / "states").mkdir()
    (folder / "Pulumi.yaml").write_text("name: corral-cluster\nruntime: python\n")
    backend = {"PULUMI_BACKEND_URL": f"file://{tmp_path}/states", "PULUMI_CONFIG_PASSPHRASE": ""}
    environ = {**os.environ, **backend, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    pulumi = [str(find_pulumi().path), "--non-interactive", "-C", str(folder), "stack"]
    for name, kinds in {
        "empty": ("pulumi:pulumi:Stack",),
        "full": ("pulumi:pulumi:Stack", "corral:aws:Network"),
    }.items():
        subprocess.run([*pulumi, "init", name], env=environ, check=True, capture_output=True)
        deployment = {"resources": [resource(name, kind) for kind in kinds]}
        state.write_text(json.dumps({"version": 3, "deployment": deployment}))
        subprocess.run([*pulumi, "import", "--stack", name, "--file", str(state)], env=environ, check=True)
    for file in folder.glob("Pulumi.?*.yaml"):
        file.unlink()
    return Stack(
        engine=Engine(binary=find_pulumi(), environment=environ),
        project="corral-cluster",
        name="new",
        directory=folder,
        files=Files(events=tmp_path / "events.jsonl", log=tmp_path / "engine.log"),
        printer=default_printer(quiet_stdout=True),
    )


@pytest.mark.pulumi
def test_a_stack_without_a_file_is_found_if_it_holds_something(backend: Stack) -> None:
    assert without_file([backend, backend]) == ("full",)


@pytest.mark.pulumi
def test_a_stack_with_a_file_is_not_lost(backend: Stack) -> None:
    (backend.directory / "Pulumi.full.yaml").touch()
    assert without_file([backend]) == ()


def test_what_lives_in_an_account_is_told_in_one_line_with_its_cost() -> None:
    assert lost_line(["b1", "b2"], "b3", in_box=False) == (
        "this backend also holds 'b1', 'b2', of which this project has no file: they live on and cost on; each is"
        " another project's, or an environment of this one under its former name - if 'b3' is such a new name, rename"
        " the files back and take the old one down first"
    )


def test_what_lives_in_the_box_costs_nothing() -> None:
    assert lost_line(["b1"], "b2", in_box=True) == (
        "the box also holds 'b1', of which this project has no file: it is another project's, or an environment of this"
        " one under its former name - if 'b2' is its new name, rename the files back and take the old one down first"
    )


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_an_unknown_environment_with_a_state_is_told_how_to_get_at_it(ending: str, tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi/stacks/corral-cluster"
    folder.mkdir(parents=True)
    (folder / f"dev{ending}").touch()
    assert str(with_its_state(UNKNOWN, "dev", f"file://{tmp_path}", {}, " --box")) == (
        "there is no environment 'dev'\n"
        "  the state of a cluster 'dev' is still in the backend: where its files were renamed, give them their former"
        " names again (stacks/cluster/Pulumi.dev.yaml and its base's), then `corral down dev --box`"
    )


@pytest.mark.parametrize("url", ["", "file:///nowhere", "https://api.pulumi.com", "s3://"])
def test_an_unknown_environment_without_a_state_is_only_unknown(url: str) -> None:
    assert with_its_state(UNKNOWN, "dev", url, {}) is UNKNOWN


@pytest.mark.pulumi
@pytest.mark.box
def test_who_makes_a_renamed_environment_is_told_once(desk: Desk) -> None:
    assert desk.run("up", "dev", "--yes").returncode == 0
    for stack in ("base", "cluster"):
        folder = desk.project / "stacks" / stack
        (folder / "Pulumi.dev.yaml").rename(folder / "Pulumi.prod.yaml")
    desk.replace("stacks/cluster/Pulumi.prod.yaml", "base: dev", "base: prod")
    said = desk.run("up", "prod", "--preview").stdout.splitlines()
    assert [line.partition(", of which")[0] for line in said if "also holds" in line] == [
        "cluster prod: the box also holds 'dev'"
    ]


@pytest.mark.pulumi
@pytest.mark.box
@pytest.mark.parametrize("verb", ["down", "up"])
def test_who_asks_for_the_former_name_is_told_of_its_state(verb: str, desk: Desk) -> None:
    done = desk.run(verb, "dev", "--yes")
    assert (done.returncode, "the state of a cluster 'dev' is still in the backend" in done.stderr) == (2, True)
