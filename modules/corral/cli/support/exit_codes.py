"""Turns every exception of a command into one message on stderr and a documented exit code.

Exceptions of other packages are recognised by name, so that those packages need not be imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

from corral.cli.support import system_error_messages
from corral.model.printable import printable_lines


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    DONE = 0
    FAILED = 1
    WRONG_INPUT = 2
    CANNOT_START = 3
    REFUSED = 4
    INTERRUPTED = 130


class Failure(Exception):
    """An expected failure of a command; its text is the message for the user."""

    def __init__(self, sentence: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(sentence)
        self.code = code


# Exceptions whose text is the message for the user, with the exit code for those without a `code` attribute.
EXIT_CODES = {
    "corral.spec.spec_errors.SpecErrors": ExitCode.WRONG_INPUT,
    "corral.box.daemon.daemon_process.BoxError": ExitCode.FAILED,
    "corral.engine.engine_errors.EngineError": ExitCode.FAILED,
    "corral.stacks.admission.AdmissionError": ExitCode.REFUSED,
    "corral.catalog.loader.suggestions.UnknownName": ExitCode.WRONG_INPUT,
    "corral.render.output_dir.ForeignFiles": ExitCode.REFUSED,
    "corral.render.output_dir.UnsafePath": ExitCode.WRONG_INPUT,
    "corral.render.nearest_release.ReleaseError": ExitCode.WRONG_INPUT,
    "corral.inventory.live_stacks.UnreadableBackend": ExitCode.WRONG_INPUT,
}
# Of these, every line starts with the name of a file.
SELF_LOCATED = {"corral.spec.spec_errors.SpecErrors"}
# Exceptions that commands catch; their text is a sentence, too.
_SENTENCES = {"corral.cli.support.exit_codes.Failure", "corral.cli.support.remote.HeadUnreachable"}
PREFIX = "corral: "


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """A block that adds this path to system errors that name no file, as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def exit_code_of(command: Callable[[], int]) -> int:
    """Runs the command. Returns its exit code, after printing its error and flushing all output."""
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
            print_error("interrupted")
            return ExitCode.INTERRUPTED
        case BrokenPipeError():
            return ExitCode.FAILED  # the reader has gone
        case Failure():
            print_error(str(error))
            return error.code
    if callable(show := getattr(error, "show", None)):  # of typer: a wrong option or a missing argument
        show()
        return int(getattr(error, "exit_code", ExitCode.WRONG_INPUT))
    return _end_by_type(error)


def sentence_of(error: BaseException) -> str | None:
    """The message for the user of an exception that was foreseen; None for others."""
    names = _names(error)
    if any(name in EXIT_CODES or name in _SENTENCES for name in names):
        return str(error)
    return system_error_messages.message_for(error, names)


def _names(error: BaseException) -> list[str]:
    return [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]


def _end_by_type(error: BaseException) -> int:
    names = _names(error)
    for name in names:
        if name in EXIT_CODES:
            print_error(str(error), prefix="" if name in SELF_LOCATED else PREFIX)
            return int(getattr(error, "code", EXIT_CODES[name]))
    sentence = system_error_messages.message_for(error, names)
    print_error(sentence or _crash(error))
    of_account = sentence and any(name.startswith("botocore.") for name in names)
    return ExitCode.CANNOT_START if of_account else ExitCode.FAILED


def print_error(sentence: str, prefix: str = PREFIX) -> None:
    """Prints the sentence to stderr with the prefix; does nothing if stderr is closed.

    As printable text: it may quote a file of somebody else's project, its name, or what AWS returned.
    """
    try:
        print(f"{prefix}{printable_lines(sentence)}", file=sys.stderr)  # noqa: T201
    except OSError:
        return


def _close_quietly() -> None:
    """Flushes all output, since a failure to flush at interpreter exit would print a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _crash(error: BaseException) -> str:
    from corral.cli.support.crash_report import (
        write_crash_report,  # an exception nobody foresaw is rare; its tools need not be loaded otherwise
    )

    return write_crash_report(error)
