"""The spot market of the box: prices that move and scores that differ, but are the same whenever they are asked. Pure.

How AWS makes them is not public. Here a price stays within what the catalogue has for its region, and changes twice a
day in each zone; a score falls with the number of instances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256

STEP = timedelta(hours=12)  # between two changes of a price
HIGHEST, LOWEST = 10, 1  # scores. Source: EC2 user guide, "Spot placement score"
FEW_TYPES, LOW = 3, 3  # with fewer types "the returned placement score will always be low": so the box has it at most
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_SWING = 0.1  # of the range, to either side of the zone's own place in it


def price_at(instance_type: str, zone_id: str, range_usd: tuple[float, float], change: datetime) -> float:
    """USD an hour since this change, within the range, which is the lowest and the highest price."""
    place = _chance(instance_type, zone_id) + _SWING * (2 * _chance(instance_type, zone_id, change.isoformat()) - 1)
    low, high = range_usd
    return low + (high - low) * min(1.0, max(0.0, place))


def changes(instance_type: str, zone_id: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """When the price changed: the newest first, from `end` back to the last change before `start`."""
    offset = timedelta(minutes=int(720 * _chance(instance_type, zone_id, "minute")))
    count = (end - _EPOCH - offset) // STEP
    while True:
        change = _EPOCH + offset + count * STEP
        yield change
        if change <= start:
            return
        count -= 1


def score(instance_type: str, zone_id: str, instances: int) -> int:
    """How likely so many spot instances of the type are in the zone, of 1 to 10; each doubling is one less."""
    best = 7 + int(4 * _chance(instance_type, zone_id, "score"))
    return max(LOWEST, best - math.floor(math.log2(max(1, instances))))


def of_types(scores: list[int]) -> int:
    """The score of a request for several types, of which any will do; None of them: the lowest."""
    best = max(scores, default=LOWEST)
    return min(best, LOW) if len(scores) < FEW_TYPES else best


def _chance(*words: str) -> float:
    """A number from 0 up to 1 that depends on the words alone."""
    return int.from_bytes(sha256("/".join(words).encode()).digest()[:6]) / 2**48
