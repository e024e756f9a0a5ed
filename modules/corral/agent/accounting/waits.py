"""Wait until the daemons of accounting answer."""

import socket as sockets
import time
from collections.abc import Callable

from corral.agent.host.base import HostError
from corral.model.accounting_paths import SLURMDBD_PORT

_SLURMDBD_IN_S = 900  # a newer Slurm converts the tables of an older one first
_STEP_S = 0.05


def slurmdbd_listens() -> bool:
    """True if slurmdbd accepts connections."""
    try:
        sockets.create_connection(("127.0.0.1", SLURMDBD_PORT), timeout=1).close()
    except OSError:
        return False
    return True


def await_slurmdbd(listens: Callable[[], bool] = slurmdbd_listens) -> None:
    """Wait until slurmdbd listens. Raises HostError."""
    await_condition(listens, _SLURMDBD_IN_S, "slurmdbd does not listen - see /var/log/slurm/slurmdbd.log")


def await_condition(met: Callable[[], bool], within_s: float, problem: str) -> None:
    """Wait until the condition is met. Raises HostError with the problem."""
    until = time.monotonic() + within_s
    while not met():
        if time.monotonic() > until:
            raise HostError(f"{problem} (waited {within_s} s)")
        time.sleep(_STEP_S)
