"""The metadata options of all instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# The agent reads the instance's tags; one hop keeps containers from reaching the service.
METADATA: Final[Mapping[str, str | int]] = {
    "http_endpoint": "enabled",
    "http_tokens": "required",
    "http_put_response_hop_limit": 1,
    "instance_metadata_tags": "enabled",
}
