"""The archives that a cluster's machines compile: from the user's cache, or fetched into it, each with its hash."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

import urllib3

from corral.model.cache import cache_directory
from corral.model.containers import ContainersPlan, SourcePlan

_RETRIES = urllib3.Retry(total=3, backoff_factor=1.0, raise_on_status=True, status_forcelist=(429, 500, 502, 503, 504))
_TIMEOUT = urllib3.Timeout(connect=10, read=30)  # seconds
_LARGEST = 16 << 20  # bytes, packed or unpacked; the archives have a hundredth


class SourceError(Exception):
    """An archive cannot be had, or is not the one that the catalogue names."""


def source_archives(
    plan: ContainersPlan, cache: Path | None = None, fetch: Callable[[str], bytes] | None = None
) -> Mapping[str, bytes]:
    """Return each archive by its path below the cluster's prefix; none for a cluster without containers.

    `cache`: the directory of archives, by default the user's. `fetch`: returns what an address serves, or raises
    SourceError. Raises SourceError.
    """
    directory = cache or cache_directory(os.environ) / "sources"
    return {source.path: _archive(source, directory, fetch or _download) for source in plan.sources}


def _archive(source: SourcePlan, directory: Path, fetch: Callable[[str], bytes]) -> bytes:
    file = directory / PurePosixPath(source.path).name
    if file.exists():
        held = file.read_bytes()
        if reason := _why_other(source, held):
            raise SourceError(f"{file} {reason} - delete it, and corral fetches {source.url}")
        return held
    try:
        found = fetch(source.url)
    except SourceError as error:
        raise SourceError(f"{error} - fetch {source.url} elsewhere, and put it at {file}") from None
    if reason := _why_other(source, found):
        raise SourceError(f"{source.url} {reason} - do not use it, and report it to corral's developers")
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as draft:
        draft.write(found)
    Path(draft.name).replace(file)
    return found


def _why_other(source: SourcePlan, content: bytes) -> str:
    """Why this is not the archive of the catalogue, as the end of a sentence; empty if it is."""
    try:
        found = hashlib.sha256(_unpacked(content)).hexdigest()
    except (OSError, EOFError, ValueError) as error:
        return f"is not a complete tar.gz ({error})"
    return "" if found == source.sha256 else f"unpacks to SHA-256 {found}, expected {source.sha256}"


def _unpacked(content: bytes) -> bytes:
    with gzip.open(io.BytesIO(content)) as stream:
        text = stream.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"more than {_LARGEST:,} bytes")
    return text


def _download(url: str) -> bytes:
    pool = urllib3.PoolManager(retries=_RETRIES, timeout=_TIMEOUT)
    try:
        answer = pool.request("GET", url, preload_content=False)
        content: bytes = answer.read(_LARGEST + 1)
    except urllib3.exceptions.HTTPError as error:
        raise SourceError(f"cannot fetch the source of what runs containers: {error}") from error
    if answer.status != 200:
        raise SourceError(f"cannot fetch the source of what runs containers: HTTP {answer.status}")
    return content
