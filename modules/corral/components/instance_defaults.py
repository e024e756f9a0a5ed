"""The metadata options of all instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# The agent reads the instance's tags. One hop keeps containers from the service, and nothing uses its IPv6 address.
METADATA: Final[Mapping[str, str | int]] = {
    "http_endpoint": "enabled",
    "http_tokens": "required",
    "http_put_response_hop_limit": 1,
    "http_protocol_ipv6": "disabled",
    "instance_metadata_tags": "enabled",
}
