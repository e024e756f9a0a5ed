"""AWS's Lustre clients and the kernels that they support: lustre_clients.csv as records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from corral.catalog.loader.data_files import read_csv

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreClient:
    """A client for kernels `first` to `last` of a system; a `last` without a build number means all of its builds.

    `servers`: the Lustre versions that it can mount.
    """

    system: str
    first: str
    last: str
    client: str
    servers: frozenset[str]

    def is_for(self, kernel: str) -> bool:
        """Return whether it supports this kernel, as printed by `uname -r`."""
        found, last = _numbers(kernel), _numbers(self.last)
        return _numbers(self.first) <= found and found[: len(last)] <= last

    @property
    def kernels(self) -> str:
        """Its range of kernels, as text."""
        return f"{self.first} to {self.last}"


@cache
def lustre_clients(system: str) -> tuple[LustreClient, ...]:
    """Return the clients for a system such as `ubuntu 24.04`, oldest kernel first; empty if AWS has none."""
    found = (
        LustreClient(**{**row, "servers": frozenset(row["servers"].split())})  # type: ignore[arg-type]  # by name
        for row in read_csv("lustre_clients.csv")
        if row["system"] == system
    )
    return tuple(sorted(found, key=lambda one: _numbers(one.first)))


def _numbers(kernel: str) -> tuple[int, ...]:
    return tuple(int(one) for one in _NUMBERS.findall(kernel))
