"""Which `pulumi` runs our programs, and where its Python language host is. Nothing is downloaded or built here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corral.engine.errors import EngineError

OLDEST = (3, 200, 0)  # the first that knows every option used in `operations`
LANGUAGE_HOST = "pulumi-language-python"
ANSWER_S = 60  # `pulumi version` answers in 0.3 s; a cold disk takes a few seconds
HOW_TO_GET = (
    "`curl -fsSL https://get.pulumi.com | sh` installs the official one",
    "`make pulumi` in corral's source directory builds one into ~/.cache/corral",
)

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """A Pulumi CLI that is new enough, and the directories that PATH needs in front so that it finds its parts."""

    path: Path
    version: Version
    search: tuple[Path, ...]


def find_pulumi(environ: Mapping[str, str] = os.environ) -> Binary:
    """The Pulumi CLI to use: $CORRAL_PULUMI, else the one on PATH, else the newest in corral's cache.

    Raises EngineError where there is none, or only one that is too old.
    """
    path, version = _chosen(environ) or _cached(environ) or (None, OLDEST)
    if path is None:
        raise EngineError("no Pulumi CLI was found: neither $CORRAL_PULUMI, nor on PATH, nor cached", HOW_TO_GET)
    if version < OLDEST:
        raise EngineError(f"{path} is Pulumi {_text(version)}, corral needs {_text(OLDEST)} or newer", HOW_TO_GET)
    return Binary(path=path, version=version, search=(*_language_host(path, environ), path.parent))


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Where corral keeps what can be made again."""
    if cache := environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "corral"
    return Path(environ.get("HOME") or "~").expanduser() / ".cache" / "corral"


def _chosen(environ: Mapping[str, str]) -> tuple[Path, Version] | None:
    if named := environ.get("CORRAL_PULUMI"):
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise EngineError(f"CORRAL_PULUMI is {named}, which is no program that can be run", HOW_TO_GET)
        return Path(named), _ask_version(Path(named), environ)
    if found := shutil.which("pulumi", path=environ.get("PATH", os.defpath)):
        path = Path(found)
        return path, _version_in_name(path) or _ask_version(path, environ)
    return None


def _cached(environ: Mapping[str, str]) -> tuple[Path, Version] | None:
    found = [
        (version, path)
        for path in cache_directory(environ).glob("pulumi-*/pulumi")
        if os.access(path, os.X_OK) and (version := _version_in_name(path))
    ]
    return max(found)[::-1] if found else None


def _version_in_name(path: Path) -> Version | None:
    """The version that corral's cache names a directory by; it saves a third of a second."""
    named = re.fullmatch(r"pulumi-(\d+)\.(\d+)\.(\d+)", path.parent.name)
    return _version(named) if named else None


def _ask_version(path: Path, environ: Mapping[str, str]) -> Version:
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
    if not (told := re.match(r"v?(\d+)\.(\d+)\.(\d+)", answer.stdout.strip())):
        raise EngineError(f"{path} does not tell its version: is it the Pulumi CLI?", HOW_TO_GET)
    return _version(told)


def _version(match: re.Match[str]) -> Version:
    return int(match[1]), int(match[2]), int(match[3])


def _text(version: Version) -> str:
    return ".".join(map(str, version))


def _language_host(pulumi: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where to look for the language host first; nothing where this Pulumi has one of its own.

    Ours is put beside a cached Pulumi, where the engine takes it as a part; found on PATH it would warn.
    """
    cache = cache_directory(environ)
    own = pulumi.resolve().parent
    if not own.is_relative_to(cache.resolve()):
        if (own / LANGUAGE_HOST).exists() or shutil.which(LANGUAGE_HOST, path=environ.get("PATH", os.defpath)):
            return ()
        own = cache / "language-host"
    return (_install(own).parent,)


def _install(directory: Path) -> Path:
    from corral.engine import language_host

    try:
        return language_host.install(directory)
    except OSError as error:
        sentence = f"Pulumi's language host for Python cannot be written into {directory}: {error.strerror}"
        raise EngineError(sentence, ("set XDG_CACHE_HOME to a directory that can be written",)) from None
