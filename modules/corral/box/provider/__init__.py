"""The stand-in for Pulumi's `aws` provider: unmodified `pulumi_aws` programs run against a box through it.

`service` serves the engine, `lifecycle` implements what all resource types share, `tables` describes each type. An
argument that no table names is refused, never ignored. `install` puts the plugin where the engine looks for it.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

PLUGIN = """#!/bin/sh
# The stand-in `aws` provider of the box.
exec '{python}' -m corral.box.provider "$@"
"""


def sdk_version() -> str:
    """The version of the SDK that programs use; the engine requires a provider at least as new."""
    return version("pulumi-aws")


def install(pulumi_home: Path) -> Path:
    """Write the plugin's executable into the plugin cache of this Pulumi home. Returns its path."""
    plugin = pulumi_home / "plugins" / f"resource-aws-v{sdk_version()}" / "pulumi-resource-aws"
    plugin.parent.mkdir(parents=True, exist_ok=True)
    plugin.write_text(PLUGIN.format(python=sys.executable), encoding="utf-8")
    plugin.chmod(0o755)
    return plugin
