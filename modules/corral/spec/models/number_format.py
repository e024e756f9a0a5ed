"""Large-number fields: 15T, 300B, 4M, 8192."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

_PATTERN = r"^\d{1,18}(\.\d{1,9})?[KMBT]?$"
_TIMES = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_MAX = 10**18  # tokens; the largest runs take 10^13 to 10^14


def parse_amount(value: Any) -> int:
    """Return the positive whole number in this text or number. Raises PydanticCustomError for anything else."""
    amount = _amount(value)
    if amount is None or amount != amount.to_integral_value() or not 1 <= amount <= _MAX:
        raise PydanticCustomError("amount", "not an amount")
    return int(amount)


def _amount(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if not isinstance(value, str):
        return Decimal(value) if abs(value) <= _MAX else None
    if not value.isascii() or not re.fullmatch(_PATTERN, value):
        return None
    digits = value.rstrip("KMBT")
    return Decimal(digits) * _TIMES[value[len(digits) :]]


Amount = Annotated[
    int,
    PlainValidator(parse_amount),
    WithJsonSchema({"type": ["string", "integer"], "pattern": _PATTERN, "minimum": 1, "examples": ["15T", "300B"]}),
]
