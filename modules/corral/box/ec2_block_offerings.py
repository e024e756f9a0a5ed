"""Which Capacity Blocks are on offer: a function of what is asked and of the clock alone. AWS has others, and fewer.

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
HOURS = {24 * days for days in (*range(1, 15), *range(21, 183, 7))}  # what may be asked for
FARTHEST = timedelta(weeks=8)  # the latest start, from now


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """A block that can be bought. Times are UTC. `number` tells blocks apart that are otherwise the same."""

    instance_type: str
    zone: str
    count: int
    start: datetime
    end: datetime
    number: int = 1

    @property
    def id(self) -> str:
        """The same for the same block."""
        words = f"{self.instance_type}/{self.zone}/{self.count}/{self.start}/{self.end}/{self.number}"
        return "cb-" + sha256(words.encode()).hexdigest()[:17]

    def described(self) -> dict[str, Any]:
        """The offering as the API shows it; nothing costs anything here."""
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
    """The blocks that can be had, the earliest first, and of each time one in each zone.

    One that starts at once ends at the 11:30 that is nearest to the hours that were asked for.
    """
    wanted = timedelta(hours=hours)
    starts = [now.replace(second=0, microsecond=0)] if earliest <= now else []
    first = _ends_after(max(now, earliest))
    starts += [first + DAY * day for day in range(FARTHEST.days + 1) if first + DAY * day <= now + FARTHEST]
    for start in starts:
        for zone in zones:
            yield Offering(
                instance_type=instance_type, zone=zone, count=count, start=start, end=_nearest_end(start, wanted)
            )


def _ends_after(earliest: datetime) -> datetime:
    """The first 11:30 at or after a moment."""
    same_day = datetime.combine(earliest.date(), ENDS_AT)
    return same_day if same_day >= earliest else same_day + DAY


def _nearest_end(start: datetime, wanted: timedelta) -> datetime:
    """The 11:30 after the start that makes the length nearest to what was asked for; of two, the later."""
    later = _ends_after(start + wanted)
    earlier = later - DAY
    is_nearer = start + wanted - earlier < later - (start + wanted)
    return earlier if is_nearer and earlier > start else later
