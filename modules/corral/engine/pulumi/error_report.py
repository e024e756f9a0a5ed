"""Turns a failed call of the engine into one EngineError for the user."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from corral.engine.backend import file_backend
from corral.engine.backend.backend_space import full_disk_text
from corral.engine.engine_errors import EngineError, Interrupted
from corral.engine.progress.diagnostics import (
    CONTINUES,
    DAMAGED,
    FULL_DISK,
    clean_text,
    error_lines,
    find_denied_calls,
    find_known_error,
    resource_errors,
    without_cancellations,
)
from corral.engine.progress.engine_events import Diagnostic
from corral.engine.pulumi.pulumi_cli import CliResult
from corral.engine.pulumi.supervisor import SIGNALLED

CONTINUE = "run the same command again to continue"
MAX_LINES = 60  # of errors; one that affects every resource repeats hundreds of times
HIGHEST_SIGNAL = 64  # of Linux; the CLI's own exit codes go up to 255
IN_BUCKET = "a bucket that `corral bootstrap` created has older versions of .pulumi/stacks/PROJECT/STACK.json: {}"
LAST_LINES = 5  # of the engine's output, if it reported no diagnostics


def raise_engine_error(title: str, result: CliResult, diagnostics: Sequence[Diagnostic] = ()) -> NoReturn:
    """Raises the error of a failed call: a known error first, otherwise the diagnostics by resource."""
    errors = [one for one in diagnostics if one.severity == "error"]
    found = resource_errors(errors)
    if result.interrupts:
        raise Interrupted(f"{title}: interrupted", (*error_lines(without_cancellations(found))[:MAX_LINES], CONTINUE))
    lines = error_lines(found)
    if 0 < result.code - SIGNALLED <= HIGHEST_SIGNAL:
        raise EngineError(f"{title}: the engine was killed (signal {result.code - SIGNALLED})", (CONTINUE,))
    texts = [one.text for one in errors] or [result.stderr]
    if known := find_known_error(texts):
        space = [full_disk_text("\n".join(texts))] if known is FULL_DISK else []
        raise EngineError(f"{title}: {known.sentence}", (*lines[:3], *space, *known.hints), known.code)
    if denied := find_denied_calls(texts):
        raise EngineError(f"{title}: {denied.sentence}", (*lines[:MAX_LINES], *denied.hints), denied.code)
    lines = lines or _last_lines(result.stderr)
    if len(lines) == 1:
        raise EngineError(f"{title}: {lines[0]}")
    more = (f"and {len(lines) - MAX_LINES} more lines",) if len(lines) > MAX_LINES else ()
    raise EngineError(f"{title}: not all operations succeeded", (*lines[:MAX_LINES], *more))


@contextmanager
def report_damaged_state(backend_url: str) -> Iterator[None]:
    """A block that adds to an error about a damaged state the damaged file and its intact backup."""
    try:
        yield
    except EngineError as error:
        if not error.sentence.endswith(DAMAGED.sentence):
            raise
        found = damage_lines(backend_url) or (IN_BUCKET.format(backend_url),)
        raise EngineError(error.sentence, (*error.hints, *found, CONTINUES), error.code) from None


def damage_lines(backend_url: str) -> tuple[str, ...]:
    """Lines about damaged states in a file backend and their intact backups."""
    root = file_backend.directory(backend_url)
    return tuple(_damage_lines(root)) if root else ()


def _damage_lines(root: Path) -> Iterator[str]:
    for file in sorted((root / "stacks").glob("*/*.json")):
        if _is_whole(file):
            continue
        yield f"damaged: {file}"
        copies = sorted((root / "backups" / file.parent.name / file.stem).glob("*.json"), reverse=True)
        backup = file.with_name(f"{file.name}.bak")
        if whole := next((copy for copy in (backup, *copies) if _is_whole(copy)), None):
            yield f"to restore the state before the last operation: cp {whole} {file}"
        else:
            yield f"no intact backup: neither {backup} nor a file in {root / 'backups'}"


def _is_whole(file: Path) -> bool:
    """True if the file has the outer structure of a state that Pulumi can load."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and isinstance(content.get("checkpoint"), dict)


def _last_lines(printed: str) -> list[str]:
    """The text after `error:`, otherwise the last lines."""
    _, mark, after = printed.rpartition("error: ")
    lines = clean_text(after if mark else printed).splitlines()
    return (lines[:LAST_LINES] if mark else lines[-LAST_LINES:]) or ["the engine exited without an error message"]
