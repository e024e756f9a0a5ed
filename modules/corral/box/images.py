"""The machine images of every region, and the public SSM parameters that name them.

Only two have content: the box's own, whose machines run the host's system, and Debian 13's, for virtual machines.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from moto.ec2.models.amis import Ami

from corral.catalog.aws.images import BOX_PROFILE, VM_PROFILE, find_image_profile

AMAZON = "137112412989"
CANONICAL = "099720109477"
DEBIAN = "136693071363"
PUBLISHED = datetime(2026, 9, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineImage:
    """One image, and the SSM parameter with its id.

    `snapshot_gib`: the size of its root snapshot and the default size of its root volume. `profile`: the catalog's
    profile of an image that machines can boot.
    """

    parameter: str
    name: str
    owner: str
    snapshot_gib: int
    root_device_name: str = "/dev/sda1"
    profile: str | None = None


BOX_IMAGE = MachineImage(
    parameter="/corral-box/ami",
    name="corral-box",
    owner=AMAZON,
    snapshot_gib=find_image_profile(BOX_PROFILE).snapshot_gib,
    profile=BOX_PROFILE,
)  # the host's system
IMAGES = (
    MachineImage(
        parameter="/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
        name="Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20260901",
        owner=AMAZON,
        snapshot_gib=find_image_profile("ubuntu-24.04-dlami").snapshot_gib,
    ),
    MachineImage(
        parameter="/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
        name="Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) 20260901",
        owner=AMAZON,
        snapshot_gib=75,  # tekumara/notes, aws-deeplearning-ami.md, 2025-05: df shows 73 GiB
    ),
    MachineImage(
        parameter="/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
        name="ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260901",
        owner=CANONICAL,
        snapshot_gib=8,  # Ubuntu's own images: NOT VERIFIED
    ),
    MachineImage(
        parameter=find_image_profile(VM_PROFILE).image_parameter,
        name="debian-13-amd64-20260901-2587",
        owner=DEBIAN,
        snapshot_gib=find_image_profile(VM_PROFILE).snapshot_gib,
        root_device_name=find_image_profile(VM_PROFILE).root_device_name,
        profile=VM_PROFILE,
    ),
    BOX_IMAGE,
)


def image_id(image: MachineImage, region: str, number: int = 1) -> str:
    """The id of the parameter's image with this number: different in each region, and the same in every box."""
    words = f"{region}/{image.parameter}" + (f"/{number}" if number > 1 else "")
    return "ami-" + hashlib.sha256(words.encode()).hexdigest()[:17]


class BoxAmi(Ami):  # type: ignore[misc]
    """An image with the root volume of its snapshot; moto's have 15 GiB.

    `profile`: the catalog's profile, if machines can boot it.
    """

    profile: str | None = None

    @property
    def block_device_mappings(self) -> list[dict[str, Any]]:
        """The mapping of its root, as Ubuntu's, Debian's and the DLAMI's."""
        root = {
            "SnapshotId": self.ebs_snapshot.id,
            "VolumeSize": self.ebs_snapshot.volume.size,
            "DeleteOnTermination": True,
            "VolumeType": "gp3",
            "Encrypted": False,
        }
        return [{"DeviceName": self.root_device_name, "Ebs": root}]


class Images:
    """The EC2 backend's images."""

    def _load_amis(self: Any) -> None:
        for image in IMAGES:
            self.add_image(image, image_id(image, self.region_name), image.name, image.snapshot_gib, PUBLISHED)

    def add_image(self: Any, image: MachineImage, id: str, name: str, snapshot_gib: int, published: datetime) -> None:
        """Publish an image of this kind."""
        made = BoxAmi(
            self,
            id,
            name=name,
            description=name,
            owner_id=image.owner,
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            architecture="x86_64",
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name=image.root_device_name,
            region_name=self.region_name + "a",
            creation_date=published,
        )
        made.ebs_snapshot.volume.size = snapshot_gib
        made.profile = image.profile
        self.amis[made.id] = made

    def image_profile(self: Any, id: str) -> str | None:
        """The catalog's profile of an image that machines can boot."""
        return getattr(self.amis.get(id), "profile", None)
