"""The arguments of `aws.Provider` that the stand-in supports; all others are refused by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corral.box.provider.provider_errors import ProviderError

# Arguments that have no effect here, such as those that disable the official provider's checks of the AWS account.
IGNORED = frozenset(
    {
        "version",
        "pluginDownloadURL",
        "accessKey",
        "secretKey",
        "s3UsePathStyle",
        "skipCredentialsValidation",
        "skipMetadataApiCheck",
        "skipRegionValidation",
        "skipRequestingAccountId",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """The configuration of a provider: its region, and the tags of all resources."""

    region: str
    default_tags: Mapping[str, str] = field(default_factory=dict)


class UnknownArgument(ProviderError):
    """An argument that the stand-in does not support."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the box's stand-in for the aws provider does not support the argument '{name}'")
        self.name = name


def parse_settings(arguments: Mapping[str, Any]) -> ProviderSettings:
    """The settings. Raises UnknownArgument."""
    given = {name: _decoded(value) for name, value in arguments.items() if value is not None}
    for name in sorted(given.keys() - IGNORED - {"region", "defaultTags"}):
        raise UnknownArgument(name)
    tags = (given.get("defaultTags") or {}).get("tags") or {}
    return ProviderSettings(region=given.get("region") or _region(), default_tags=tags)


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _decoded(value: Any) -> Any:
    """The value of an argument: the engine passes objects and numbers as JSON text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
