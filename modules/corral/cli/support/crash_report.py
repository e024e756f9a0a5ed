"""Reports an internal error: writes the traceback to a file and gives the user one sentence."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path

from corral import __version__


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
    for directory in (_state_directory(), Path(tempfile.gettempdir())):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = directory / f"crash-{stamp}-{os.getpid()}.txt"
            file.write_text(text)
            return file
        except (OSError, RuntimeError):
            continue
    return None


def _state_directory() -> Path:
    if chosen := os.environ.get("CORRAL_STATE_DIR"):
        return Path(chosen)
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / "corral"
    return Path(os.environ.get("HOME", tempfile.gettempdir())) / ".local/state/corral"


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
