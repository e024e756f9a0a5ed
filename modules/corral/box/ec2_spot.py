"""What EC2 tells of its spot market: the history of prices, and how likely a request is to be met.

Source: EC2 API reference, DescribeSpotPriceHistory and GetSpotPlacementScores. Where it names no error, the code is
likely. A type without a spot price in the catalogue has no history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES

from corral.box import spot_market
from corral.box.ec2_offerings import page_of
from corral.box.ec2_reservation_actions import moment
from corral.box.ec2_zones import zones_offering
from corral.box.faults import book
from corral.box.faults.matching import Occasion, first
from corral.box.faults.records import Market, NoCapacity
from corral.box.refusals import Refused
from corral.catalog.instances import instance_types
from corral.catalog.prices import instance_price
from corral.catalog.regions import regions

PRODUCT = "Linux/UNIX"
LONGEST = timedelta(days=90)  # how far the history goes back
TOP = 10  # regions or zones that are scored
MOST_TARGET, MOST_TYPES, MOST_REGIONS = 2_000_000_000, 1000, 10
SMALLEST_PAGE = 10  # of scores
_FILTERS = {
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "instance-type": "InstanceType",
    "product-description": "ProductDescription",
    "spot-price": "SpotPrice",
    "timestamp": "Timestamp",
}


class SpotActions:
    """The actions that only ask about the spot market."""

    def describe_spot_price_history(self: Any) -> ActionResult:
        """DescribeSpotPriceHistory, the newest change first; each page is of the moment of the first one."""
        self.error_on_dryrun()
        token, _, until = str(self._get_param("NextToken") or "").partition("/")
        now = _moment_of(until) if until else utcnow().replace(tzinfo=UTC)
        wanted = self._wanted_prices()
        found = [row for row in self._spot_prices(now) if _passes(row, wanted)]
        page, following = page_of(found, token, self._get_param("MaxResults") or None)
        return ActionResult({"SpotPriceHistory": page, "NextToken": following and f"{following}/{now.isoformat()}"})

    def get_spot_placement_scores(self: Any) -> ActionResult:
        """GetSpotPlacementScores: the ten best regions or zones; where a fault leaves no capacity the lowest score."""
        kinds = self._scored_types()
        asked = self._get_param("RegionNames", [])
        target, unit = int(self._get_param("TargetCapacity") or 0), str(self._get_param("TargetCapacityUnitType"))
        _check("TargetCapacity", target, 1, MOST_TARGET)
        _check("RegionName", len(asked), 0, MOST_REGIONS)
        if unknown := [name for name in asked if name not in regions()]:
            raise Refused("InvalidParameterValue", f"The Region '{unknown[0]}' does not exist.")
        self.error_on_dryrun()
        scores = [one for region in asked or regions() for one in _scores(region, kinds, target, unit)]
        if not self._get_param("SingleAvailabilityZone"):
            scores = _by_region(scores)
        scores.sort(key=lambda one: (-one["Score"], one["Region"], one.get("AvailabilityZoneId", "")))
        size = self._get_param("MaxResults")
        page, token = page_of(scores[:TOP], self._get_param("NextToken"), size, SMALLEST_PAGE)
        return ActionResult({"SpotPlacementScores": page, "NextToken": token})

    def _scored_types(self: Any) -> list[str]:
        if self._get_param("InstanceRequirementsWithMetadata"):
            raise Refused("UnsupportedOperation", "The box knows no instance requirements: name the InstanceTypes.")
        kinds = list(dict.fromkeys(self._get_param("InstanceTypes", [])))
        if not kinds:
            raise Refused("MissingParameter", "The request must contain the parameter InstanceTypes")
        _check("InstanceType", len(kinds), 1, MOST_TYPES)
        _check_types(kinds)
        return kinds

    def _spot_prices(self: Any, now: datetime) -> list[dict[str, Any]]:
        start, end = self._period(now)
        kinds = self._get_param("InstanceTypes", [])
        _check_types(kinds)
        rows = [row for kind in kinds or instance_types() for row in _history(kind, self.region, start, end)]
        return sorted(
            rows, key=lambda row: (-row["Timestamp"].timestamp(), row["InstanceType"], row["AvailabilityZone"])
        )

    def _period(self: Any, now: datetime) -> tuple[datetime, datetime]:
        given = [moment(self._get_param(name)) for name in ("StartTime", "EndTime")]
        start, end = (one.replace(tzinfo=UTC) if one else None for one in given)
        if start and end and end < start:
            raise Refused("InvalidParameterValue", "The start time must be before the end time.")
        return max(start or now - LONGEST, now - LONGEST), min(end or now, now)

    def _wanted_prices(self: Any) -> list[tuple[str, list[str]]]:
        """Fields of a row, each with the values that it may have; they may hold * and ?."""
        filters: dict[str, list[str]] = self._filters_from_querystring()
        wanted = [(_FILTERS[name], list(values)) for name, values in filters.items()]
        if products := self._get_param("ProductDescriptions", []):
            wanted.append(("ProductDescription", list(products)))
        for name in ("AvailabilityZone", "AvailabilityZoneId"):
            if given := self._get_param(name):
                wanted.append((name, [str(given)]))
        return wanted


def _passes(row: Mapping[str, Any], wanted: list[tuple[str, list[str]]]) -> bool:
    return all(any(fnmatchcase(_text(row[name]), one) for one in values) for name, values in wanted)


def _moment_of(text: str) -> datetime:
    """The moment in a token of ours. Raises Refused for another's."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise Refused("InvalidNextToken", "The token is not valid.") from None


