"""Which Debian mirrors the host's apt uses, and which of their files a machine may have.

`host_mirrors` runs apt and reads the environment. The rest is pure; `package_proxy` does the transfers.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

ARCHIVE, SECURITY_ARCHIVE = "http://deb.debian.org/debian", "http://deb.debian.org/debian-security"
# A word holds the characters of Debian's file names, with the escapes that apt sends. No other escape is let through,
# and no word starts with a dot, so a path has one spelling and stays in its mirror.
_URL = re.compile(
    r"(?P<site>http://[a-z0-9.-]+(?::[0-9]+)?)(?P<path>(?:/(?!\.)(?:[a-z0-9._+~:@=,^-]|%2b|%7e|%3a)+)+)",
    re.ASCII | re.IGNORECASE,
)
_TARGETS = ("apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages")
# Without package lists, apt knows no origin.
_URLS = ("apt-get", "indextargets", "--no-release-info", "--format", "||$(REPO_URI)", "Created-By: Packages")
_PROXIES = ("apt-config", "dump", "--format", "%f|%v%n", "Acquire")


class ForbiddenRequestError(Exception):
    """A request for something else than a file of the mirrors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A mirror's base URL, without a slash at its end, and the proxy that leads to it, if any."""

    url: str
    proxy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianMirrors:
    """The mirrors of Debian and of its security updates."""

    archive: Mirror
    security: Mirror


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorFile:
    """A file of a mirror. `cached_as` is the name of its cached copy: None if the file changes."""

    url: str
    proxy: str | None
    cached_as: str | None


def requested_file(mirrors: DebianMirrors, method: str, target: str) -> MirrorFile:
    """The mirror's file that a machine requests with this method and URL. Raises ForbiddenRequestError.

    Machines write the well-known names of Debian's archives, or the host's own mirror, always with http.
    """
    found = _URL.fullmatch(target)
    if method not in ("GET", "HEAD") or not found:
        raise ForbiddenRequestError(f"only GET and HEAD of files below {ARCHIVE} and {SECURITY_ARCHIVE} are allowed")
    path = unquote(found["path"])
    requested = found["site"].lower().removesuffix(":80") + path
    for base, mirror in _bases(mirrors):
        if requested.startswith(f"{base}/"):
            url = mirror.url + quote(requested.removeprefix(base))
            return MirrorFile(url=url, proxy=mirror.proxy, cached_as=_cached_as(url))
    raise ForbiddenRequestError(f"{found['site']} is no mirror of this host: use {ARCHIVE} or {SECURITY_ARCHIVE}")


def host_mirrors() -> DebianMirrors:
    """The mirrors that the host's apt uses; Debian's own where the host is not Debian."""
    return choose_mirrors((*_lines(_TARGETS), *_lines(_URLS)), _lines(_PROXIES), os.environ)


def choose_mirrors(targets: Sequence[str], settings: Sequence[str], environment: Mapping[str, str]) -> DebianMirrors:
    """The mirrors to use. CORRAL_DEBIAN_MIRROR names that of the archive.

    `targets` are lines `origin|label|URL` of apt's sources, `settings` lines `name|value` of its configuration.
    """
    named = environment.get("CORRAL_DEBIAN_MIRROR") or _source(targets, "Debian", "/debian") or ARCHIVE
    security = _source(targets, "Debian-Security", "/debian-security") or SECURITY_ARCHIVE
    found = dict(line.split("|", 1) for line in settings)
    archive, updates = (Mirror(url=url.rstrip("/"), proxy=_proxy(url, found, environment)) for url in (named, security))
    return DebianMirrors(archive=archive, security=updates)


def _source(targets: Sequence[str], label: str, suffix: str) -> str | None:
    """The first source of this archive: where apt knows no origin, the URL decides."""
    rows = [line.split("|") for line in targets]
    usable = [row for row in rows if urlsplit(row[2]).scheme in ("http", "https")]
    fitting = [url for origin, named, url in usable if (origin, named) == ("Debian", label)]
    fitting += [url for origin, _, url in usable if not origin and url.rstrip("/").endswith(suffix)]
    return fitting[0] if fitting else None


def _proxy(url: str, settings: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """The proxy that apt uses for this URL. Source: apt-transport-http(1) and apt-transport-https(1), "Proxy"."""
    parts = urlsplit(url)
    schemes = ("https", "http") if parts.scheme == "https" else ("http",)
    names = [f"Acquire::{scheme}::Proxy{end}" for end in (f"::{parts.hostname}", "") for scheme in schemes]
    configured = next((settings[name] for name in names if settings.get(name)), None)
    excepted = environment.get("no_proxy", "").replace(" ", "").split(",")
    if configured == "DIRECT" or any(
        f".{parts.hostname}".endswith(f".{name.lstrip('.')}") for name in excepted if name
    ):
        return None
    return configured or environment.get(f"{parts.scheme}_proxy") or None


def _bases(mirrors: DebianMirrors) -> Sequence[tuple[str, Mirror]]:
    """The base URLs as a machine writes them, and their mirrors."""
    own = ((_as_http(mirror.url), mirror) for mirror in (mirrors.archive, mirrors.security))
    return (
        (ARCHIVE, mirrors.archive),
        (SECURITY_ARCHIVE, mirrors.security),
        ("http://security.debian.org/debian-security", mirrors.security),
        *own,
    )


def _as_http(url: str) -> str:
    parts = urlsplit(url)
    return f"http://{parts.netloc.lower().removesuffix(':80')}{parts.path}"


def _cached_as(url: str) -> str | None:
    """Packages never change under one name, nor do indexes by hash. Source: wiki DebianRepository/Format, "by-hash"."""
    lasting = url.endswith(".deb") or "/by-hash/" in url
    return hashlib.sha256(url.encode()).hexdigest() if lasting else None


def _lines(command: Sequence[str]) -> Sequence[str]:
    """The command's lines; none where it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return ()
