"""Capacity Block offerings, a pure function of the query and the time. AWS has others, and fewer.

Source: EC2 user guide, "Capacity Blocks for ML" and "Find and purchase Capacity Blocks".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from hashlib import sha256
from typing import Any

ENDS_AT = time(11, 30)  # UTC, every block
DAY = timedelta(days=1)
VALID_HOURS = {24 * days for days in (*range(1, 15), *range(21, 183, 7))}  # valid durations
MAX_LEAD_TIME = timedelta(weeks=8)  # the latest start, from now


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """A block for sale. Times are UTC. `number` distinguishes otherwise equal blocks."""

    instance_type: str
    zone: str
    count: int
    start: datetime
    end: datetime
    number: int = 1

    @property
    def id(self) -> str:
        """The id, the same for the same block."""
        words = f"{self.instance_type}/{self.zone}/{self.count}/{self.start}/{self.end}/{self.number}"
        return "cb-" + sha256(words.encode()).hexdigest()[:17]

    def describe(self) -> dict[str, Any]:
        """The offering as in the API; it costs nothing."""
        minutes = int((self.end - self.start).total_seconds()) // 60
        return {
            "CapacityBlockOfferingId": self.id,
            "InstanceType": self.instance_type,
            "AvailabilityZone": self.zone,
            "InstanceCount": self.count,
            "StartDate": self.start,
            "EndDate": self.end,
            "CapacityBlockDurationHours": minutes // 60,
            "CapacityBlockDurationMinutes": minutes % 60,
            "UpfrontFee": "0.00",
            "CurrencyCode": "USD",
            "Tenancy": "default",
            "ZoneType": "availability-zone",
        }


def offerings(
    instance_type: str, zones: list[str], count: int, hours: int, now: datetime, earliest: datetime
) -> Iterator[Offering]:
    """The available blocks, the earliest first, for each time one in each zone.

    A block that starts at once ends at the 11:30 nearest to the requested duration.
    """
    wanted = timedelta(hours=hours)
    starts = [now.replace(second=0, microsecond=0)] if earliest <= now else []
    first = _ends_after(max(now, earliest))
    starts += [first + DAY * day for day in range(MAX_LEAD_TIME.days + 1) if first + DAY * day <= now + MAX_LEAD_TIME]
    for start in starts:
        for zone in zones:
            yield Offering(
                instance_type=instance_type, zone=zone, count=count, start=start, end=_nearest_end(start, wanted)
            )


def _ends_after(earliest: datetime) -> datetime:
    """The first 11:30 at or after a time."""
    same_day = datetime.combine(earliest.date(), ENDS_AT)
    return same_day if same_day >= earliest else same_day + DAY


def _nearest_end(start: datetime, wanted: timedelta) -> datetime:
    """The 11:30 after the start that is nearest to the requested duration; of two, the later."""
    later = _ends_after(start + wanted)
    earlier = later - DAY
    is_nearer = start + wanted - earlier < later - (start + wanted)
    return earlier if is_nearer and earlier > start else later
