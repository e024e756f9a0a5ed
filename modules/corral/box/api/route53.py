"""Route 53: DNSSEC, which private zones do not have."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import moto.route53.urls
from moto.route53.models import Route53Backend, route53_backends

from corral.box.api_errors import ApiError


class BoxRoute53(Route53Backend):
    """The Route 53 of one account."""

    _url_module = moto.route53.urls

    def get_dnssec(self, zone_id: str) -> None:
        """Raises for a private zone, and for a missing one."""
        if self.get_hosted_zone(zone_id).private_zone:
            raise ApiError("InvalidArgument", "Operation is unsupported for private hosted zones.")


def install() -> None:
    """Replace moto's Route 53 with the box's."""
    route53_backends.backend = BoxRoute53
