"""The JSON Schema that editors use: stable, and nothing in it without a word of explanation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

import pytest

from corral.spec.schema import Project, buy_schema, json_schema
from environments import PROJECT

PROJECTS = get_args(Project)


@pytest.mark.parametrize("project", PROJECTS)
def test_the_schema_is_as_reviewed(project: Project, golden: Callable[[str, str], None]) -> None:
    golden(f"spec/{project}.schema.json", json.dumps(json_schema(project), indent=2) + "\n")


@pytest.mark.parametrize("project", PROJECTS)
def test_every_field_is_described(project: Project) -> None:
    schema = json_schema(project)
    fields = [*_fields(schema["properties"]["config"]), *(f for d in schema["$defs"].values() for f in _fields(d))]
    assert [name for name, field in fields if not field.get("description")] == []


def _fields(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, field in record.get("properties", {}).items():
        yield name, field
        if "properties" in field:
            yield from _fields(field)


def test_the_schema_next_to_the_example_of_hardware_is_current() -> None:
    assert json.loads((PROJECT / "examples/buy/buy.schema.json").read_text()) == buy_schema()
