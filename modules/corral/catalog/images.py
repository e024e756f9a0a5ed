"""Image profiles: where a machine image is found, and what its system is known to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.instances import Vendor
from corral.catalog.names import UnknownName
from corral.catalog.tables import read_toml

BOX_PROFILE = "box-debian-12"  # what machines in the AWS in a box boot, whatever the spec says
IMAGE_VARIABLE = "CORRAL_BOX_IMAGE"  # names another profile, for a box whose machines are another system


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageProfile:
    """One profile. `image_parameter` is the SSM parameter that holds the newest image id of a region.

    `snapshot_gib`: the size of its root snapshot; EC2 refuses a smaller root volume. `drivers`: whose accelerators it
    can drive. `box`: it exists only in the AWS in a box, and no spec may name it. `packages`: the versions of what
    completes it, by package, Slurm's apart. `node_install_s`, `head_install_s`: what that takes of a boot, in seconds;
    0 where nothing is lacking. `lustre_archive`, `lustre_key`: an apt archive with Lustre's client.
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
    box: bool
    source: str
    packages: Mapping[str, str] = field(default_factory=dict)
    node_install_s: int = 0
    head_install_s: int = 0
    lustre_archive: str = ""
    lustre_key: str = ""


@cache
def image_profiles() -> Mapping[str, ImageProfile]:
    """Every profile of the catalogue by name, sorted; that of the box is among them."""
    rows = read_toml("images.toml")
    return MappingProxyType({name: _image_profile(name, rows[name]) for name in sorted(rows)})


def find_image_profile(name: str) -> ImageProfile:
    """The profile of this name. Raises UnknownName where the catalogue has none."""
    profiles = image_profiles()
    if name not in profiles:
        raise UnknownName("image profile", name, profiles)
    return profiles[name]


def _image_profile(name: str, row: Mapping[str, Any]) -> ImageProfile:
    drivers = tuple(Vendor(vendor) for vendor in row["drivers"])
    return ImageProfile(**{**row, "name": name, "drivers": drivers})
