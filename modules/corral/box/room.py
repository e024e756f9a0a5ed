"""Whether the disk of a box has room for its machines. What the box itself needs to save its cloud is in `process`."""

from __future__ import annotations

import contextlib
import logging

from corral.box.directory import StateDirectory
from corral.box.process import BoxError, free_bytes

FIRST = 256 << 20  # bytes: a head and its accounting take 180 MiB, each node 15 MiB, the engine's states 20 MiB
MORE = 32 << 20  # bytes, where a head has been: two nodes, or what a head writes in some hours

log = logging.getLogger(__name__)


def require_room_for_machines(home: StateDirectory) -> None:
    """Raises BoxError where machines that an up brings would fill the disk, and then not boot and not say why."""
    needed = MORE if _has_volumes(home) else FIRST
    if free_bytes(home) < needed:
        raise BoxError(
            f"nothing was started: {_free(home)} on the disk of {home.path}, the box's machines need {needed >> 20} MiB"
            " - free some, or choose another directory with --box-dir"
        )


def shortage(home: StateDirectory) -> str | None:
    """A sentence where the disk is so full that machines soon cannot write; None where it is not."""
    if free_bytes(home) >= MORE:
        return None
    return (
        f"{_free(home)} on the disk of {home.path}, its machines need {MORE >> 20} MiB - free some: a machine that"
        " cannot write does not boot, and does not say so"
    )


class Watch:
    """Notes in the log when the disk begins to be too full, and when it is so no more."""

    def __init__(self, home: StateDirectory) -> None:
        self._home = home
        self._is_short = False

    def look(self) -> None:
        """Looks once."""
        with contextlib.suppress(OSError):  # the directory was removed
            told = shortage(self._home)
            if told and not self._is_short:
                log.error("%s", told)
            elif self._is_short and not told:
                log.info("the machines have room again")
            self._is_short = bool(told)


def _has_volumes(home: StateDirectory) -> bool:
    try:
        return any((home.machines / "volumes").iterdir())
    except OSError:
        return False


def _free(home: StateDirectory) -> str:
    return f"{free_bytes(home) >> 10:,} KiB are free"
