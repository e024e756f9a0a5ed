"""Image profiles: where to find a machine image, and what its system contains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.accelerators.kernel_modules import KernelModules
from corral.catalog.aws.instance_types import Vendor
from corral.catalog.loader.data_files import read_toml
from corral.catalog.loader.suggestions import UnknownName

BOX_PROFILE = "box-debian-12"  # the image of all machines in the box, whatever the spec declares
VM_PROFILE = "debian-13"  # the image of all virtual machines in the box
IMAGE_VARIABLE = "CORRAL_BOX_IMAGE"  # selects another profile, for a box whose machines run another system


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageProfile:
    """One profile. `image_parameter` is the SSM parameter that holds the newest image id of a region.

    `snapshot_gib`: the size of its root snapshot; EC2 rejects a smaller root volume. `drivers`: the accelerator vendors
    that it has drivers for. `kernel_modules`: the flavour of NVIDIA's; None if any GPU works. `box`: it exists only in
    the box, and no spec may name it. `packages`: the versions of packages that a boot installs, except Slurm's.
    `node_install_s`, `head_install_s`: how long that takes at boot, in seconds; 0 if nothing is missing.
    `lustre_archive`, `lustre_key`: an apt archive with the Lustre client; empty if there is none. `efa`: it has EFA's
    driver. `ssm_agent`: the URL of the package of Systems Manager's agent, with the region and its domain to fill in;
    empty if the image has the agent.
    """

    name: str
    image_parameter: str
    system: str
    python: str
    slurm_version: str
    slurm_sbin: str
    default_user: str
    root_device_name: str
    snapshot_gib: int
    architecture: str
    drivers: tuple[Vendor, ...]
    efa: bool
    box: bool
    source: str
    kernel_modules: KernelModules | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    node_install_s: int = 0
    head_install_s: int = 0
    lustre_archive: str = ""
    lustre_key: str = ""
    ssm_agent: str = ""


@cache
def image_profiles() -> Mapping[str, ImageProfile]:
    """Return every profile of the catalog by name, sorted, including the box's."""
    rows = read_toml("images.toml")
    return MappingProxyType({name: _image_profile(name, rows[name]) for name in sorted(rows)})


def find_image_profile(name: str) -> ImageProfile:
    """Return the profile of this name. Raises UnknownName."""
    profiles = image_profiles()
    if name not in profiles:
        raise UnknownName("image profile", name, profiles)
    return profiles[name]


def _image_profile(name: str, row: Mapping[str, Any]) -> ImageProfile:
    drivers = tuple(Vendor(vendor) for vendor in row["drivers"])
    flavour = KernelModules(row["kernel_modules"]) if "kernel_modules" in row else None
    return ImageProfile(**{**row, "name": name, "drivers": drivers, "kernel_modules": flavour})
