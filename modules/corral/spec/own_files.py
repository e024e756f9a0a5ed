"""Files that are no stack's, such as run files: what is in them before it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.spec.errors import SpecError, SpecErrors
from corral.spec.problems import shown
from corral.spec.yaml_parts import UNREADABLE, Torn
from corral.spec.yaml_text import read_document


def read_own_file(path: Path, kind: str, fields: str) -> tuple[Mapping[str, Any], tuple[SpecError, ...]]:
    """The fields of this YAML file, and every place in it that is no YAML. `kind`: `a run file`; `fields`: some of it.

    Raises SpecErrors where it cannot be read, or has no fields at all.
    """
    where = str(path)
    try:
        document = read_document(path.read_bytes())
    except OSError as error:
        raise _errors(where, f"cannot be read: {error.strerror} - name {kind}") from None
    torn = tuple(SpecError(file=where, path="", message=str(mistake)) for mistake in document.mistakes)
    value = document.value
    if isinstance(value, dict):
        return value, torn
    if value is UNREADABLE:
        return Torn(), torn
    found = "is empty" if value is None else f"expected fields, found {shown(value)}"
    raise _errors(where, f"{found} - {kind} has fields such as {fields}", torn)


def _errors(where: str, message: str, before: tuple[SpecError, ...] = ()) -> SpecErrors:
    return SpecErrors((*before, SpecError(file=where, path="", message=message)))
