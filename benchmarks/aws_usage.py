"""Count a program's requests to AWS and its waiting time inside its own process, on both sides of a comparison.

It imports only botocore, so it runs in ParallelCluster's environment too.
"""

import json
import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from botocore.httpsession import URLLib3Session

_ACTION = re.compile(rb"(?:^|&)Action=(\w+)")


class AwsUsage:
    """From now on: requests to AWS by action, seconds of waiting for their responses, seconds of sleep."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.waited_s = self.slept_s = 0.0
        self._send, self._sleep = URLLib3Session.send, time.sleep
        URLLib3Session.send = lambda session, request: self._sent(session, request)  # type: ignore[method-assign, assignment]
        time.sleep = self._slept
        self._start, self._cpu = time.perf_counter(), cpu_seconds()

    def text(self) -> str:
        """All of it as JSON, with wall time and CPU time since the start, and peak memory."""
        return json.dumps({
            "wall_s": time.perf_counter() - self._start,
            "waited_s": self.waited_s,
            "slept_s": self.slept_s,
            "cpu_s": cpu_seconds() - self._cpu,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "requests": dict(self.requests),
        })  # fmt: skip

    def _sent(self, session: Any, request: Any) -> Any:
        start = time.perf_counter()
        try:
            return self._send(session, request)
        finally:
            self.waited_s += time.perf_counter() - start
            self.requests[_action(request)] += 1

    def _slept(self, seconds: Any) -> None:
        start = time.perf_counter()
        self._sleep(seconds)
        self.slept_s += time.perf_counter() - start


def cpu_seconds() -> float:
    """The CPU time of this process and of its finished children."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _action(request: Any) -> str:
    """The action of an AWS request: from a header or the body, else the method and the first parts of the path."""
    target = request.headers.get("X-Amz-Target")
    if target:
        return (target.decode() if isinstance(target, bytes) else target).rpartition(".")[2]
    body = request.body if isinstance(request.body, bytes) else str(request.body or "").encode()
    if found := _ACTION.search(body):
        return found[1].decode()
    return f"{request.method} {'/'.join(request.url.split('/')[3:5])}"


def write_usage(usage: AwsUsage, file: str) -> None:
    """Write the usage to the file, for the benchmark."""
    Path(file).write_text(usage.text(), encoding="utf-8")
    sys.stdout.flush()
