"""JSON Schema of the files that users write, for their editors: every field with its description and its bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from corral.catalog.images import image_profiles
from corral.catalog.lustre import lustre_choices
from corral.catalog.models import models
from corral.catalog.project import Catalogue, shipped_catalogue
from corral.catalog.regions import regions
from corral.spec.base import BaseWishes
from corral.spec.buy import BuySpec
from corral.spec.cluster import ClusterWishes
from corral.spec.run import CHOOSE, RunWishes

Project = Literal["corral-base", "corral-cluster"]
_WISHES: Mapping[str, type[BaseModel]] = {"corral-base": BaseWishes, "corral-cluster": ClusterWishes}


def json_schema(project: Project, catalogue: Catalogue | None = None) -> Mapping[str, Any]:
    """The schema of this project's `Pulumi.<name>.yaml`. What only the rules know (zones, overlaps) is not in it.

    The instance types are those of the catalogue, else the shipped ones.
    """
    spec = _for_editors(_WISHES[project].model_json_schema(by_alias=True))
    definitions = spec.pop("$defs")
    _name_choices(definitions, catalogue or shipped_catalogue())
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
    """The schema of a run file. What only the rules know (what divides what, queues, file systems) is not in it."""
    schema = _for_editors(RunWishes.model_json_schema(by_alias=True))
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
    """The schema of a file of hardware to buy. Queues, and which figures are needed, only the rules know."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "corral: a file of hardware to buy",
        **_for_editors(BuySpec.model_json_schema(by_alias=True)),
    }


def _name_choices(definitions: Mapping[str, Any], catalogue: Catalogue) -> None:
    """Writes into the definitions which names the catalogue has, where a field takes one of them."""
    types = tuple(catalogue.instance_types)
    profiles = [name for name, profile in image_profiles().items() if not profile.box]
    choices: Sequence[tuple[str, str, Sequence[str]]] = (
        ("HeadSpec", "instance_type", types),
        ("QueueSpec", "instance_type", types),
        ("ImageSpec", "profile", profiles),
        ("LustreSpec", "deployment", sorted({row.deployment_type for row in lustre_choices()})),
    )
    for record, field, names in choices:
        if record in definitions:
            definitions[record]["properties"][field]["enum"] = list(names)


def _for_editors(schema: Any) -> Any:
    """The schema without titles, which editors show instead of descriptions, and without null, which we refuse."""
    if isinstance(schema, list):
        return [_for_editors(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "title" and (key, value) != ("default", None)}
    choices = [choice for choice in kept.pop("anyOf", ()) if choice != {"type": "null"}]
    return {key: _for_editors(value) for key, value in {**kept, **(choices[0] if choices else {})}.items()}
