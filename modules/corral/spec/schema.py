"""JSON Schema of the files that users write, for editors: every field with description and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from corral.catalog.accelerators.transformer_models import models
from corral.catalog.aws.images import image_profiles
from corral.catalog.aws.lustre import lustre_choices
from corral.catalog.aws.regions import regions
from corral.catalog.project_catalog import Catalog, shipped_catalog
from corral.spec.models.base import BaseSpecInput
from corral.spec.models.buy import BuySpec
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.models.run import CHOOSE, RunSpecInput

Project = Literal["corral-base", "corral-cluster"]
_INPUT_MODELS: Mapping[str, type[BaseModel]] = {"corral-base": BaseSpecInput, "corral-cluster": ClusterSpecInput}


def json_schema(project: Project, catalog: Catalog | None = None) -> Mapping[str, Any]:
    """Return the schema of this project's `Pulumi.<name>.yaml`. It does not cover the rules (zones, overlaps).

    Instance types come from `catalog` (default: the shipped one).
    """
    spec = _for_editors(_INPUT_MODELS[project].model_json_schema(by_alias=True))
    definitions = spec.pop("$defs")
    _name_choices(definitions, catalog or shipped_catalog())
    settings = {
        "aws:region": {"description": "The region to work in.", "enum": list(regions())},
        f"{project}:spec": spec,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{project}: Pulumi.<name>.yaml",
        "type": "object",
        "properties": {
            "config": {
                "description": "Pulumi's configuration of this stack; corral reads the region and the spec.",
                "type": "object",
                "properties": settings,
                "required": list(settings),
            }
        },
        "required": ["config"],
        "$defs": definitions,
    }


def run_schema() -> Mapping[str, Any]:
    """Return the schema of a run file. It does not cover the rules (divisibility, queues, file systems)."""
    schema = _for_editors(RunSpecInput.model_json_schema(by_alias=True))
    fields = schema["properties"]
    fields["model"]["enum"] = list(models())
    layout = fields["layout"]
    fields["layout"] = {"description": layout["description"], "anyOf": [{"const": CHOOSE}, {"$ref": layout["$ref"]}]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "corral: a run file",
        **schema,
        "anyOf": [{"required": ["model"]}, {"required": ["shape"]}],
    }


def buy_schema() -> Mapping[str, Any]:
    """Return the schema of a purchase file. It does not cover the rules (queues, required figures)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "corral: a purchase file",
        **_for_editors(BuySpec.model_json_schema(by_alias=True)),
    }


def _name_choices(definitions: Mapping[str, Any], catalog: Catalog) -> None:
    """Add the catalog's names to the fields that take one of them."""
    types = tuple(catalog.instance_types)
    profiles = [name for name, profile in image_profiles().items() if not profile.box]
    choices: Sequence[tuple[str, str, Sequence[str]]] = (
        ("HeadSpec", "instance_type", types),
        ("LoginSpec", "instance_type", types),
        ("QueueSpec", "instance_type", types),
        ("ImageSpec", "profile", profiles),
        ("LustreSpec", "deployment", sorted({row.deployment_type for row in lustre_choices()})),
    )
    for record, field, names in choices:
        if record in definitions:
            definitions[record]["properties"][field]["enum"] = list(names)


def _for_editors(schema: Any) -> Any:
    """Return the schema without titles, which editors show instead of descriptions, and without null."""
    if isinstance(schema, list):
        return [_for_editors(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "title" and (key, value) != ("default", None)}
    choices = [choice for choice in kept.pop("anyOf", ()) if choice != {"type": "null"}]
    return {key: _for_editors(value) for key, value in {**kept, **(choices[0] if choices else {})}.items()}
