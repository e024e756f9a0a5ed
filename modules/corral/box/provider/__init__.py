"""The stand-in for Pulumi's `aws` provider: unmodified `pulumi_aws` programs run against a box through it.

`service` speaks with the engine, `lifecycle` does what all resource types share, `tables` says what is particular to
each. What a table does not name is refused, never ignored. `install` makes an engine find it.
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
    """The version of the SDK that programs use; an engine asks for a provider that is at least as new."""
    return version("pulumi-aws")


def install(pulumi_home: Path) -> Path:
    """The executable in the plugin cache of this Pulumi home, where the engine takes it without a warning."""
    plugin = pulumi_home / "plugins" / f"resource-aws-v{sdk_version()}" / "pulumi-resource-aws"
    plugin.parent.mkdir(parents=True, exist_ok=True)
    plugin.write_text(PLUGIN.format(python=sys.executable), encoding="utf-8")
    plugin.chmod(0o755)
    return plugin
