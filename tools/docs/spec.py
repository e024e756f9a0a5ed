"""docs/spec.md: the reference of the spec, from the schema that editors use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from corral.catalog.aws.instance_types import instance_types
from corral.spec.schema import Project, buy_schema, json_schema, run_schema

_FILES: Mapping[Project, str] = {
    "corral-base": "stacks/base/Pulumi.<name>.yaml",
    "corral-cluster": "stacks/cluster/Pulumi.<name>.yaml",
}
_MAX_CHOICES = 12  # a longer list would crowd out the description


def reference() -> str:
    """Return the page: every field by its path, with type, bounds and description."""
    lines = [
        "# Spec: every field of the files",
        "",
        "`make docs` writes this page from the schema.",
    ]
    for project, file in _FILES.items():
        schema = json_schema(project)
        spec = schema["properties"]["config"]["properties"][f"{project}:spec"]
        lines += ["", f"## {file}, `{project}:spec`", *_table(spec, schema["$defs"])]
    run = run_schema()
    lines += ["", "## A run file: one training run, such as examples/runs/llama3-8b.yaml", *_table(run, run["$defs"])]
    lines += ["", "## A purchase file, such as examples/buy/h100.yaml", *_table(buy_schema(), {})]
    return "\n".join(lines) + "\n"


def _table(spec: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", "| field | type | what it is |", "|---|---|---|")
    for path, kind, text in _rows(spec, definitions, ""):
        yield f"| `{path}` | {kind} | {text} |"


def _rows(record: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for name, field in record.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        target, suffix = _record_of(field, definitions)
        needed = " **Required.**" if name in record.get("required", ()) else ""
        yield f"{where}{suffix}", _kind(field, target), f"{field.get('description', '')}{needed}"
        if target:
            yield from _rows(target, definitions, f"{where}{suffix}")


def _record_of(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The record that a field, its items or its values hold, and the suffix of its path."""
    values = field.get("additionalProperties")
    if "items" in field:
        item, suffix = field["items"], "[]"
    elif isinstance(values, Mapping) and "$ref" in values:
        item, suffix = values, ".NAME"
    else:
        item, suffix = field, ""
    item = next((choice for choice in item.get("anyOf", ()) if "$ref" in choice), item)
    reference = str(item.get("$ref", "")).rpartition("/")[2]
    target = definitions.get(reference, {})
    return (target if "properties" in target else {}), suffix


def _kind(field: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    if target:
        words = [f"{choice['const']} or " for choice in field.get("anyOf", ()) if "const" in choice]
        if "additionalProperties" in field:
            return "map"
        return "list" if "items" in field else "".join((*words, "record"))
    if "items" in field:
        return f"list of {_kind(field['items'], {})}"
    if "enum" in field:
        words = [str(word) for word in field["enum"]]
        if words == list(instance_types()):
            return f"one of {len(words)} names, or one of the project's own `catalog.toml`"
        return ", ".join(words) if len(words) <= _MAX_CHOICES else f"one of {len(words)} names"
    bounds = [f"at least {field['minimum']}"] if "minimum" in field else []
    bounds += [f"at most {field['maximum']}"] if "maximum" in field else []
    kinds = field.get("type", "text")
    kind = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return " ".join([kind.replace("string", "text").replace("object", "map"), *bounds])
