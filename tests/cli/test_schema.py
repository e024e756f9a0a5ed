"""`corral schema`: on stdout, as files, and as editors use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import corral

from corral.spec.schema import json_schema

OWN_TYPE = """
[instances."p9.test"]
architecture = "x86_64"
vcpus = 8
cores = 4
threads_per_core = 2
sockets = 1
memory_mib = 65536
network_cards = [{ first = 0, last = 0, interface_types = ["interface"], maximum_interfaces = 4 }]
network_gbps = 25
network_baseline_gbps = 10
efa_maximum = 0
markets = ["on-demand", "spot"]
"""


@pytest.mark.parametrize(("word", "project"), [("base", "corral-base"), ("cluster", "corral-cluster")])
def test_the_schema_of_a_file_is_printed(word: str, project: str) -> None:
    assert json.loads(corral("schema", word).stdout) == json_schema(project)  # type: ignore[arg-type]


def test_both_schemas_are_written_into_a_directory(tmp_path: Path) -> None:
    corral("schema", "--out", str(tmp_path / "stacks"))
    written = {file.name: json.loads(file.read_text())["title"] for file in (tmp_path / "stacks").iterdir()}
    assert written == {
        "base.schema.json": "corral-base: Pulumi.<name>.yaml",
        "cluster.schema.json": "corral-cluster: Pulumi.<name>.yaml",
    }


def test_one_schema_is_written(tmp_path: Path) -> None:
    done = corral("schema", "cluster", "--out", str(tmp_path))
    assert (done.stdout, [file.name for file in tmp_path.iterdir()]) == (
        f"wrote {tmp_path}/cluster.schema.json\n",
        ["cluster.schema.json"],
    )


def test_schema_names_the_projects_own_types(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    (tmp_path / "catalog.toml").write_text(OWN_TYPE)
    corral("schema", "cluster", "--out", str(tmp_path / "stacks"), "--project", str(tmp_path))
    written = json.loads((tmp_path / "stacks/cluster.schema.json").read_text())
    names = [written["$defs"][one]["properties"]["instance_type"]["enum"] for one in ("HeadSpec", "QueueSpec")]
    assert ["p9.test" in one and "p5.48xlarge" in one for one in names] == [True, True]


def test_schema_of_a_new_project_has_the_types_of_its_directory(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(OWN_TYPE)
    corral("new", str(tmp_path))
    assert '"p9.test"' in (tmp_path / "stacks/cluster.schema.json").read_text()


def test_invalid_catalog_is_reported(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    (tmp_path / "catalog.toml").write_text("[instances.x")
    done = corral("schema", "base", "--project", str(tmp_path))
    assert (done.returncode, done.stderr.startswith("catalog.toml: is not TOML: ")) == (2, True)


def test_schema_outside_of_a_project_has_the_shipped_types(tmp_path: Path) -> None:
    done = corral("schema", "cluster", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, json_schema("corral-cluster"))


def test_no_kind_is_wrong_input() -> None:
    done = corral("schema")
    assert (done.returncode, done.stderr) == (
        2,
        "corral: give one of base, cluster, run and buy, or write base and cluster with --out DIR\n",
    )


def test_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = corral("schema", "--out", str(tmp_path / "file" / "below"))
    assert (done.returncode, done.stderr) == (1, f"corral: {tmp_path}/file/below: Not a directory\n")


def test_new_project_has_schemas_and_files_that_name_them(tmp_path: Path) -> None:
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


def test_run_files_have_a_schema_of_their_own() -> None:
    document = json.loads(corral("schema", "run").stdout)
    assert (document["title"], "batch_sequences" in document["properties"]) == ("corral: a run file", True)
