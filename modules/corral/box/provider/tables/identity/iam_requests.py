"""Arguments and conversions that the tables of IAM objects share."""

from __future__ import annotations

import json
from typing import Any

from corral.box.provider.property_conversion import tag_list
from corral.box.provider.resource import State

NO_ENTITY = "NoSuchEntity"


def creation_tags(inputs: State) -> dict[str, Any]:
    """The argument that tags an object at its creation."""
    return {"Tags": tag_list(inputs["tagsAll"])} if inputs.get("tagsAll") else {}


def document_text(document: Any) -> str:
    """A policy document as text; boto3 parses some of them."""
    return document if isinstance(document, str) else json.dumps(document)
