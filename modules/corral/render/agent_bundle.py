"""The agent as machines fetch it: a tar.gz of corral.model and corral.agent with the same bytes on every machine.

Its hash is in the user data of every machine, so other bytes would mean new launch templates. The archive is stored
uncompressed because zlib and zlib-ng compress to different bytes, and Python may be linked with either.
`boto3_bundle` packs the agent's dependencies.
"""

import io
import struct
import tarfile
from collections.abc import Iterable, Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from zlib import crc32

PACKAGES = ("agent", "model")
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # gzip, deflate, no name, no time, unknown system (RFC 1952)
_BLOCK = 65_535  # the most that a stored block can hold (RFC 1951, 3.2.4)


def agent_bundle() -> bytes:
    """A gzipped tar of the packages `corral.model` and `corral.agent`, for a Python path."""
    return packed(_sources())


def packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A gzipped tar of these files, by name."""
    return stored_gzip(_tar(files))


def stored_gzip(data: bytes) -> bytes:
    """The data as a gzip file without compression."""
    starts = range(0, len(data), _BLOCK) or range(1)
    blocks = [_block(data[start : start + _BLOCK], last=start == starts[-1]) for start in starts]
    return b"".join([_HEADER, *blocks, struct.pack("<LL", crc32(data), len(data) & 0xFFFFFFFF)])


def _block(part: bytes, *, last: bool) -> bytes:
    return struct.pack("<BHH", last, len(part), len(part) ^ 0xFFFF) + part


def _tar(files: Iterable[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files):
            member = tarfile.TarInfo(name)  # its defaults: no time, no owner, mode 0644
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        end = archive.offset + 2 * tarfile.BLOCKSIZE  # two empty blocks; tarfile fills a tape's record of 10 KiB
    return stream.getvalue()[:end]


def _sources() -> Iterator[tuple[str, bytes]]:
    package = files("corral")
    yield "corral/__init__.py", package.joinpath("__init__.py").read_bytes()
    for name in PACKAGES:
        yield from _below(package.joinpath(name), f"corral/{name}")


def _below(directory: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in directory.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _below(entry, f"{name}/{entry.name}")
        elif entry.name.endswith((".py", ".csv")):
            yield f"{name}/{entry.name}", entry.read_bytes()
