"""Finds the Pulumi CLI and its Python language host. Downloads and builds nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corral.engine.engine_errors import EngineError
from corral.model.cache import cache_directory

OLDEST = (3, 200, 0)  # the first with every option that `lifecycle` uses
LANGUAGE_HOST = "pulumi-language-python"
ANSWER_S = 60  # `pulumi version` answers in 0.3 s; a cold disk takes a few seconds
HOW_TO_GET = (
    "install it: curl -fsSL https://get.pulumi.com | sh",
    "or build it into ~/.cache/corral: `make pulumi` in corral's source directory",
)

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PulumiBinary:
    """A supported Pulumi CLI. `search`: the directories to prepend to PATH so that it finds its plugins."""

    path: Path
    version: Version
    search: tuple[Path, ...]


def find_pulumi(environ: Mapping[str, str] = os.environ) -> PulumiBinary:
    """The Pulumi CLI: $CORRAL_PULUMI, or the one on PATH, or the newest in corral's cache.

    Raises EngineError if there is none, or only one that is too old.
    """
    path, version = _chosen(environ) or _cached(environ) or (None, OLDEST)
    if path is None:
        raise EngineError("Pulumi CLI not found in $CORRAL_PULUMI, on PATH or in corral's cache", HOW_TO_GET)
    if version < OLDEST:
        raise EngineError(f"{path} is Pulumi {_text(version)}, corral needs {_text(OLDEST)} or newer", HOW_TO_GET)
    return PulumiBinary(path=path, version=version, search=(*_language_host(path, environ), path.parent))


def _chosen(environ: Mapping[str, str]) -> tuple[Path, Version] | None:
    if named := environ.get("CORRAL_PULUMI"):
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise EngineError(f"CORRAL_PULUMI is {named}, which is not an executable file", HOW_TO_GET)
        return Path(named), _read_version(Path(named), environ)
    if found := shutil.which("pulumi", path=environ.get("PATH", os.defpath)):
        path = Path(found)
        return path, _version_in_name(path) or _read_version(path, environ)
    return None


def _cached(environ: Mapping[str, str]) -> tuple[Path, Version] | None:
    found = [
        (version, path)
        for path in cache_directory(environ).glob("pulumi-*/pulumi")
        if os.access(path, os.X_OK) and (version := _version_in_name(path))
    ]
    return max(found)[::-1] if found else None


def _version_in_name(path: Path) -> Version | None:
    """The version in the name of a cache directory; running `pulumi version` takes a third of a second."""
    named = re.fullmatch(r"pulumi-(\d+)\.(\d+)\.(\d+)", path.parent.name)
    return _version(named) if named else None


def _read_version(path: Path, environ: Mapping[str, str]) -> Version:
    try:
        answer = subprocess.run(
            [path, "version"],
            env={**environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"{path} does not run: {error}", HOW_TO_GET) from None
    if not (printed := re.match(r"v?(\d+)\.(\d+)\.(\d+)", answer.stdout.strip())):
        raise EngineError(f"{path} does not print its version: is it the Pulumi CLI?", HOW_TO_GET)
    return _version(printed)


def _version(match: re.Match[str]) -> Version:
    return int(match[1]), int(match[2]), int(match[3])


def _text(version: Version) -> str:
    return ".".join(map(str, version))


def _language_host(pulumi: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The directory of corral's language host; empty if this Pulumi has its own.

    It is installed next to a cached Pulumi, where the engine treats it as bundled; found on PATH, it would warn.
    """
    cache = cache_directory(environ)
    own = pulumi.resolve().parent
    if not own.is_relative_to(cache.resolve()):
        if (own / LANGUAGE_HOST).exists() or shutil.which(LANGUAGE_HOST, path=environ.get("PATH", os.defpath)):
            return ()
        own = cache / "language-host"
    return (_install(own).parent,)


def _install(directory: Path) -> Path:
    from corral.engine.pulumi import language_host

    try:
        return language_host.install(directory)
    except OSError as error:
        sentence = f"Pulumi's language host for Python cannot be written into {directory}: {error.strerror}"
        raise EngineError(sentence, ("set XDG_CACHE_HOME to a writable directory",)) from None
