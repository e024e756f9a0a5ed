"""Power a compute machine off if it no longer reaches its head. Used by `corral-agent node-watch`."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from corral.agent import slurm
from corral.agent.errors import AgentError
from corral.agent.host.self_termination import LISTEN_EVERY_S, NodeLiveness, why_terminate
from corral.agent.step_daemon import is_step_daemon

_TIMEOUT_S = 5.0  # the watcher polls for notices at this interval
_NOT_A_STEP = "infinity"

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class HeadMonitor:
    """`head_answers`: whether the head answers now. `working`: whether a job step runs here.

    `ends_at`: the cluster's end in seconds since 1970; read again when it seems to be over, because `corral extend` may
    have moved it.
    """

    head_answers: Callable[[], bool]
    working: Callable[[], bool]
    ends_at: Callable[[], float | None]
    power_off: Callable[[], None]
    steady: Callable[[], float] = time.monotonic
    clock: Callable[[], float] = time.time
    _heard_at: float | None = None
    _checked_at: float = field(default=float("-inf"))
    _end: float | None = None

    def check(self) -> str:
        """Check if due. Returns why the machine was powered off, empty if it was not."""
        now = self.steady()
        if now - self._checked_at < LISTEN_EVERY_S:
            return ""
        first, self._checked_at = self._heard_at is None, now
        if first:
            self._end = self.ends_at()
        if first or self.head_answers():
            self._heard_at = now
        if not self._why(now):
            return ""
        self._end = self.ends_at()
        if why := self._why(now):
            log.warning("power off: %s", why)
            self.power_off()
        return why

    def _why(self, now: float) -> str:
        heard = now if self._heard_at is None else self._heard_at
        return why_terminate(
            NodeLiveness(now=self.clock(), head_silent_s=now - heard, working=self.working(), ends_at=self._end)
        )


def answers(address: str) -> bool:
    """True if the slurmctld of the head with this address answers.

    slurmctld would log an error for each bare TCP connection.
    """
    if slurm.responds(_TIMEOUT_S):
        return True
    log.warning("the head %s does not answer", address)
    return False


def has_step(processes: Path = Path("/proc")) -> bool:
    """True if a job step runs on this machine: each has a slurmstepd, which is root's, whatever others call theirs.

    With cgroups v2 slurmd keeps one more, `slurmstepd infinity`, which has no step.
    """
    return any(_is_step(entry) for entry in processes.iterdir() if entry.name.isdigit())


def _is_step(process: Path) -> bool:
    try:
        if not is_step_daemon(process):
            return False
        words = (process / "cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ").split()
    except OSError:  # the process has ended
        return False
    return words[-1:] != [_NOT_A_STEP]


def end_time(moment: str | None) -> float | None:
    """The end of a cluster in deployed.json, in seconds since 1970; None if it never ends."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() if moment else None


def latest_end(newest: Callable[[], str | None], known: str | None) -> float | None:
    """The end in the bucket, or the one this machine knows if the bucket cannot be read."""
    try:
        return end_time(newest())
    except (AgentError, OSError, ValueError) as error:
        log.error("cannot read the end of the cluster from the bucket: %s", error)
        return end_time(known)
