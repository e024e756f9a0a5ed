"""What the tables of IAM objects share.

No resource type is described here.
"""

from __future__ import annotations

import json
from typing import Any

from corral.box.provider.resource import State
from corral.box.provider.translate import tag_list

NO_ENTITY = "NoSuchEntity"


def tagged(inputs: State) -> dict[str, Any]:
    """The argument that tags an object at its creation."""
    return {"Tags": tag_list(inputs["tagsAll"])} if inputs.get("tagsAll") else {}


def document_text(document: Any) -> str:
    """A policy as text: boto3 parses some of them."""
    return document if isinstance(document, str) else json.dumps(document)
