"""Duration fields: 10m, 12h, 1h30m, 2d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

DURATION_PATTERN = r"^(?=.)(\d{1,6}d)?(\d{1,6}h)?(\d{1,6}m)?(\d{1,6}s)?$"
_UNITS = ("d", "h", "m", "s")
_SECONDS = (86400, 3600, 60, 1)


def parse_duration(value: Any) -> timedelta:
    """Return the duration in this text. Raises PydanticCustomError for anything else."""
    match = re.fullmatch(DURATION_PATTERN, value) if isinstance(value, str) else None
    if match is None:
        raise PydanticCustomError("duration", "not a duration")
    amounts = (int(group[:-1]) if group else 0 for group in match.groups())
    return timedelta(seconds=sum(amount * unit for amount, unit in zip(amounts, _SECONDS, strict=True)))


def format_duration(duration: timedelta) -> str:
    """Format this duration, to the second, as briefly as possible: `1h30m`."""
    left, text = int(duration.total_seconds()), ""
    for unit, seconds in zip(_UNITS, _SECONDS, strict=True):
        amount, left = divmod(left, seconds)
        text += f"{amount}{unit}" if amount else ""
    return text or "0s"


Duration = Annotated[
    timedelta,
    PlainValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["10m", "12h", "1h30m", "2d"]}),
]
