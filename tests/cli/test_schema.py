"""`corral schema`: on stdout, as files, and what an editor takes from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import corral

from corral.spec.schema import json_schema


@pytest.mark.parametrize(("word", "project"), [("base", "corral-base"), ("cluster", "corral-cluster")])
def test_the_schema_of_a_file_is_printed(word: str, project: str) -> None:
    assert json.loads(corral("schema", word).stdout) == json_schema(project)  # type: ignore[arg-type]


def test_both_are_written_into_a_directory(tmp_path: Path) -> None:
    corral("schema", "--out", str(tmp_path / "stacks"))
    written = {file.name: json.loads(file.read_text())["title"] for file in (tmp_path / "stacks").iterdir()}
    assert written == {
        "base.schema.json": "corral-base: Pulumi.<name>.yaml",
        "cluster.schema.json": "corral-cluster: Pulumi.<name>.yaml",
    }


def test_one_alone_is_written(tmp_path: Path) -> None:
    done = corral("schema", "cluster", "--out", str(tmp_path))
    assert (done.stdout, [file.name for file in tmp_path.iterdir()]) == (
        f"wrote {tmp_path}/cluster.schema.json\n",
        ["cluster.schema.json"],
    )


def test_nothing_chosen_is_wrong_input() -> None:
    done = corral("schema")
    assert (done.returncode, done.stderr) == (2, "corral: name one of base and cluster, or write both with --out DIR\n")


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = corral("schema", "--out", str(tmp_path / "file" / "below"))
    assert (done.returncode, done.stderr) == (1, f"corral: {tmp_path}/file/below: Not a directory\n")


def test_a_new_project_has_the_schemas_and_its_files_name_them(tmp_path: Path) -> None:
    done = corral("new", str(tmp_path / "mine"))
    stacks = tmp_path / "mine" / "stacks"
    named = [(stacks / one / "Pulumi.dev.yaml").read_text().splitlines()[0] for one in ("base", "cluster")]
    assert (done.returncode, sorted(file.name for file in stacks.glob("*.json")), named) == (
        0,
        ["base.schema.json", "cluster.schema.json"],
        [
            "# yaml-language-server: $schema=../base.schema.json",
            "# yaml-language-server: $schema=../cluster.schema.json",
        ],
    )


def test_a_new_project_with_its_schemas_can_be_planned(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    assert corral("plan", "dev", "--project", str(tmp_path)).returncode == 0
