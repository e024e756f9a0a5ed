"""YAML files other than stack files, such as run files: read their fields before validation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.spec.pydantic_messages import format_value
from corral.spec.spec_errors import SpecError, SpecErrors
from corral.spec.yaml.yaml_reader import read_document
from corral.spec.yaml.yaml_recovery import UNREADABLE, PartialMapping


def read_fields(path: Path, kind: str, fields: str) -> tuple[Mapping[str, Any], tuple[SpecError, ...]]:
    """Return the fields of this YAML file, and its YAML mistakes. `kind`: `a run file`; `fields`: examples for errors.

    Raises SpecErrors if the file cannot be read, or has no fields.
    """
    where = str(path)
    try:
        document = read_document(path.read_bytes())
    except OSError as error:
        raise _errors(where, f"cannot be read: {error.strerror}", f"use {kind}") from None
    torn = tuple(mistake.in_file(where) for mistake in document.mistakes)
    value = document.value
    if isinstance(value, dict):
        return value, torn
    if value is UNREADABLE:
        return PartialMapping(), torn
    found = "is empty" if value is None else f"expected fields, found {format_value(value)}"
    raise _errors(where, found, f"{kind} has fields such as {fields}", torn)


def _errors(where: str, message: str, fix: str, before: tuple[SpecError, ...] = ()) -> SpecErrors:
    return SpecErrors((*before, SpecError(file=where, path="", message=message, fix=fix)))
