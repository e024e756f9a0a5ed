"""What all records of a spec have in common: strict types, no unknown fields, no change after parsing."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecRecord(BaseModel):
    """A part of a spec. Descriptions of fields are read by users: in their editor, and where a field is missing."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=True,
    )
