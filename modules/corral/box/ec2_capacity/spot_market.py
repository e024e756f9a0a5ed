"""The synthetic spot market: deterministic prices and placement scores. Pure.

AWS's algorithm is not public. Here a price stays within the catalog's range for its region and changes twice a day in
each zone; a score falls with the number of instances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256

STEP = timedelta(hours=12)  # between two changes of a price
LOWEST = 1  # of scores, which go up to 10. Source: EC2 user guide, "Spot placement score"
FEW_TYPES, LOW = 3, 3  # with fewer types "the returned placement score will always be low"
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_SWING = 0.1  # of the range, around the zone's own position


def price_at(instance_type: str, zone_id: str, range_usd: tuple[float, float], change: datetime) -> float:
    """The price in USD per hour since this change, within the range of lowest and highest price."""
    position = _chance(instance_type, zone_id) + _SWING * (2 * _chance(instance_type, zone_id, change.isoformat()) - 1)
    low, high = range_usd
    return low + (high - low) * min(1.0, max(0.0, position))


def price_changes(instance_type: str, zone_id: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """The times of price changes, newest first, from `end` back to the last one before `start`."""
    offset = timedelta(minutes=int(720 * _chance(instance_type, zone_id, "minute")))
    count = (end - _EPOCH - offset) // STEP
    while True:
        change = _EPOCH + offset + count * STEP
        yield change
        if change <= start:
            return
        count -= 1


def score(instance_type: str, zone_id: str, instances: int) -> int:
    """The placement score, 1 to 10, of this many instances in the zone; each doubling costs one point."""
    best = 7 + int(4 * _chance(instance_type, zone_id, "score"))
    return max(LOWEST, best - math.floor(math.log2(max(1, instances))))


def score_of_types(scores: list[int]) -> int:
    """The score of a request that accepts any of several types; the lowest if there are none."""
    best = max(scores, default=LOWEST)
    return min(best, LOW) if len(scores) < FEW_TYPES else best


def _chance(*words: str) -> float:
    """A pseudo-random number in [0, 1) that depends only on the words."""
    return int.from_bytes(sha256("/".join(words).encode()).digest()[:6]) / 2**48
