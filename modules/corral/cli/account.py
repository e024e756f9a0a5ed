"""Which account a command means: the one that the shell's AWS settings name, or the box of this machine."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from corral.box import control
from corral.box.directory import default_directory
from corral.box.process import BoxError
from corral.cli.failure import ExitCode, Failure


def mean_account(*, in_box: bool, box_directory: Path | None) -> None:
    """Points this process, and those that it starts, at the box where the box is meant; else changes nothing.

    Raises Failure where the box is meant and does not run.
    """
    if not in_box and box_directory is None:
        return
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        os.environ.pop(name, None)  # a real account's settings must not travel to the box
    try:
        os.environ.update(control.environment(box_state(box_directory)))
    except BoxError as error:
        raise Failure(str(error), ExitCode.CANNOT_START) from None


def account_option(*, in_box: bool, box_directory: Path | None) -> str:
    """What a command line that is told to somebody ends with, so that it means the account that this one means.

    It begins with a blank; empty where the shell's settings say it, those of `corral box env` too.
    """
    if box_directory is not None:
        return f" --box-dir {shlex.quote(str(box_directory))}"
    return " --box" if in_box else ""


def box_state(chosen: Path | None) -> Path:
    """The state directory of the box that is meant."""
    return chosen.absolute() if chosen is not None else default_directory()
