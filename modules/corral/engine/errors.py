"""What can go wrong while stacks go up or down, as sentences for a person."""

from __future__ import annotations

from collections.abc import Sequence

FAILED, WRONG_INPUT, CANNOT_START, REFUSED, INTERRUPTED = 1, 2, 3, 4, 130


class EngineError(Exception):
    """An up or a down that ends early: a sentence, further lines that help, and the command's exit code."""

    def __init__(self, sentence: str, hints: Sequence[str] = (), code: int = FAILED) -> None:
        super().__init__("\n".join([sentence, *(f"  {hint}" for hint in hints)]))
        self.sentence, self.hints, self.code = sentence, tuple(hints), code


class UnknownEnvironment(EngineError):
    """The project declares no environment of this name."""


class Interrupted(EngineError):
    """Ctrl-C: the engine has stopped, and its state is saved as far as it got."""

    def __init__(self, sentence: str, hints: Sequence[str] = ()) -> None:
        super().__init__(sentence, hints, INTERRUPTED)


class StaleLock(EngineError):
    """The backend's lock of a stack belongs to a process that is gone."""
