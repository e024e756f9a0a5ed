"""Moments as people write them: so long from now (4h, +1h30m), or a date and time, UTC where no zone is named."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from corral.spec.durations import parse_duration

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?")


def parse_moment(text: str, now: datetime) -> datetime:
    """The moment that this text means, in UTC. A date alone is its first minute. Raises ValueError.

    `now`: what a duration is counted from, in UTC.
    """
    if _DATE.fullmatch(text):
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    return now + parse_duration(text.removeprefix("+"))
