"""The arguments of `aws.Provider` that the stand-in understands; the others are refused by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from corral.box.provider.lifecycle import Settings
from corral.box.provider.problems import ProviderError

# What only tells the official provider not to look for the real AWS changes nothing here.
HARMLESS = frozenset(
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


class UnknownSetting(ProviderError):
    """An argument that the stand-in does not know."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the box's stand-in for the aws provider does not know the argument '{name}'")
        self.name = name


def configured(arguments: Mapping[str, Any]) -> Settings:
    """The settings. Raises UnknownSetting."""
    given = {name: _decoded(value) for name, value in arguments.items() if value is not None}
    for name in sorted(given.keys() - HARMLESS - {"region", "defaultTags"}):
        raise UnknownSetting(name)
    tags = (given.get("defaultTags") or {}).get("tags") or {}
    return Settings(region=given.get("region") or _region(), default_tags=tags)


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _decoded(value: Any) -> Any:
    """Objects and numbers reach a provider's configuration as JSON text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
