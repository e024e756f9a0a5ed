"""Route 53: a zone that is created with a VPC is private. moto makes it public unless the request says so.

Source: Route 53 API reference, CreateHostedZone: HostedZoneConfig.PrivateZone is part of answers, the VPC decides.
"""

from __future__ import annotations

from typing import Any

from moto.route53.responses import Route53

_create_hosted_zone = Route53.create_hosted_zone


def create_hosted_zone(self: Any) -> Any:
    """Create the zone, private if it has a VPC."""
    if self._get_param("VPC.VPCId"):
        self.params.setdefault("HostedZoneConfig", {})["PrivateZone"] = True
    return _create_hosted_zone(self)


def install() -> None:
    """Replace moto's creation of zones with the box's."""
    Route53.create_hosted_zone = create_hosted_zone
