"""Who may have written what a box reads.

A state directory holds programs in effect: the saved cloud is a pickle, and Pulumi runs the copies of the stacks.
"""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path


def ownership_problem(path: Path, status: os.stat_result) -> str | None:
    """Why others may have written this file or directory, with the remedy, as a sentence; None if only this user may.

    It belongs to the effective user, root or not, and neither its group nor everybody may write it. sshd's StrictModes
    also checks the directories above, by path; here an exchanged directory belongs to whoever exchanged it.
    """
    user = os.geteuid()
    if status.st_uid != user:
        return (
            f"{path} belongs to {_name(status.st_uid)}, and a box of {_name(user)} would run what it holds - choose"
            " another directory with --dir"
        )
    if writers := status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        others = "every user" if writers & stat.S_IWOTH else "its group"
        return (
            f"{path} can be written by {others}, and a box would run what it holds - if nobody else has changed it, run"
            f" `chmod go-w {path}`"
        )
    return None


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
