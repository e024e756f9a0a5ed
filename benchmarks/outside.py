"""What a program asks of AWS and how long it waits, counted inside its own process; for both sides of a comparison.

Only botocore is imported, so that it runs in ParallelCluster's environment as in corral's.
"""

import json
import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path

from botocore.httpsession import URLLib3Session

_ACTION = re.compile(rb"(?:^|&)Action=(\w+)")


class Outside:
    """From now on: requests to AWS by action, seconds until they were answered, seconds that were slept."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.waited_s = self.slept_s = 0.0
        self._send, self._sleep = URLLib3Session.send, time.sleep
        URLLib3Session.send = lambda session, request: self._sent(session, request)
        time.sleep = self._slept
        self._begun, self._cpu = time.perf_counter(), processor_s()

    def told(self) -> str:
        """All of it as JSON, with the seconds since the beginning, of the clock and of the processor, and the peak."""
        return json.dumps({
            "wall_s": time.perf_counter() - self._begun,
            "waited_s": self.waited_s,
            "slept_s": self.slept_s,
            "cpu_s": processor_s() - self._cpu,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "requests": dict(self.requests),
        })  # fmt: skip

    def _sent(self, session: object, request: object) -> object:
        begun = time.perf_counter()
        try:
            return self._send(session, request)
        finally:
            self.waited_s += time.perf_counter() - begun
            self.requests[_action(request)] += 1

    def _slept(self, seconds: float) -> None:
        begun = time.perf_counter()
        self._sleep(seconds)
        self.slept_s += time.perf_counter() - begun


def processor_s() -> float:
    """The seconds of a processor of this process and of those it waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _action(request: object) -> str:
    """The action of an AWS request: in a header, in the body, or the method and the path's first words."""
    target = request.headers.get("X-Amz-Target")
    if target:
        return (target.decode() if isinstance(target, bytes) else target).rpartition(".")[2]
    body = request.body if isinstance(request.body, bytes) else str(request.body or "").encode()
    if found := _ACTION.search(body):
        return found[1].decode()
    return f"{request.method} {'/'.join(request.url.split('/')[3:5])}"


def exit_told(outside: Outside, file: str) -> None:
    """Writes it down for the benchmark."""
    Path(file).write_text(outside.told(), encoding="utf-8")
    sys.stdout.flush()
