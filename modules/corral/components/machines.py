"""What both kinds of machine share: metadata options, and the tags of what launch templates launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# A head's or node's own agent needs its tags; one hop keeps containers from reaching the service through the machine.
METADATA: Final[Mapping[str, str | int]] = {
    "http_endpoint": "enabled",
    "http_tokens": "required",
    "http_put_response_hop_limit": 1,
    "instance_metadata_tags": "enabled",
}


def launched_tags(tags: Mapping[str, str], cluster: str, queue: str, offer: str) -> Mapping[str, str]:
    """The tags of what a launch template launches: default tags of the provider do not reach it."""
    return {**tags, "Name": f"corral-{cluster}-{queue}", "corral:queue": queue, "corral:offer": offer}
