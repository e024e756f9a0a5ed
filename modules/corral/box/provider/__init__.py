"""The `aws` provider of a box, for unmodified `pulumi_aws` programs: the stand-in, which is here, or AWS's own.

`service` serves the engine, `lifecycle` implements what all resource types share, `tables` describes each type. An
argument that no table names is refused, never ignored. `install` puts the plugin where the engine looks for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from corral.box.switches import Provider
from corral.model.cache import cache_directory

PLUGIN = "pulumi-resource-aws"
PYTHON = sys.executable  # runs the stand-in
STAND_IN = """#!/bin/sh
# The stand-in `aws` provider of the box.
exec '{python}' -P -m corral.box.provider "$@"
"""
# S3 Control is called at ACCOUNT.HOST, which does not resolve where HOST is an address. Go's HTTP client never sends
# requests to 127.0.0.1 through a proxy, so the box is the proxy of these alone. See decision 106.
OFFICIAL = """#!/bin/sh
# AWS's own provider, called through the box.
HTTP_PROXY=$AWS_ENDPOINT_URL http_proxy=$AWS_ENDPOINT_URL exec '{plugin}' "$@"
"""


class PluginMissing(Exception):
    """The official provider is not installed; the text is one sentence for the user."""


def sdk_version() -> str:
    """The version of the SDK that programs use; the engine requires a provider at least as new."""
    return version("pulumi-aws")


def install(pulumi_home: Path, provider: Provider = Provider.STAND_IN) -> Path:
    """Write the plugin's executable into the plugin cache of this Pulumi home. Returns its path.

    Raises PluginMissing.
    """
    if provider is Provider.OFFICIAL:
        text = OFFICIAL.format(plugin=find_official(os.environ))
    else:
        text = STAND_IN.format(python=PYTHON)
    plugin = pulumi_home / "plugins" / f"resource-aws-v{sdk_version()}" / PLUGIN
    plugin.parent.mkdir(parents=True, exist_ok=True)
    plugin.write_text(text, encoding="utf-8")
    plugin.chmod(0o755)
    return plugin


def find_official(environ: Mapping[str, str]) -> Path:
    """AWS's own provider: the one that Pulumi installed for this user, else the newest in corral's cache.

    Raises PluginMissing.
    """
    pulumi_home = Path(environ.get("PULUMI_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".pulumi")
    installed = pulumi_home / "plugins" / f"resource-aws-v{sdk_version()}" / PLUGIN
    built = cache_directory(environ).glob(f"official-provider-*/{PLUGIN}")
    newest_first = sorted(built, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in (installed, *newest_first):
        if os.access(path, os.X_OK) and not _is_script(path):
            return path
    raise PluginMissing(
        f"AWS's own provider is not installed - run `pulumi plugin install resource aws {sdk_version()}`, or"
        " `make official-provider` in corral's source directory"
    )


def _is_script(path: Path) -> bool:
    """True for what `install` writes: a shell with the variables of a box has a PULUMI_HOME with such a plugin."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"
