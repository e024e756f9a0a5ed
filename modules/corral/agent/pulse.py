"""How a compute machine hears its head, and that it ends itself by `heartbeat`. A part of `corral-agent watch`."""

import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from corral.agent.errors import AgentError
from corral.agent.heartbeat import Pulse, why_end

LISTEN_EACH_S = 30.0
_CONTROLLER_PORT = 6817
_TIMEOUT_S = 5.0

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


def answers(address: str, port: int = _CONTROLLER_PORT) -> bool:
    """True if slurmctld takes a connection there."""
    try:
        socket.create_connection((address, port), timeout=_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def has_step(processes: Path = Path("/proc")) -> bool:
    """True if a step of a job runs on this machine: each has a slurmstepd."""
    for entry in processes.iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "comm").read_text(encoding="utf-8").startswith("slurmstepd"):
                    return True
            except OSError:  # processes come and go
                continue
    return False


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
