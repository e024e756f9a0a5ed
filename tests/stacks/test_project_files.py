"""The settings in both Pulumi.yaml: plain `pulumi up` relies on them, `corral up` passes them itself.

And what the shipped stack files say to editors.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from corral.spec.schema import Project, json_schema
from environments import PROJECT


@pytest.mark.parametrize("stack", ["base", "cluster"])
def test_every_run_looks_at_what_is_there_first(stack: str) -> None:
    project = yaml.safe_load((PROJECT / "stacks" / stack / "Pulumi.yaml").read_text())
    assert project["options"] == {"refresh": "always"}


@pytest.mark.parametrize("stack", ["base", "cluster"])
def test_no_resource_goes_to_a_provider_that_knows_neither_region_nor_tags(stack: str) -> None:
    project = yaml.safe_load((PROJECT / "stacks" / stack / "Pulumi.yaml").read_text())
    assert project["config"]["pulumi:disable-default-providers"] == ["aws"]


@pytest.mark.parametrize("project", ["corral-base", "corral-cluster"])
def test_the_shipped_schema_is_what_corral_schema_prints(project: Project) -> None:
    shipped = PROJECT / "stacks" / f"{project.removeprefix('corral-')}.schema.json"
    assert json.loads(shipped.read_text(encoding="utf-8")) == json_schema(project)


@pytest.mark.parametrize(
    "file", sorted((PROJECT / "stacks").glob("*/Pulumi.?*.yaml")), ids=lambda file: "/".join(file.parts[-2:])
)
def test_a_shipped_stack_file_names_its_schema_to_editors(file: Path) -> None:
    first = file.read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema=../{file.parent.name}.schema.json"
