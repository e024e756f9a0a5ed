"""Regions and zones, their opt-in status, and the instance types of zones.

The box's account has opted in to all regions, except those that the fault `disabled-region` names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS
from moto.ec2.utils import generic_filter

from corral.box.api_errors import ApiError
from corral.box.faults import store
from corral.box.faults.records import DisabledRegion
from corral.model.partitions import COMMERCIAL, partition_of

LOCAL_ZONES = {  # name: (zone id, id of the parent zone), by region; AWS Prescriptive Guidance, hybrid edge
    "us-east-1": {"us-east-1-mia-1a": ("use1-mia1-az1", "use1-az2")},
}


# Enabled in every account; others need an opt-in. Source: AWS Account Management Reference Guide, "Enable or disable
# AWS Regions in your account". Regions of other partitions are all enabled.
ENABLED_BY_DEFAULT = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
        *("ca-central-1", "eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRegion:
    """A region in DescribeRegions."""

    name: str

    @property
    def status(self) -> str:
        """The opt-in status, as in the API."""
        if not needs_opt_in(self.name):
            return "opt-in-not-required"
        return "not-opted-in" if self.name in disabled_regions() else "opted-in"

    def describe(self) -> dict[str, Any]:
        """The region as in the API."""
        host = f"ec2.{self.name}.{partition_of(self.name).dns_suffix}"
        return {"RegionName": self.name, "Endpoint": host, "OptInStatus": self.status}

    def get_filter_value(self, name: str) -> Any:
        """The value of a filter of DescribeRegions. Raises NotImplementedError for a filter that AWS does not have."""
        shown = self.describe()
        held = {"endpoint": "Endpoint", "opt-in-status": "OptInStatus", "region-name": "RegionName"}
        if name not in held:
            raise NotImplementedError(f"filter '{name}'")
        return shown[held[name]]


def needs_opt_in(region: str) -> bool:
    """True if a new account cannot use the region."""
    return partition_of(region) is COMMERCIAL and region not in ENABLED_BY_DEFAULT


def disabled_regions() -> frozenset[str]:
    """The regions that the account has not opted in to. Hold the cloud's lock."""
    return frozenset(one.region for one in store.faults() if isinstance(one, DisabledRegion))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownZone:
    """A zone in DescribeAvailabilityZones; a Local Zone has a parent and is not opted in to."""

    region: str
    name: str
    id: str
    parent_id: str | None = None
    parent_name: str | None = None

    @property
    def group(self) -> str:
        """The group for opt-in: us-east-1-mia-1 of us-east-1-mia-1a, us-east-1-zg-1 of us-east-1a."""
        return self.name[:-1] if self.parent_id else f"{self.region}-zg-1"

    def describe(self) -> dict[str, Any]:
        """The zone as in the API."""
        return {
            "OptInStatus": "not-opted-in" if self.parent_id else "opt-in-not-required",
            "Messages": [],
            "RegionName": self.region,
            "ZoneName": self.name,
            "ZoneId": self.id,
            "GroupName": self.group,
            "NetworkBorderGroup": self.group if self.parent_id else self.region,
            "ZoneType": "local-zone" if self.parent_id else "availability-zone",
            "ParentZoneName": self.parent_name,
            "ParentZoneId": self.parent_id,
            "State": "available",
        }

    def get_filter_value(self, name: str, _method: str | None = None) -> Any:
        """The value for a filter of DescribeAvailabilityZones."""
        if name == "message":
            return []
        return self.describe()["".join(word.capitalize() for word in name.split("-"))] or ""


def zones_offering(kind: str, region: str) -> list[str]:
    """The names of the zones of a region that have the instance type.

    moto has the offerings of one account and the zone names of another; only the zone ids agree.
    """
    offers = INSTANCE_TYPE_OFFERINGS["availability-zone-id"].get(region, [])
    ids = {offer["Location"] for offer in offers if offer["InstanceType"] == kind}
    return sorted(zone.name for zone in RegionsAndZonesBackend.zones.get(region, []) if zone.zone_id in ids)


def check_offered(kind: str, zone: str) -> None:
    """Raises ApiError unless the zone has the instance type; a region without data has all types."""
    region = zone[:-1]
    if region not in INSTANCE_TYPE_OFFERINGS["availability-zone-id"]:
        return
    zones = zones_offering(kind, region)
    if zone not in zones:
        raise ApiError("Unsupported", f"Your requested instance type ({kind}) is not supported in your requested"
                      f" Availability Zone ({zone}). Please retry your request by not specifying an Availability Zone"
                      f" or choosing {', '.join(zones)}.")  # fmt: skip


class ZoneActions:
    """The actions on regions and zones that moto answers differently from AWS."""

    def describe_regions(self: Any) -> ActionResult:
        """DescribeRegions: those that are enabled, all with AllRegions, or those with these names.

        Source: EC2 API reference, DescribeRegions.
        """
        self.error_on_dryrun()
        here = partition_of(self.region)
        known = (one.name for one in RegionsAndZonesBackend.regions)
        regions = [ShownRegion(name=name) for name in known if partition_of(name) is here]
        names = self._get_param("RegionNames", [])
        _check_known("region", names, {one.name for one in regions})
        every = names or self._get_param("AllRegions", False)
        chosen = [one for one in regions if (one.name in names if names else every or one.status != "not-opted-in")]
        shown = generic_filter(self._filters_from_querystring(), chosen)
        return ActionResult({"Regions": [one.describe() for one in shown]})

    def describe_availability_zones(self: Any) -> ActionResult:
        """DescribeAvailabilityZones; Local Zones only with AllAvailabilityZones, as no one can opt in.

        Source: EC2 API reference, DescribeAvailabilityZones.
        """
        self.error_on_dryrun()
        zones = _zones(self.ec2_backend, self.region, every=bool(self._get_param("AllAvailabilityZones", False)))
        names, ids = self._get_param("ZoneNames", []), self._get_param("ZoneIds", [])
        _check_known("availability zone", names, {zone.name for zone in zones})
        _check_known("availability zone-id", ids, {zone.id for zone in zones})
        chosen = [zone for zone in zones if (not names or zone.name in names) and (not ids or zone.id in ids)]
        shown = generic_filter(self._filters_from_querystring(), chosen)
        return ActionResult({"AvailabilityZones": [zone.describe() for zone in shown]})


def _zones(backend: Any, region: str, *, every: bool) -> list[ShownZone]:
    standard = backend.describe_availability_zones()
    known = [ShownZone(region=region, name=zone.name, id=zone.zone_id) for zone in standard]
    if not every:
        return known
    names = {zone.id: zone.name for zone in known}
    return known + [
        ShownZone(region=region, name=name, id=zone_id, parent_id=parent, parent_name=names.get(parent))
        for name, (zone_id, parent) in LOCAL_ZONES.get(region, {}).items()
    ]


def _check_known(kind: str, named: list[str], known: set[str]) -> None:
    if unknown := [name for name in named if name not in known]:
        raise ApiError("InvalidParameterValue", f"Invalid {kind}: [{', '.join(unknown)}]")
