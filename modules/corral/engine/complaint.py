"""From a failed call of the engine to the one error that a person sees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from corral.engine import file_backend
from corral.engine.diagnostics import CONTINUES, DAMAGED, FULL_DISK, cause, cleaned, complaint_lines, complaints, faults
from corral.engine.disk import where_full
from corral.engine.errors import EngineError, Interrupted
from corral.engine.process import Answer
from corral.engine.progress import Said
from corral.engine.supervisor import SIGNALLED

CONTINUE = "run the same command again: it continues where this one stopped"
MOST_LINES = 60  # of complaints; a fault that hits every resource says the same hundreds of times
HIGHEST_SIGNAL = 64  # of Linux; the CLI's own exit codes go up to 255
IN_BUCKET = "a bucket that `corral bootstrap` made keeps its older versions: .pulumi/stacks/PROJECT/STACK.json in {}"
LAST_LINES = 5  # of what the engine printed, where it said nothing in order


def raise_complaint(title: str, answer: Answer, said: Sequence[Said] = ()) -> NoReturn:
    """Raises the error for a call that failed: its known cause first, then what the engine said, by resource."""
    errors = [one for one in said if one.severity == "error"]
    found = complaints(errors)
    if answer.interrupts:
        raise Interrupted(f"{title}: interrupted", (*complaint_lines(faults(found))[:MOST_LINES], CONTINUE))
    lines = complaint_lines(found)
    if 0 < answer.code - SIGNALLED <= HIGHEST_SIGNAL:
        raise EngineError(f"{title}: the engine was killed (signal {answer.code - SIGNALLED})", (CONTINUE,))
    texts = [one.text for one in errors] or [answer.stderr]
    if known := cause(texts):
        room = [where_full("\n".join(texts))] if known is FULL_DISK else []
        raise EngineError(f"{title}: {known.sentence}", (*lines[:3], *room, *known.hints), known.code)
    lines = lines or _last_words(answer.stderr)
    if len(lines) == 1:
        raise EngineError(f"{title}: {lines[0]}")
    more = (f"and {len(lines) - MOST_LINES} more lines",) if len(lines) > MOST_LINES else ()
    raise EngineError(f"{title}: the engine could not do everything", (*lines[:MOST_LINES], *more))


@contextmanager
def damage_named(backend_url: str) -> Iterator[None]:
    """A block in which an error over a damaged state names the file in this backend, and what is whole beside it."""
    try:
        yield
    except EngineError as error:
        if not error.sentence.endswith(DAMAGED.sentence):
            raise
        found = damage(backend_url) or (IN_BUCKET.format(backend_url),)
        raise EngineError(error.sentence, (*error.hints, *found, CONTINUES), error.code) from None


def damage(backend_url: str) -> tuple[str, ...]:
    """What is damaged in this backend of files, and what there is instead: a line for each, for a person."""
    root = file_backend.directory(backend_url)
    return tuple(_damage(root)) if root else ()


def _damage(root: Path) -> Iterator[str]:
    for file in sorted((root / "stacks").glob("*/*.json")):
        if _is_whole(file):
            continue
        yield f"damaged: {file}"
        copies = sorted((root / "backups" / file.parent.name / file.stem).glob("*.json"), reverse=True)
        beside = file.with_name(f"{file.name}.bak")
        if whole := next((copy for copy in (beside, *copies) if _is_whole(copy)), None):
            yield f"whole, but for the last thing that was done: cp {whole} {file}"
        else:
            yield f"neither {beside} nor a file in {root / 'backups'} is whole"


def _is_whole(file: Path) -> bool:
    """True for a state that Pulumi can load, as far as its outer shape tells."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and isinstance(content.get("checkpoint"), dict)


def _last_words(printed: str) -> list[str]:
    """What stands behind `error:`, else the last lines."""
    _, mark, after = printed.rpartition("error: ")
    lines = cleaned(after if mark else printed).splitlines()
    return (lines[:LAST_LINES] if mark else lines[-LAST_LINES:]) or ["the engine ended without a word"]
