"""FSx for Lustre deployments: which sizes they come in, and how fast they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from corral.catalog.names import UnknownName
from corral.catalog.tables import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreDeployment:
    """One deployment type. Throughput is in MB/s for each TiB of storage; links are S3 data repository associations."""

    name: str
    smallest_gib: int
    step_gib: int
    network_baseline_mbps_per_tib: int
    network_burst_mbps_per_tib: int
    disk_read_mbps_per_tib: int
    disk_write_mbps_per_tib: int
    data_links_maximum: int

    def allows(self, size_gib: int) -> bool:
        """Whether a file system of this deployment can have this size."""
        return size_gib == self.smallest_gib or (size_gib > 0 and size_gib % self.step_gib == 0)

    def nearest_sizes(self, size_gib: int) -> tuple[int, ...]:
        """The allowed sizes below and above this one, ascending; one if it is smaller than all."""
        below = size_gib // self.step_gib * self.step_gib
        known = sorted({self.smallest_gib, self.step_gib, *([below] if below > 0 else []), below + self.step_gib})
        under, over = [s for s in known if s < size_gib], [s for s in known if s > size_gib]
        return (*under[-1:], *over[:1])


@cache
def lustre_deployments() -> Mapping[str, LustreDeployment]:
    """Every deployment type of the catalogue by name, sorted."""
    rows = read_toml("lustre.toml")
    return MappingProxyType({name: LustreDeployment(name=name, **rows[name]) for name in sorted(rows)})


def find_lustre_deployment(name: str) -> LustreDeployment:
    """The deployment type of this name. Raises UnknownName where the catalogue has none."""
    deployments = lustre_deployments()
    if name not in deployments:
        raise UnknownName("Lustre deployment", name, deployments)
    return deployments[name]
