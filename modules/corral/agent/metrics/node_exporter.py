"""A node's metrics: read by threads of their own, and served to whoever shows the cluster's token.

nvidia-smi and a job's file system may hang, so a scrape reads nothing: it gets what was read last, for two minutes.
The head reads what GPUs and EFA did in the last minutes, for `corral diagnose`.
"""

import asyncio
import hmac
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from corral.agent.errors import AgentError
from corral.agent.health.probes import Probe, Tool
from corral.agent.health.xids import read_xids
from corral.agent.job_evidence.user_reader import read_recent_as_user
from corral.agent.local_http import LocalRequest, LocalResponse, LocalServer, listen, plain_response
from corral.agent.metrics.efa_counters import read_counters
from corral.agent.metrics.gpu_load import read_load
from corral.agent.metrics.job_steps import read_steps
from corral.agent.metrics.node_history import MOST_SECONDS, node_samples, requested_seconds
from corral.agent.metrics.node_metrics import NodeReading, node_families
from corral.agent.metrics.text_format import CONTENT_TYPE, exposition
from corral.model.monitoring import NODE_METRICS_PORT
from corral.model.serialization import to_line

PATH = "/metrics"
_EVERY_S = 30.0  # as Prometheus scrapes
_VALID_S = 120.0  # a value that stands still would be shown as the present one
_KEPT = int(MOST_SECONDS / _EVERY_S) + 1
_SERVE_AGAIN_S = 30.0  # after an error, such as a port that another process holds

_Read = TypeVar("_Read")

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class Sampled(Generic[_Read]):
    """What `read` returned last, for two minutes; `nothing` before and after. `clock`: never runs backwards.

    `kept`: how many readings are kept for `recent`.
    """

    read: Callable[[], _Read]
    nothing: _Read
    clock: Callable[[], float] = time.monotonic
    kept: int = 1
    _found: deque[tuple[float, _Read]] = field(init=False)

    def __post_init__(self) -> None:
        self._found = deque(maxlen=self.kept)

    def __call__(self) -> None:
        """Read it."""
        found = self.read()
        self._found.append((self.clock(), found))

    @property
    def latest(self) -> _Read:
        """What was read last."""
        found = self.recent(_VALID_S)
        return found[-1][1] if found else self.nothing

    def recent(self, seconds: float) -> list[tuple[float, _Read]]:
        """What was read in these last seconds, each with its age, the oldest first; nothing if the newest is old."""
        now = self.clock()
        found = [(now - at, value) for at, value in tuple(self._found)]
        return [one for one in found if one[0] <= seconds] if found and found[-1][0] <= _VALID_S else []


@dataclass(kw_only=True)
class NodeExporter:
    """The metrics of this node. `clock`: seconds since 1970. `parts`: what is read, by the fields of NodeReading."""

    node: str
    probe: Probe
    clock: Callable[[], float] = time.time
    parts: dict[str, Sampled[tuple[Any, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = {
            "gpus": Sampled(read=self._tool(Tool.LOAD, read_load), nothing=(), kept=_KEPT),
            "xids": Sampled(read=self._tool(Tool.KERNEL, read_xids), nothing=()),
            "efa": Sampled(read=self._tool(Tool.EFA_COUNTERS, read_counters), nothing=(), kept=_KEPT),
            "jobs": Sampled(read=partial(read_steps, self.node, read_recent_as_user), nothing=()),
        }

    def text(self) -> str:
        """The metrics now, in Prometheus's text format."""
        parts = {name: part.latest for name, part in self.parts.items()}
        return exposition(node_families(NodeReading(now=self.clock(), **parts)))

    def history(self, seconds: float) -> str:
        """What GPUs and EFA did in these last seconds, as a line of JSON."""
        gpus, efa = self.parts["gpus"].recent(seconds), self.parts["efa"].recent(seconds)
        return to_line(node_samples(self.node, [value for _, value in gpus], efa))

    def start(self) -> None:
        """Read everything again and again, each part in a thread of its own."""
        for name, part in self.parts.items():
            threading.Thread(target=_forever, args=(name, part, _EVERY_S), name=f"metrics: {name}", daemon=True).start()

    def _tool(self, tool: Tool, parse: Callable[[str], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
        def read() -> tuple[Any, ...]:
            output = self.probe.query(tool, 1)
            if output is None or output.absent:
                return ()
            if output.hung:
                raise AgentError(f"{tool.program} did not end within {output.after_s:.0f} s")
            return parse(output.text)

        return read


def start_node_exporter(exporter: NodeExporter, token: str, address: str, port: int = NODE_METRICS_PORT) -> None:
    """Read and serve the node's metrics for the rest of the process, in threads."""
    exporter.start()
    serve = partial(serve_node_metrics, TokenResponder(exporter.text, exporter.history, token), address, port)
    threading.Thread(target=_forever, args=("serve", serve, _SERVE_AGAIN_S), name="metrics", daemon=True).start()


def serve_node_metrics(respond: "TokenResponder", address: str, port: int) -> None:
    """Serve metrics on this address forever. Raises LocalServerError if that is not possible."""
    with listen(port, address) as listener:
        asyncio.run(LocalServer(respond, listener).serve_forever())


class TokenResponder:
    """Answers those who show the token. Everybody else learns nothing but that one is needed."""

    def __init__(self, text: Callable[[], str], history: Callable[[float], str], token: str) -> None:
        self._text = text
        self._history = history
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, request: LocalRequest) -> LocalResponse:
        """The response to a request."""
        if not hmac.compare_digest(request.authorization.encode(), self._expected):
            return plain_response(401, "metrics of nodes are for the Prometheus of their head")
        if (seconds := requested_seconds(request.path)) is not None:
            body = self._history(seconds).encode()
            return LocalResponse(status=200, body=body, content_type="application/json")
        if request.path != PATH:
            return plain_response(404, f"no such path {request.path} - metrics are at {PATH}")
        return LocalResponse(status=200, body=self._text().encode(), content_type=CONTENT_TYPE)


def _forever(name: str, act: Callable[[], object], every_s: float) -> None:
    """The autoscaler's background tasks do this as well, but would load the autoscaler into each node's process."""
    while True:
        _try(name, act)
        time.sleep(every_s)


def _try(name: str, act: Callable[[], object]) -> None:
    try:
        act()
    except (AgentError, OSError, ValueError) as error:
        log.error("metrics, %s: %s", name, error)
    except Exception:  # an unexpected error must not end the thread
        log.exception("metrics, %s failed", name)
