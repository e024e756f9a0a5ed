"""Route 53: a zone that is created with a VPC is private, private zones have no DNSSEC, and changes are PENDING.

moto makes a zone public unless the request calls it private. Source: Route 53 API reference, CreateHostedZone:
HostedZoneConfig.PrivateZone is part of answers, the VPC decides; GetChange. The id of a change has the time of its
request, so that nothing has to be kept.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import moto.route53.urls
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.route53.models import Route53Backend, route53_backends
from moto.route53.responses import Route53

from corral.box.api_errors import ApiError
from corral.box.delays import DNS_CHANGE, seconds

_create_hosted_zone = Route53.create_hosted_zone
_CHANGE = re.compile(r"C[0-9A-F]{1,16}")
_CHANGING = (
    *("create_hosted_zone", "delete_hosted_zone", "change_resource_record_sets"),
    *("associate_vpc_with_hosted_zone", "disassociate_vpc_from_hosted_zone"),
)


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


def change_info(change: str, now: float) -> dict[str, str]:
    """The id and state of the change with this id."""
    pending = now < int(change[1:], 16) / 1000 + seconds(DNS_CHANGE)
    return {"Id": f"/change/{change}", "Status": "PENDING" if pending else "INSYNC"}


def get_change(self: Any) -> ActionResult:
    """GetChange. Raises ApiError for an id that no change has."""
    change = str(self._get_param("Id")).rpartition("/")[2]
    if not _CHANGE.fullmatch(change):
        raise ApiError("NoSuchChange", f"Could not find resource with ID: {change}")
    return ActionResult({"ChangeInfo": {**change_info(change, time.time()), "SubmittedAt": utcnow()}})


def _with_change(action: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    def answer(self: Any) -> ActionResult:
        result = action(self)
        now = time.time()
        result.result["ChangeInfo"] |= change_info(f"C{int(now * 1000):X}", now)
        return result

    return answer


def install() -> None:
    """Replace moto's Route 53 with the box's."""
    Route53.create_hosted_zone = create_hosted_zone
    Route53.get_change = get_change
    for name in _CHANGING:
        setattr(Route53, name, _with_change(getattr(Route53, name)))
    route53_backends.backend = BoxRoute53
