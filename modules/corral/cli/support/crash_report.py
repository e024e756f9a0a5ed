"""Reports an internal error: writes the traceback to a file and gives the user one sentence."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path

from corral import __version__
from corral.box.state.ownership import ownership_problem

# Fails if the name exists, also as a link: others may foresee it.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_crash_report(error: BaseException) -> str:
    """Writes the traceback of an unexpected error to a file. Returns the sentence that names the file."""
    kind = type(error).__name__
    head = f"internal error: {kind}: {' '.join(str(error).split()) or 'no further text'}"
    file = _write(error)
    if file is None:
        return f"{head} - the details could not be saved; set CORRAL_STATE_DIR to a directory with free space"
    return f"{head} - please report it with {file}"


def _write(error: BaseException) -> Path | None:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    text = f"corral {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n{_trace(error)}"
    for private_directory in (_own_state_directory, _new_directory):
        try:
            path = private_directory() / f"crash-{stamp}-{os.getpid()}.txt"
            with os.fdopen(os.open(path, _NEW, 0o600), "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return path
    return None


def _own_state_directory() -> Path:
    """The user's state directory. Raises OSError also if others may write it."""
    directory = _state_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if problem := ownership_problem(directory, directory.stat()):
        raise PermissionError(problem)
    return directory


def _new_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="corral-crash-"))


def _state_directory() -> Path:
    if chosen := os.environ.get("CORRAL_STATE_DIR"):
        return Path(chosen)
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / "corral"
    return Path(os.environ.get("HOME", tempfile.gettempdir())) / ".local/state/corral"


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
