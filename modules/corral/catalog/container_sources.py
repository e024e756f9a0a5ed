"""Sources of what runs containers: versions, addresses and hashes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from corral.catalog.loader.data_files import read_toml
from corral.model.containers import ContainerRuntime, SourcePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSource:
    """A source, and where its version and hash come from."""

    plan: SourcePlan
    source: str


@cache
def container_sources() -> Mapping[ContainerRuntime, tuple[ContainerSource, ...]]:
    """Return the sources of each runtime, in the order in which they are compiled."""
    rows = read_toml("container_sources.toml")
    return MappingProxyType(
        {
            ContainerRuntime(runtime): tuple(
                ContainerSource(
                    plan=SourcePlan(name=name, version=row["version"], url=row["url"], sha256=row["sha256"]),
                    source=row["source"],
                )
                for name, row in programs.items()
            )
            for runtime, programs in rows.items()
        }
    )
