"""How a compute machine hears its head, and that it ends itself by `heartbeat`. A part of `corral-agent watch`."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from corral.agent import slurm
from corral.agent.errors import AgentError
from corral.agent.heartbeat import LISTEN_EACH_S, Pulse, why_end

_TIMEOUT_S = 5.0  # the watch looks for notices as often
_NO_STEP = "infinity"

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class Heart:
    """`hears`: whether the head answers now. `working`: whether a step of a job runs here. `ends_at`: the cluster's
    end in seconds since 1970, asked anew whenever it seems to be over: `corral extend` may have moved it.
    """

    hears: Callable[[], bool]
    working: Callable[[], bool]
    ends_at: Callable[[], float | None]
    power_off: Callable[[], None]
    steady: Callable[[], float] = time.monotonic
    clock: Callable[[], float] = time.time
    _heard: float | None = None
    _looked: float = field(default=float("-inf"))
    _end: float | None = None

    def beat(self) -> str:
        """Listens where it is time to; why the machine was powered off, empty if it was not."""
        now = self.steady()
        if now - self._looked < LISTEN_EACH_S:
            return ""
        first, self._looked = self._heard is None, now
        if first:
            self._end = self.ends_at()
        if first or self.hears():
            self._heard = now
        if not self._why(now):
            return ""
        self._end = self.ends_at()
        if why := self._why(now):
            log.warning("power off: %s", why)
            self.power_off()
        return why

    def _why(self, now: float) -> str:
        heard = now if self._heard is None else self._heard
        return why_end(Pulse(now=self.clock(), heard_s=now - heard, working=self.working(), ends_at=self._end))


def answers(address: str) -> bool:
    """True if the slurmctld of the head with this address answers.

    It is asked in its own words: a connection without any is a line of error in its log, for each node each time.
    """
    if slurm.hears(_TIMEOUT_S):
        return True
    log.warning("the head %s does not answer", address)
    return False


def has_step(processes: Path = Path("/proc")) -> bool:
    """True if a step of a job runs on this machine: each has a slurmstepd.

    With cgroups of version 2 slurmd keeps one more for as long as it runs, `slurmstepd infinity`, which has no step.
    """
    return any(_is_step(entry) for entry in processes.iterdir() if entry.name.isdigit())


def _is_step(process: Path) -> bool:
    try:
        if not (process / "comm").read_text(encoding="utf-8").startswith("slurmstepd"):
            return False
        words = (process / "cmdline").read_text(encoding="utf-8").replace("\0", " ").split()
    except OSError:  # processes come and go
        return False
    return words[-1:] != [_NO_STEP]


def seconds(moment: str | None) -> float | None:
    """The end of a cluster as deployed.json has it, in seconds since 1970; None for one that never ends."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp() if moment else None


def latest(newest: Callable[[], str | None], known: str | None) -> float | None:
    """The end as the bucket has it, or as this machine knows it where the bucket cannot be read."""
    try:
        return seconds(newest())
    except (AgentError, OSError, ValueError) as error:
        log.error("the end of the cluster cannot be asked: %s", error)
        return seconds(known)
