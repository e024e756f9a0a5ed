"""Where corral keeps what it has built for this user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cache_directory(environ: Mapping[str, str]) -> Path:
    """corral's cache directory."""
    if cache := environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "corral"
    return Path(environ.get("HOME") or "~").expanduser() / ".cache" / "corral"
