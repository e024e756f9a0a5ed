"""The flavours of NVIDIA's kernel modules that drive a GPU: kernel_modules.toml as records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from corral.catalog.loader.data_files import read_toml


class KernelModules(StrEnum):
    """A flavour of NVIDIA's kernel modules."""

    OPEN = "open"
    PROPRIETARY = "proprietary"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuArchitecture:
    """An architecture, the `flavours` that drive its GPUs, and the GPUs by their names in the instance types."""

    name: str
    flavours: tuple[KernelModules, ...]
    products: tuple[str, ...]
    source: str


@cache
def gpu_architectures() -> tuple[GpuArchitecture, ...]:
    """Return all architectures, oldest first."""
    return tuple(
        GpuArchitecture(
            name=name,
            flavours=tuple(map(KernelModules, row["flavours"])),
            products=tuple(row["products"]),
            source=row["source"],
        )
        for name, row in read_toml("kernel_modules.toml").items()
    )


def gpu_architecture(product: str) -> GpuArchitecture | None:
    """Return the architecture of this GPU; None for accelerators of other vendors and for unknown GPUs."""
    return next((row for row in gpu_architectures() if product in row.products), None)
