"""From a failed call of the engine to the one error that a person sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from corral.engine.diagnostics import cause, cleaned, complaint_lines, complaints
from corral.engine.errors import EngineError, Interrupted
from corral.engine.progress import Said

CONTINUE = "run the same command again: it continues where this one stopped"
MOST_LINES = 60  # of complaints; a fault that hits every resource says the same hundreds of times


def raise_complaint(
    title: str, printed: Sequence[str], said: Sequence[Said] = (), *, interrupted: bool = False
) -> NoReturn:
    """Raises the error for a call that failed: its known cause first, then what the engine said, by resource."""
    errors = [one for one in said if one.severity == "error"]
    lines = complaint_lines(complaints(errors))
    if interrupted:
        raise Interrupted(f"{title}: interrupted", (*lines[:MOST_LINES], CONTINUE))
    if known := cause([one.text for one in errors] or printed):
        raise EngineError(f"{title}: {known.sentence}", (*lines[:3], *known.hints), known.code)
    if not lines:
        lines = [line for text in printed for line in cleaned(text).splitlines()][-5:]
    sentence = f"{title}: {lines[0]}" if len(lines) == 1 else f"{title}: the engine could not do everything"
    shown = () if len(lines) == 1 else tuple(lines[:MOST_LINES])
    more = (f"and {len(lines) - MOST_LINES} more lines",) if len(lines) > MOST_LINES else ()
    raise EngineError(sentence, (*shown, *more))
