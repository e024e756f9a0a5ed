"""Containers of a cluster: what runs them, and the sources that its machines compile.

Part of cluster.json.
"""

from dataclasses import dataclass
from enum import StrEnum


class ContainerRuntime(StrEnum):
    """What runs containers of jobs. Pyxis is NVIDIA's plugin of Slurm, which uses enroot."""

    NONE = "none"
    PYXIS = "pyxis"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlan:
    """The source of a program. `sha256`: of its decompressed archive, in hexadecimal digits."""

    name: str
    version: str
    url: str
    sha256: str

    @property
    def directory(self) -> str:
        """The directory in the archive."""
        return f"{self.name}-{self.version}"

    @property
    def path(self) -> str:
        """The path of the archive below the cluster's prefix."""
        return f"containers/{self.directory}.tar.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainersPlan:
    """What runs containers, and its sources; nothing by default."""

    runtime: ContainerRuntime = ContainerRuntime.NONE
    sources: tuple[SourcePlan, ...] = ()

    @property
    def are_used(self) -> bool:
        """Whether jobs can run in containers."""
        return self.runtime is not ContainerRuntime.NONE
