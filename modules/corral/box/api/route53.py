"""Route 53: a zone that is created with a VPC is private, and private zones have no DNSSEC.

moto makes a zone public unless the request calls it private. Source: Route 53 API reference, CreateHostedZone:
HostedZoneConfig.PrivateZone is part of answers, the VPC decides.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from typing import Any

import moto.route53.urls
from moto.route53.models import Route53Backend, route53_backends
from moto.route53.responses import Route53

from corral.box.api_errors import ApiError

_create_hosted_zone = Route53.create_hosted_zone


class BoxRoute53(Route53Backend):
    """The Route 53 of one account."""

    _url_module = moto.route53.urls

    def get_dnssec(self, zone_id: str) -> None:
        """Raises for a private zone, and for a missing one."""
        if self.get_hosted_zone(zone_id).private_zone:
            raise ApiError("InvalidArgument", "Operation is unsupported for private hosted zones.")


def create_hosted_zone(self: Any) -> Any:
    """Create the zone, private if it has a VPC."""
    if self._get_param("VPC.VPCId"):
        self.params.setdefault("HostedZoneConfig", {})["PrivateZone"] = True
    return _create_hosted_zone(self)


def install() -> None:
    """Replace moto's Route 53 with the box's."""
    Route53.create_hosted_zone = create_hosted_zone
    route53_backends.backend = BoxRoute53
