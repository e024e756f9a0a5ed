"""Shows the change of a resource as lines: property by property, and texts as a unified diff. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from corral.engine.progress.engine_events import PropertyDiff

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # Pulumi's placeholder for a string that is known after the creation
WIDTH = 120  # characters shown of a value; ids and ARNs fit
LINE_WIDTH = 400  # of a line of a text; longer ones are written by programs, such as the signed manifest
CONTEXT = 1  # unchanged lines around a changed one
ABSENT = object()
_STEP = re.compile(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[\]]+)')


def diff_lines(diff: PropertyDiff) -> list[str]:
    """A line for each changed property; for texts, followed by the changed lines."""
    return [line for path, kind in diff.kinds.items() for line in _property(path, kind, diff)]


def _property(path: str, kind: str, differences: PropertyDiff) -> Iterator[str]:
    if path.startswith("tagsAll"):  # own tags merged with the provider's: shown once
        return
    old, new = find(differences.old, path), find(differences.new, path)
    if old is ABSENT and new is ABSENT and kind == "update" and find(differences.outputs, path) is not ABSENT:
        return  # AWS sets it anew because of another change, such as the version of an object
    why = "  (forces replacement)" if kind.endswith("replace") else ""
    if new is ABSENT and old is ABSENT:
        yield f"{path}: differs from the program{why}"
    elif isinstance(old, str) and isinstance(new, str) and (texts := _texts(old, new)):
        yield f"{path}:{why}"
        yield from (f"    {line}" for line in _unified(*texts))
    else:
        yield f"{path}: {_shown(old)} -> {_shown(new)}{why}"


def find(properties: Mapping[str, Any], path: str) -> Any:
    """The value at a property path such as `rules[0].name` or `tags["a.b"]`; ABSENT if it does not exist."""
    here: Any = properties
    for quoted, index, name in _STEP.findall(path):
        if index and isinstance(here, list) and int(index) < len(here):
            here = here[int(index)]
        elif isinstance(here, Mapping) and (quoted or name) in here:
            here = here[quoted or name]
        else:
            return ABSENT
    return here


def _texts(old: str, new: str) -> tuple[list[str], list[str]] | None:
    """Both as lines, if they are multi-line texts or JSON documents; otherwise None."""
    if UNKNOWN in (old, new):
        return None
    if (documents := (_document(old), _document(new))) != (None, None) and None not in documents:
        return str(documents[0]).splitlines(), str(documents[1]).splitlines()
    if "\n" in old or "\n" in new:
        return old.splitlines(), new.splitlines()
    return None


def _document(text: str) -> str | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.dumps(json.loads(text), indent=1, sort_keys=True)
    except ValueError:
        return None


def _unified(old: list[str], new: list[str]) -> Iterator[str]:
    lines = difflib.unified_diff(old, new, n=CONTEXT, lineterm="")
    return (_cut(line, LINE_WIDTH) for line in lines if not line.startswith(("---", "+++")))


def _shown(value: Any) -> str:
    if value is ABSENT:
        return "-"
    if value == UNKNOWN:
        return "(known afterwards)"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    text = text.replace(UNKNOWN, "(known afterwards)").replace("\n", "\\n")
    return _cut(text, WIDTH)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width]}... ({len(text)} characters)"
