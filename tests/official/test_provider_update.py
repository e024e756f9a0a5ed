"""`make provider-update`: what changes between two exported schemas, and how the command prints it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tools.provider_update.schema_changes import schema_changes

ROOT = Path(__file__).parents[2]
PINNED = ROOT / "tests/box/provider/official_schema.json"
VPC = "aws:ec2/vpc:Vpc"
TEXT = {"type": "String", "optional": True}


def schema(properties: Mapping[str, Any], **more: object) -> Mapping[str, Any]:
    return {"resources": {VPC: {"properties": properties, **more}}}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ({}, {"a": TEXT}, "a is new: String, optional"),
        (
            {},
            {"a.b": {"type": "Int", "required": True, "replaces": True, "default": 3}},
            "a.b is new: Int, required, replaces the resource, default 3",
        ),
        ({}, {"arn": {"type": "String", "computed": True}}, "arn is new: String, output"),
        ({"a": TEXT}, {}, "a is removed"),
        ({"a": TEXT}, {"a": {**TEXT, "type": "Int"}}, "a is Int, not String"),
        ({"a": TEXT}, {"a": {**TEXT, "replaces": True}}, "a replaces the resource now"),
        ({"a": {**TEXT, "replaces": True}}, {"a": TEXT}, "a no longer replaces the resource"),
        ({"a": TEXT}, {"a": {**TEXT, "required": True}}, "a is required now"),
        ({"a": {**TEXT, "computed": True}}, {"a": TEXT}, "a is no longer computed"),
        ({"a": TEXT}, {"a": {"type": "String"}}, "a is no longer an argument"),
        ({"a": {**TEXT, "default": True}}, {"a": TEXT}, "a has the default none, not True"),
        ({"a": TEXT}, {"a": {**TEXT, "default": "x"}}, "a has the default 'x', not none"),
    ],
)
def test_a_change_of_a_property_is_a_line(old: Mapping[str, Any], new: Mapping[str, Any], line: str) -> None:
    assert schema_changes(schema(old), schema(new)) == {VPC: [line]}


def test_equal_schemas_have_no_changes() -> None:
    assert schema_changes(schema({"a": TEXT}), schema({"a": TEXT})) == {}


def test_a_type_that_the_new_schema_lacks_is_a_line() -> None:
    assert schema_changes(schema({}), {"resources": {}}) == {VPC: ["is not in the new schema"]}


def test_types_that_only_the_new_schema_has_are_left_out() -> None:
    assert schema_changes({"resources": {}}, schema({"a": TEXT})) == {}


def test_a_type_whose_schema_becomes_partial_is_a_line() -> None:
    assert schema_changes(schema({}), schema({}, partial=True)) == {
        VPC: ["is of the newer generation of the SDK now: the schema has neither its replacements nor its defaults"]
    }


def provider_update(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.provider_update", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/prepare")}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_changed_argument_of_the_stand_in_comes_first_and_is_exit_code_1(tmp_path: Path) -> None:
    new = json.loads(PINNED.read_text())
    new["terraform-provider-aws"] = "6.99.0"
    properties = new["resources"][VPC]["properties"]
    properties["cidrBlock"]["replaces"] = False
    properties["shiny"] = TEXT
    (tmp_path / "new.json").write_text(json.dumps(new))
    done = provider_update(tmp_path / "new.json")
    assert (done.returncode, done.stdout.splitlines()) == (
        1,
        [
            "from terraform-provider-aws 6.34.0, pulumi-aws 7.51.1, pulumi-terraform-bridge v3.124.0",
            "to   terraform-provider-aws 6.99.0, pulumi-aws 7.51.1, pulumi-terraform-bridge v3.124.0",
            "",
            "Arguments that the stand-in has, so that stacks may set them:",
            "  aws:ec2/vpc:Vpc cidrBlock no longer replaces the resource",
            "",
            "Everything else:",
            "  aws:ec2/vpc:Vpc shiny is new: String, optional",
        ],
    )


def test_two_equal_files_are_exit_code_0() -> None:
    done = provider_update(PINNED, PINNED)
    assert (done.returncode, done.stdout.count("no change")) == (0, 2)


def test_a_file_that_is_no_schema_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text("{}")
    done = provider_update(tmp_path / "new.json")
    assert (done.returncode, done.stderr) == (
        2,
        f"{tmp_path}/new.json is no schema: write one with `pulumi-resource-aws schema`\n",
    )
