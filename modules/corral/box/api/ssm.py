"""SSM Parameter Store with the public parameters that name the box's images."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import moto.ssm.urls
from moto.ssm.models import Parameter, SimpleSystemManagerBackend

from corral.box.images import IMAGES, image_id

PUBLISHED = 1788220800.0  # 2026-09-01, the creation of the images


class BoxSSM(SimpleSystemManagerBackend):
    """The SSM of one account and region."""

    _url_module = moto.ssm.urls

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        for image in IMAGES:
            self._parameters[image.parameter].append(
                Parameter(
                    account_id=account_id,
                    name=image.parameter,
                    value=image_id(image, region_name),
                    parameter_type="String",
                    description=image.name,
                    allowed_pattern=None,
                    keyid=None,
                    last_modified_date=PUBLISHED,
                    version=1,
                    data_type="aws:ec2:image",
                )
            )


def install() -> None:
    """Replace moto's SSM with the box's."""
    from moto.ssm.models import ssm_backends

    ssm_backends.backend = BoxSSM
