"""DescribeInstanceTypeOfferings: the types of a region and its zones, from moto's copy of AWS's data by zone id.

moto's offerings by zone name come from an account with other zone names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

from corral.box.api_errors import ApiError

PAGE = 1000  # the largest page, and the default
SMALLEST_PAGE = 5
_FIELDS = {"location": "Location", "instance-type": "InstanceType"}
_REGION, _ZONE, _ZONE_ID = "region", "availability-zone", "availability-zone-id"


class OfferingActions:
    """The actions on instance type offerings."""

    def describe_instance_type_offerings(self: Any) -> ActionResult:
        """DescribeInstanceTypeOfferings, by region, zone or zone id, in pages; filters may contain * and ?."""
        self.error_on_dryrun()
        kind = str(self._get_param("LocationType") or _REGION)
        filters = self._filters_from_querystring()
        found = [offer for offer in _offers(self.region, kind) if _passes(offer, filters)]
        page, token = page_of(found, self._get_param("NextToken"), self._get_param("MaxResults"), SMALLEST_PAGE)
        return ActionResult({"InstanceTypeOfferings": page, "NextToken": token})


def page_of(found: list[Any], token: Any, size: Any, smallest: int = 1) -> tuple[list[Any], str | None]:
    """A page of results, and the token of the next. Raises ApiError for an invalid size or token."""
    start, most = str(token or 0), int(size or PAGE)
    if not start.isdigit():
        raise ApiError("InvalidNextToken", "The token is not valid.")
    if not smallest <= most <= PAGE:
        text = f"Value ( {most} ) for parameter maxResults is invalid. Expecting a value between {smallest} and {PAGE}."
        raise ApiError("InvalidParameterValue", text)
    end = int(start) + most
    return found[int(start) : end], str(end) if end < len(found) else None


def _offers(region: str, kind: str) -> Iterator[Mapping[str, str]]:
    names = {zone.zone_id: zone.name for zone in RegionsAndZonesBackend.zones.get(region, [])}
    by_id = [one for one in INSTANCE_TYPE_OFFERINGS[_ZONE_ID].get(region, []) if one["Location"] in names]
    if kind == _REGION:
        locations = {(one["InstanceType"], region) for one in by_id}
    elif kind in (_ZONE, _ZONE_ID):
        locations = {
            (one["InstanceType"], names[one["Location"]] if kind == _ZONE else one["Location"]) for one in by_id
        }
    elif kind == "outpost":
        locations = set()
    else:
        raise ApiError("InvalidParameterValue", f"Value ({kind}) for parameter locationType is invalid.")
    for instance_type, location in sorted(locations):
        yield {"InstanceType": instance_type, "LocationType": kind, "Location": location}


def _passes(offer: Mapping[str, str], filters: Mapping[str, list[str]]) -> bool:
    return all(any(fnmatchcase(offer[_FIELDS[name]], one) for one in wanted) for name, wanted in filters.items())
