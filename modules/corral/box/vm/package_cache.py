"""The cache of packages: files of the mirrors that never change.

A file that is missing is downloaded once, however many machines request it, and each of them follows the download.
`package_proxy` serves the files that are not cached.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import NewConnectionError, ProxyError, TimeoutError

from corral.box.vm.debian_mirrors import MirrorFile

BLOCK = 65536  # bytes
_PART = ".part"  # the suffix of a download
_PART_KEPT_S = 24 * 3600  # longer than any download: the process that wrote it has ended
LIMIT = 2 << 30  # bytes; the packages of a head and its nodes take 150 MB

Fetch = Callable[[str, MirrorFile, Mapping[str, str]], BaseHTTPResponse]


class MirrorError(Exception):
    """A file could not be fetched. `status` is HTTP's, for the machine."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status

    @classmethod
    def of(cls, url: str, error: Exception) -> MirrorError:
        """The failure of a transfer."""
        match error:
            case NewConnectionError() | ProxyError():
                return cls(502, f"the host cannot connect to its mirror for {url}")
            case TimeoutError():
                return cls(504, f"the host's mirror does not answer in time for {url}")
        return cls(502, f"the host could not fetch {url} from its mirror: {type(error).__name__}")


class _NotCachedError(Exception):
    """The mirror's answer is not a whole file of known length, or the disk does not take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFile:
    """A file of the cache, perhaps still on its way: then `blocks` may raise MirrorError."""

    length: int
    blocks: Generator[bytes]


@dataclass(slots=True, kw_only=True)
class _Download:
    """A download; `changed` guards its fields. Until the mirror has answered, `path` is None."""

    path: Path | None = None
    length: int = 0
    received: int = 0
    failure: Exception | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def update(self, **values: Path | int | Exception) -> None:
        """Set fields, and wake those who follow."""
        with self.changed:
            for name, value in values.items():
                setattr(self, name, value)
            self.changed.notify_all()

    def follow(self) -> CachedFile:
        """The file, once the mirror has answered. Raises MirrorError, _NotCachedError."""
        with self.changed:
            self.changed.wait_for(lambda: self.path or self.failure)
            if self.failure:
                raise self.failure
            return CachedFile(length=self.length, blocks=self._blocks())

    def _blocks(self) -> Generator[bytes]:
        sent = 0
        with self._open() as file:
            while sent < self.length:
                block = file.read(min(BLOCK, self._wait_for_more(sent) - sent))
                sent += len(block)
                yield block

    def _open(self) -> BinaryIO:
        with self.changed:  # at the end, the path changes
            if self.failure:
                raise self.failure
            assert self.path
            return self.path.open("rb", buffering=0)

    def _wait_for_more(self, sent: int) -> int:
        """The bytes received, once they are more than those sent."""
        with self.changed:
            self.changed.wait_for(lambda: self.received > sent or self.failure)
            if self.failure:
                raise self.failure
            return self.received


class PackageCache:
    """The cache in a directory, which several processes may share. `fetch` sends a request to a mirror."""

    def __init__(self, directory: Path, fetch: Fetch) -> None:
        self._directory = directory
        self._fetch = fetch
        self._running: dict[str, _Download] = {}
        self._lock = threading.Lock()

    def get(self, file: MirrorFile, name: str) -> CachedFile | None:
        """The file: None if it cannot be cached. Raises MirrorError."""
        try:
            return self._download(file, name).follow()
        except _NotCachedError:
            return None

    def _download(self, file: MirrorFile, name: str) -> _Download:
        """The file's download: one that has ended, that runs or that starts now."""
        path = self._directory / name
        with self._lock:
            if path.is_file():
                os.utime(path)  # it was used last
                size = path.stat().st_size
                return _Download(path=path, length=size, received=size)
            if name not in self._running:
                self._running[name] = _Download()
                threading.Thread(target=self._run, args=(file, name, self._running[name]), daemon=True).start()
            return self._running[name]

    def _run(self, file: MirrorFile, name: str, download: _Download) -> None:
        with ExitStack() as at_end:  # when those who follow have the failure
            at_end.callback(self._forget, name)
            try:
                response = at_end.enter_context(closing(self._fetch("GET", file, {})))
                length = self._length(response)
                part = self._reserve(length, at_end)
                download.update(path=part, length=length)
                with part.open("r+b", buffering=0) as target:
                    for block in response.stream(BLOCK):
                        target.write(block)
                        download.update(received=download.received + len(block))
                with download.changed:
                    download.path = part.rename(self._directory / name)
            except _NotCachedError as error:
                download.update(failure=error)
            except Exception as error:  # whatever it is, machines wait
                download.update(failure=MirrorError.of(file.url, error))

    def _forget(self, name: str) -> None:
        with self._lock:
            del self._running[name]

    def _length(self, response: BaseHTTPResponse) -> int:
        """The length of the file in this answer, with which urllib3 compares the body. Raises _NotCachedError."""
        length = int(response.headers.get("Content-Length", 0))
        if response.status != 200 or not length or "Content-Encoding" in response.headers:
            raise _NotCachedError
        return length

    def _reserve(self, length: int, at_end: ExitStack) -> Path:
        """A temporary file for which the disk has space. Raises _NotCachedError."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._delete_old_parts()
            self._make_space(length)
            with NamedTemporaryFile(dir=self._directory, suffix=_PART, delete=False) as part:
                at_end.callback(Path(part.name).unlink, missing_ok=True)
                os.posix_fallocate(part.fileno(), 0, length)
        except OSError as error:
            raise _NotCachedError from error
        return Path(part.name)

    def _make_space(self, length: int) -> None:
        """Delete the files that were used longest ago until a file of this length fits below the limit."""
        files = [file for file in self._directory.iterdir() if file.is_file() and file.suffix != _PART]
        found = {file: file.stat() for file in files}
        size = sum(one.st_size for one in found.values()) + length
        for file in sorted(files, key=lambda file: found[file].st_mtime):
            if size <= LIMIT:
                return
            file.unlink(missing_ok=True)
            size -= found[file].st_size

    def _delete_old_parts(self) -> None:
        """Delete what processes left that were killed."""
        for part in self._directory.glob(f"*{_PART}"):
            if part.stat().st_mtime < time.time() - _PART_KEPT_S:
                part.unlink(missing_ok=True)
