"""The keys of slurm.conf as a Slurm's own library has them: the tables of src/common/read_config.c, as compiled.

A table is an array of `s_p_options_t`: first a pointer to the key's name, then its type, then the function that reads
its value, if it has one of its own. The pointers of a shared library are in its relocations, so these are read.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from corral.catalog.slurm.conf_keys import ConfSection
from corral.catalog.slurm.conf_values import Type

# For each table, a key that occurs only there.
FIRST_KEYS = {
    ConfSection.CONF: "AccountingStorageBackupHost",
    ConfSection.NODE: "CoreSpecCount",
    ConfSection.PARTITION: "AllocNodes",
}
# Neighbours in the table of nodes: how far they are apart is the length of a row, which differs between releases.
NEIGHBOURS = ("BcastAddr", "Boards")
ARRAY = 7  # S_P_ARRAY in src/common/parse_config.h: a line of its own, such as NodeName=
TYPES = {1: Type.TEXT, 3: Type.UINT16, 4: Type.UINT32, 5: Type.UINT64, ARRAY: Type.LINES, 8: Type.BOOLEAN}
_KEY = re.compile(rb"[A-Z][A-Za-z0-9]*")
_LOAD, _RELA, _RELATIVE = 1, 4, 8  # elf.h: PT_LOAD, SHT_RELA, R_X86_64_RELATIVE


def keys_taken(library: Path) -> Mapping[ConfSection, Mapping[str, Type]]:
    """The keys that this libslurmfull.so reads in each section, with their types, without defunct ones."""
    image = _Image(library.read_bytes())
    names = {at: name for at, target in image.pointers.items() if (name := image.name(target))}
    starts = {name: at for at, name in names.items()}
    length = starts[NEIGHBOURS[1]] - starts[NEIGHBOURS[0]]
    return {section: dict(_taken(image, names, starts[key], length)) for section, key in FIRST_KEYS.items()}


def _taken(image: _Image, names: Mapping[int, str], at: int, length: int) -> Iterator[tuple[str, Type]]:
    while at - length in names:
        at -= length
    while at in names:
        if at + 16 not in image.pointers or image.number(at + 8) == ARRAY:
            yield names[at], TYPES[image.number(at + 8)]
        at += length


class _Image:
    """A 64-bit shared library of little-endian machines."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def pointers(self) -> Mapping[int, int]:
        """What each pointer of the library's own data points to, by its address."""
        found: dict[int, int] = {}
        for kind, offset, size in self._sections():
            if kind == _RELA:
                rows = struct.iter_unpack("<QQq", self.data[offset : offset + size])
                found.update({at: target for at, info, target in rows if info == _RELATIVE})
        return found

    def name(self, address: int) -> str | None:
        """The key at this address; None for what does not look like one."""
        offset = self._offset(address)
        text = None if offset is None else self.data[offset : self.data.find(b"\0", offset)]
        return text.decode() if text and _KEY.fullmatch(text) else None

    def number(self, address: int) -> int:
        """The 32-bit number at this address."""
        offset = self._offset(address)
        assert offset is not None
        return int(struct.unpack_from("<I", self.data, offset)[0])

    def _sections(self) -> Iterator[tuple[int, int, int]]:
        (start,) = struct.unpack_from("<Q", self.data, 0x28)
        length, count = struct.unpack_from("<HH", self.data, 0x3A)
        for row in range(start, start + length * count, length):
            _, kind, _, _, offset, size = struct.unpack_from("<IIQQQQ", self.data, row)
            yield kind, offset, size

    def _offset(self, address: int) -> int | None:
        for at, offset, size in self._loaded:
            if at <= address < at + size:
                return offset + address - at
        return None

    @cached_property
    def _loaded(self) -> Sequence[tuple[int, int, int]]:
        """Address, offset in the file and size of what is loaded."""
        (start,) = struct.unpack_from("<Q", self.data, 0x20)
        length, count = struct.unpack_from("<HH", self.data, 0x36)
        rows = [struct.unpack_from("<IIQQQQ", self.data, row) for row in range(start, start + length * count, length)]
        return [(at, offset, size) for kind, _, offset, at, _, size in rows if kind == _LOAD]
