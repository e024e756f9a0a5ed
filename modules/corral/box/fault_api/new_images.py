"""Newer machine images: public parameters name them, and the older ones remain. Hold the cloud's lock.

An image's snapshot grows from release to release: the same root volume no longer holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ssm.models import ssm_backends

from corral.box.account import ACCOUNT, REGION
from corral.box.faults.records import FaultError
from corral.box.images import IMAGES, image_id

KIND = "new-image"


def publish_images(parameters: Mapping[str, str]) -> Mapping[str, Any]:
    """Publish a newer image of each kind, in the default region and in those used so far. Returns its document.

    `parameters`: the size of the root snapshots as `snapshot_gib`; without it each is as large as before. Raises
    FaultError.
    """
    size = parameters.get("snapshot_gib", "")
    if size and not (size.isascii() and size.isdigit() and 1 <= int(size) <= 16384):
        raise FaultError(f"{size!r} is not a snapshot's size - expected GiB from 1 to 16384")
    regions = sorted({REGION, *(region for region, _ in ec2_backends[ACCOUNT].items())})
    for region in regions:
        _publish(region, int(size) if size else None)
    return {"kind": KIND, "instances": [], "regions": regions}


def _publish(region: str, snapshot_gib: int | None) -> None:
    ec2, ssm, now = ec2_backends[ACCOUNT][region], ssm_backends[ACCOUNT][region], datetime.now(UTC)
    for image in IMAGES:
        latest = ssm.get_parameter(image.parameter)
        number, before = latest.version + 1, ec2.amis[latest.value]
        id, name = image_id(image, region, number), f"{image.name}-{number}"
        ec2.add_image(image, id, name, snapshot_gib or before.ebs_snapshot.volume.size, now)
        ssm.publish_image(image, id, name, now.timestamp())
