"""The base class of all spec records: strict types, no unknown fields, immutable after parsing."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecRecord(BaseModel):
    """A part of a spec. Users read its field descriptions in their editor and in errors about missing fields."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
    )
