"""What a command says and returns when something goes wrong: one sentence on stderr, and a documented exit code.

Exceptions of other rooms are known by name, so that none of those rooms is imported for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from corral.cli import sentences


class ExitCode(IntEnum):
    """How a command ends."""

    DONE = 0
    FAILED = 1
    WRONG_INPUT = 2
    CANNOT_START = 3
    REFUSED = 4
    INTERRUPTED = 130


class Failure(Exception):
    """An end that a command foresees; its text is for the user as it is."""

    def __init__(self, sentence: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


# Exceptions whose text is for the user as it is, by qualified name; the code counts where they have none themselves.
SPOKEN = {
    "corral.spec.errors.SpecErrors": ExitCode.WRONG_INPUT,
    "corral.box.process.BoxError": ExitCode.FAILED,
    "corral.engine.errors.EngineError": ExitCode.FAILED,
    "corral.catalog.names.UnknownName": ExitCode.WRONG_INPUT,
    "corral.catalog.problems.CatalogueErrors": ExitCode.WRONG_INPUT,
    "corral.render.directory.ForeignFiles": ExitCode.REFUSED,
    "corral.render.releases.ReleaseError": ExitCode.WRONG_INPUT,
    "corral.inventory.states.UnreadableBackend": ExitCode.WRONG_INPUT,
}
# Those of which each line begins with a file of the user's.
LISTS = {"corral.spec.errors.SpecErrors", "corral.catalog.problems.CatalogueErrors"}
MARK = "corral: "


@contextmanager
def at(place: Path) -> Iterator[None]:
    """A block in which an error of the system that names no file is about this place, as that of a full disk is."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(place)
        raise


def exit_code_of(command: Callable[[], int]) -> int:
    """The exit code of the command; whatever it raises has been told on stderr, and all output is written out."""
    try:
        code = command()
        sys.stdout.flush()
    except BaseException as error:
        code = _end(error)
    _close_quietly()
    return code


def _end(error: BaseException) -> int:
    match error:
        case SystemExit():
            return error.code if isinstance(error.code, int) else ExitCode.DONE
        case KeyboardInterrupt():
            tell("interrupted")
            return ExitCode.INTERRUPTED
        case BrokenPipeError():
            return ExitCode.FAILED  # the reader went away; there is nobody to tell
        case Failure():
            tell(str(error))
            return error.code
    if callable(show := getattr(error, "show", None)):  # typer's own: a wrong option or a missing argument
        show()
        return int(getattr(error, "exit_code", ExitCode.WRONG_INPUT))
    return _end_of_other_room(error)


def _end_of_other_room(error: BaseException) -> int:
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    for name in names:
        if name in SPOKEN:
            tell(str(error), mark="" if name in LISTS else MARK)
            return int(getattr(error, "code", SPOKEN[name]))
    sentence = sentences.of(error, names)
    tell(sentence or _crash(error))
    of_account = sentence and any(name.startswith("botocore.") for name in names)
    return ExitCode.CANNOT_START if of_account else ExitCode.FAILED


def tell(sentence: str, mark: str = MARK) -> None:
    """Writes the sentence to stderr, marked as corral's; lost where stderr is closed."""
    try:
        print(f"{mark}{sentence}", file=sys.stderr)  # noqa: T201
    except OSError:
        return


def _close_quietly() -> None:
    """Leaves nothing for the interpreter to flush at its exit: a failure there would print a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _crash(error: BaseException) -> str:
    from corral.cli.crash import report  # an exception nobody foresaw is rare; its tools need not be loaded otherwise

    return report(error)
