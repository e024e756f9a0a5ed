"""The errors of a deployment or teardown, with messages for the user."""

from __future__ import annotations

from collections.abc import Sequence

FAILED, WRONG_INPUT, CANNOT_START, REFUSED, INTERRUPTED = 1, 2, 3, 4, 130


class EngineError(Exception):
    """A failed operation on a stack: a sentence, lines of hints, and the command's exit code."""

    def __init__(self, sentence: str, hints: Sequence[str] = (), code: int = FAILED) -> None:
        super().__init__("\n".join([sentence, *(f"  {hint}" for hint in hints)]))
        self.sentence, self.hints, self.code = sentence, tuple(hints), code


class UnknownEnvironment(EngineError):
    """The project declares no environment of this name."""


class Interrupted(EngineError):
    """Ctrl-C: the engine has stopped and saved its state."""

    def __init__(self, sentence: str, hints: Sequence[str] = ()) -> None:
        super().__init__(sentence, hints, INTERRUPTED)