def _history(kind: str, region: str, start: datetime, end: datetime) -> Iterator[dict[str, Any]]:
    """The changes of a type's price in each zone, back to the one that holds at the start."""
    price = instance_price(kind, region)
    if price is None or price.spot_min_usd_per_hour is None or price.spot_max_usd_per_hour is None:
        return
    span = (price.spot_min_usd_per_hour, price.spot_max_usd_per_hour)
    for name, zone_id in _zones(kind, region):
        for change in spot_market.changes(kind, zone_id, start, end):
            yield {
                "AvailabilityZone": name,
                "AvailabilityZoneId": zone_id,
                "InstanceType": kind,
                "ProductDescription": PRODUCT,
                "SpotPrice": f"{spot_market.price_at(kind, zone_id, span, change):.6f}",
                "Timestamp": change,
            }


def _zones(kind: str, region: str) -> list[tuple[str, str]]:
    """The names and ids of the zones that have the type."""
    offering = set(zones_offering(kind, region))
    return [(zone.name, zone.zone_id) for zone in RegionsAndZonesBackend.zones.get(region, []) if zone.name in offering]


def _scores(region: str, kinds: list[str], target: int, unit: str) -> Iterator[dict[str, Any]]:
    now, faults = utcnow(), book.faults()
    by_zone: dict[str, list[int]] = {}
    for kind in kinds:
        spot = "spot" in INSTANCE_TYPES[kind]["SupportedUsageClasses"]
        for name, zone_id in _zones(kind, region) if spot else ():
            occasion = Occasion(call="ec2:RunInstances", type=kind, zone=name, market=Market.SPOT)
            gone = first(faults, NoCapacity, occasion, now) is not None
            found = spot_market.LOWEST if gone else spot_market.score(kind, zone_id, _instances(kind, target, unit))
            by_zone.setdefault(zone_id, []).append(found)
    for zone_id, scores in by_zone.items():
        yield {"Region": region, "AvailabilityZoneId": zone_id, "Score": spot_market.of_types(scores)}


def _by_region(scores: list[dict[str, Any]]) -> list[dict[str, Any]]:
    best: dict[str, int] = {}
    for one in scores:
        best[one["Region"]] = max(one["Score"], best.get(one["Region"], spot_market.LOWEST))
    return [{"Region": region, "Score": score} for region, score in best.items()]


def _instances(kind: str, target: int, unit: str) -> int:
    """How many instances give the target capacity."""
    if unit == "vcpu":
        return -(-target // int(INSTANCE_TYPES[kind]["VCpuInfo"]["DefaultVCpus"]))
    if unit == "memory-mib":
        return -(-target // int(INSTANCE_TYPES[kind]["MemoryInfo"]["SizeInMiB"]))
    return target


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        text = f"Invalid value '{value}' for {name}; it must be between {least} and {most}."
        raise Refused("InvalidParameterValue", text)


def _check_types(kinds: list[str]) -> None:
    if unknown := [kind for kind in kinds if kind not in INSTANCE_TYPES]:
        raise Refused("InvalidParameterValue", f"Invalid instance type: '{unknown[0]}'")


def _text(value: Any) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else str(value)
