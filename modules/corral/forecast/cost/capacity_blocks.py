"""The length of the Capacity Blocks for a run: AWS sells fixed lengths.

Source: EC2 User Guide, "Find and purchase Capacity Blocks": whole days up to 14, whole weeks up to 182 days.
"""

from __future__ import annotations

import math

LONGEST_DAYS = 182
_BY_THE_DAY, _WEEK = 14, 7


def block_days(days: float) -> int:
    """Days of the shortest block for so many days; of several consecutive blocks if one is too short."""
    whole, left = divmod(math.ceil(days), LONGEST_DAYS)
    rest = left if left <= _BY_THE_DAY else -(-left // _WEEK) * _WEEK
    return max(1, whole * LONGEST_DAYS + rest)
