"""The machine images that exist in every region of the box, and the public SSM parameters that name them.

No image has content: a machine of the box runs the host's own system.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from moto.ec2.models.amis import Ami

AMAZON = "137112412989"
CANONICAL = "099720109477"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image as DescribeImages shows it, and the parameter whose value is its id."""

    parameter: str
    name: str
    owner: str


IMAGES = (
    Image(
        parameter="/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
        name="Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20260901",
        owner=AMAZON,
    ),
    Image(
        parameter="/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
        name="Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) 20260901",
        owner=AMAZON,
    ),
    Image(
        parameter="/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
        name="ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260901",
        owner=CANONICAL,
    ),
    Image(parameter="/corral-box/ami", name="corral-box", owner=AMAZON),
)


def image_id(image: Image, region: str) -> str:
    """The id of an image, which differs between regions as on AWS and is the same in every box."""
    return "ami-" + hashlib.sha256(f"{region}/{image.parameter}".encode()).hexdigest()[:17]


class Images:
    """The part of the EC2 backend that knows which images exist."""

    def _load_amis(self: Any) -> None:
        for image in IMAGES:
            made = Ami(
                self,
                image_id(image, self.region_name),
                name=image.name,
                description=image.name,
                owner_id=image.owner,
                owner_alias="amazon",
                public=True,
                virtualization_type="hvm",
                architecture="x86_64",
                hypervisor="xen",
                root_device_type="ebs",
                region_name=self.region_name + "a",
                creation_date=datetime(2026, 9, 1, tzinfo=UTC),
            )
            self.amis[made.id] = made
