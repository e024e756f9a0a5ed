"""Points in time: a duration from now (4h, +1h30m), or a date and time, in UTC unless a time zone is given."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from corral.spec.models.durations import parse_duration

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?")


def parse_date(text: str) -> datetime:
    """Return the time of a date with or without a time, in UTC. Raises ValueError for other text."""
    if not _DATE.fullmatch(text):
        raise ValueError(f"{text!r} is not a date")
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def parse_datetime(text: str, now: datetime) -> datetime:
    """Return the time in this text, in UTC. A date alone means midnight. Durations count from `now`, in UTC.

    Raises ValueError.
    """
    if _DATE.fullmatch(text):
        return parse_date(text)
    return now + parse_duration(text.removeprefix("+"))
