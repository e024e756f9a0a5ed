"""The spot market's API: price history and placement scores.

Source: EC2 API reference, DescribeSpotPriceHistory and GetSpotPlacementScores. An error that it does not name is
likely. A type without a spot price in the catalog has no history.
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

from corral.box.api_errors import ApiError
from corral.box.ec2_capacity import spot_market
from corral.box.ec2_capacity.reservation_api import parse_time
from corral.box.ec2_capacity.type_offerings import page_of
from corral.box.faults import store
from corral.box.faults.matching import FaultContext, first_match
from corral.box.faults.records import NoCapacity
from corral.box.zones import zones_offering
from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.prices import instance_price
from corral.catalog.aws.regions import regions
from corral.model.enums import Market

PRODUCT = "Linux/UNIX"
MAX_HISTORY = timedelta(days=90)  # how far the history goes back
MAX_SCORES = 10  # regions or zones that are scored
MAX_TARGET, MAX_TYPES, MAX_REGIONS = 2_000_000_000, 1000, 10
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
    """The read-only actions of the spot market."""

    def describe_spot_price_history(self: Any) -> ActionResult:
        """DescribeSpotPriceHistory, the newest change first. All pages use the time of the first request."""
        self.error_on_dryrun()
        token, _, until = str(self._get_param("NextToken") or "").partition("/")
        now = _moment_of(until) if until else utcnow().replace(tzinfo=UTC)
        wanted = self._wanted_prices()
        found = [row for row in self._spot_prices(now) if _passes(row, wanted)]
        page, following = page_of(found, token, self._get_param("MaxResults") or None)
        return ActionResult({"SpotPriceHistory": page, "NextToken": following and f"{following}/{now.isoformat()}"})

    def get_spot_placement_scores(self: Any) -> ActionResult:
        """GetSpotPlacementScores: the ten best regions or zones. A no-capacity fault lowers the score to 1."""
        kinds = self._scored_types()
        requested = self._get_param("RegionNames", [])
        target, unit = int(self._get_param("TargetCapacity") or 0), str(self._get_param("TargetCapacityUnitType"))
        _check("TargetCapacity", target, 1, MAX_TARGET)
        _check("RegionName", len(requested), 0, MAX_REGIONS)
        if unknown := [name for name in requested if name not in regions()]:
            raise ApiError("InvalidParameterValue", f"The Region '{unknown[0]}' does not exist.")
        self.error_on_dryrun()
        scores = [one for region in requested or regions() for one in _scores(region, kinds, target, unit)]
        if not self._get_param("SingleAvailabilityZone"):
            scores = _by_region(scores)
        scores.sort(key=lambda one: (-one["Score"], one["Region"], one.get("AvailabilityZoneId", "")))
        size = self._get_param("MaxResults")
        page, token = page_of(scores[:MAX_SCORES], self._get_param("NextToken"), size, SMALLEST_PAGE)
        return ActionResult({"SpotPlacementScores": page, "NextToken": token})

    def _scored_types(self: Any) -> list[str]:
        if self._get_param("InstanceRequirementsWithMetadata"):
            raise ApiError("UnsupportedOperation", "The box has no instance requirements; specify InstanceTypes.")
        kinds = list(dict.fromkeys(self._get_param("InstanceTypes", [])))
        if not kinds:
            raise ApiError("MissingParameter", "The request must contain the parameter InstanceTypes")
        _check("InstanceType", len(kinds), 1, MAX_TYPES)
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
        given = [parse_time(self._get_param(name)) for name in ("StartTime", "EndTime")]
        start, end = (one.replace(tzinfo=UTC) if one else None for one in given)
        if start and end and end < start:
            raise ApiError("InvalidParameterValue", "The start time must be before the end time.")
        return max(start or now - MAX_HISTORY, now - MAX_HISTORY), min(end or now, now)

    def _wanted_prices(self: Any) -> list[tuple[str, list[str]]]:
        """Fields of a row with their accepted values, which may contain * and ?."""
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
    """The time in a pagination token. Raises ApiError if it is invalid."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise ApiError("InvalidNextToken", "The token is not valid.") from None


def _history(kind: str, region: str, start: datetime, end: datetime) -> Iterator[dict[str, Any]]:
    """The price changes of a type in each zone, from the end back to the last one before the start."""
    price = instance_price(kind, region)
    if price is None or price.spot_min_usd_per_hour is None or price.spot_max_usd_per_hour is None:
        return
    span = (price.spot_min_usd_per_hour, price.spot_max_usd_per_hour)
    for name, zone_id in _zones(kind, region):
        for change in spot_market.price_changes(kind, zone_id, start, end):
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
    now, faults = utcnow(), store.faults()
    by_zone: dict[str, list[int]] = {}
    for kind in kinds:
        spot = "spot" in INSTANCE_TYPES[kind]["SupportedUsageClasses"]
        for name, zone_id in _zones(kind, region) if spot else ():
            occasion = FaultContext(call="ec2:RunInstances", type=kind, zone=name, market=Market.SPOT)
            gone = first_match(faults, NoCapacity, occasion, now) is not None
            found = spot_market.LOWEST if gone else spot_market.score(kind, zone_id, _instances(kind, target, unit))
            by_zone.setdefault(zone_id, []).append(found)
    for zone_id, scores in by_zone.items():
        yield {"Region": region, "AvailabilityZoneId": zone_id, "Score": spot_market.score_of_types(scores)}


def _by_region(scores: list[dict[str, Any]]) -> list[dict[str, Any]]:
    best: dict[str, int] = {}
    for one in scores:
        best[one["Region"]] = max(one["Score"], best.get(one["Region"], spot_market.LOWEST))
    return [{"Region": region, "Score": score} for region, score in best.items()]


def _instances(kind: str, target: int, unit: str) -> int:
    """The number of instances with the target capacity."""
    if unit == "vcpu":
        return -(-target // int(INSTANCE_TYPES[kind]["VCpuInfo"]["DefaultVCpus"]))
    if unit == "memory-mib":
        return -(-target // int(INSTANCE_TYPES[kind]["MemoryInfo"]["SizeInMiB"]))
    return target


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        text = f"Invalid value '{value}' for {name}; it must be between {least} and {most}."
        raise ApiError("InvalidParameterValue", text)


def _check_types(kinds: list[str]) -> None:
    if unknown := [kind for kind in kinds if kind not in INSTANCE_TYPES]:
        raise ApiError("InvalidParameterValue", f"Invalid instance type: '{unknown[0]}'")


def _text(value: Any) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else str(value)
