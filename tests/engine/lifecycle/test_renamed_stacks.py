"""An environment whose files were renamed: its stacks remain, and commands report them.

tests/engine/lifecycle/test_up_and_down_in_box.py has the scenario in a box.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from corral.engine.engine_errors import UnknownEnvironment
from corral.engine.lifecycle.renamed_stacks import renamed_stacks_line, stacks_without_file, with_state_hint
from corral.engine.progress.progress_display import default_display
from corral.engine.pulumi.binary import find_pulumi
from corral.engine.pulumi.pulumi_cli import PulumiCli, UpdateFiles
from corral.engine.pulumi.stack import Stack

UNKNOWN = UnknownEnvironment("there is no environment 'dev'", code=2)


def resource(name: str, kind: str) -> dict[str, object]:
    return {"urn": f"urn:pulumi:{name}::corral-cluster::{kind}::x", "type": kind, "custom": False}


@pytest.fixture
def backend(tmp_path: Path) -> Stack:
    """The stack `new`, which does not exist yet, `full` with resources, and `empty` without."""
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
        engine=PulumiCli(binary=find_pulumi(), environment=environ),
        project="corral-cluster",
        name="new",
        directory=folder,
        files=UpdateFiles(events=tmp_path / "events.jsonl", log=tmp_path / "engine.log"),
        display=default_display(quiet_stdout=True),
    )


@pytest.mark.long
@pytest.mark.pulumi
def test_stack_without_a_file_is_found_if_it_has_resources(backend: Stack) -> None:
    assert stacks_without_file([backend, backend]) == ("full",)


@pytest.mark.long
@pytest.mark.pulumi
def test_stack_with_a_file_is_not_listed(backend: Stack) -> None:
    (backend.directory / "Pulumi.full.yaml").touch()
    assert stacks_without_file([backend]) == ()


def test_stacks_in_an_account_are_reported_as_still_billed() -> None:
    assert renamed_stacks_line(["b1", "b2"], "b3", in_box=False) == (
        "the backend also holds 'b1', 'b2', without a file in this project; they still cost money (another project's,"
        " or environments of this one under a former name) - if 'b3' is a new name, rename the files back and run"
        " `corral down` first"
    )


def test_stacks_in_the_box_are_not_reported_as_billed() -> None:
    assert renamed_stacks_line(["b1"], "b2", in_box=True) == (
        "the box also holds 'b1', without a file in this project (another project's, or an environment of this one"
        " under a former name) - if 'b2' is its new name, rename the files back and run `corral down` first"
    )


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_unknown_environment_with_a_state_is_reported_with_the_fix(ending: str, tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi/stacks/corral-cluster"
    folder.mkdir(parents=True)
    (folder / f"dev{ending}").touch()
    assert str(with_state_hint(UNKNOWN, "dev", f"file://{tmp_path}", {}, " --box")) == (
        "there is no environment 'dev'\n"
        "  the backend still holds cluster 'dev': if its files were renamed, rename them back"
        " (stacks/cluster/Pulumi.dev.yaml and that of its base), then run `corral down dev --box`"
    )


@pytest.mark.parametrize("url", ["", "file:///nowhere", "https://api.pulumi.com", "s3://"])
def test_unknown_environment_without_a_state_has_no_hint(url: str) -> None:
    assert with_state_hint(UNKNOWN, "dev", url, {}) is UNKNOWN
