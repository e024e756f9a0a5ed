"""Send a signal to all processes of a person at once, also to those that start meanwhile.

The kernel hands a signal for "all" (-1) to each process and to its forks under way (kill(2); fork in kernel/fork.c), so
nobody who forks without end escapes it. It goes to whom the sender may signal, so the sender takes the person's id: as
the effective one alone. With it as the real or saved one as well, the person could end the sender first.
"""

import subprocess
import sys

from corral.agent.errors import AgentError

_NOBODYS = 65533  # an id that Debian reserves and no directory may use: the sender may also signal its processes
_WITHIN_S = 10.0
# Without capabilities: with them, or as root, "all" would be the whole machine.
_PROGRAM = """
import os, sys
uid, number, nobodys = map(int, sys.argv[1:])
os.setresuid(nobodys, uid, nobodys)
with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
    has_none = "CapEff:\\t0000000000000000\\n" in status.readlines()
if not (uid and has_none and os.getresuid() == (nobodys, uid, nobodys)):
    sys.exit("the sender has more rights than the person")
try:
    os.kill(-1, number)
except (ProcessLookupError, PermissionError):
    pass
"""


class SignalError(AgentError):
    """The signal was not sent."""


def signal_all(uid: int, number: int) -> None:
    """Send it to all processes of this person, who is not root. Raises SignalError."""
    command = (sys.executable, "-I", "-S", "-c", _PROGRAM, str(uid), str(number), str(_NOBODYS))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WITHIN_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SignalError(f"signal {number} to uid {uid}: {error}") from None
    if done.returncode:
        raise SignalError(f"signal {number} to uid {uid}: {done.stderr.strip().splitlines()[-1:]}")
