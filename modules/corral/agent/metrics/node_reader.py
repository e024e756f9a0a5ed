"""Read what the nodes of a running job measured, from `agent.metrics.node_exporter` on each of them, all at once.

A node may hang, answer slowly or without end: each answer has a time and a size limit, and so has the whole.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address

from corral.agent.cluster.models import SlurmNode
from corral.agent.job_evidence.slurm_record import gpu_indices
from corral.agent.metrics.node_history import MOST_SECONDS, history_path
from corral.agent.metrics.node_samples import is_possible, joined_samples
from corral.agent.metrics.node_token import node_token
from corral.agent.slurm import SlurmError
from corral.model.job_evidence import JobNodes, JobRecord, NodeSamples
from corral.model.monitoring import NODE_METRICS_PORT
from corral.model.serialization import from_json

_TIMEOUT_S = 3.0  # of a node, which has its answer in memory
_AT_ONCE = 256  # connections: below the usual limit of 1024 open files
_MOST_NODES = 1024  # four rounds of connections
_MOST_BYTES = 64 * 1024  # an answer about 8 GPUs has 1 kB
_OK = b"HTTP/1.0 200 "
RUNNING = "running"


def read_job_nodes(job: JobRecord, nodes: Sequence[SlurmNode]) -> JobNodes:
    """What the nodes of this job measured since it started, at most in the last ten minutes. Raises nothing."""
    now = time.time()
    if job.state != RUNNING or job.started is None or not nodes:
        return JobNodes(at=int(now), problem="the job does not run now")
    try:
        gpus, token = gpu_indices(job.job_id, {node.name for node in nodes}) if job.gpus else {}, node_token()
    except (SlurmError, OSError) as error:
        return JobNodes(at=int(now), problem=str(error))
    chosen = nodes[:_MOST_NODES]
    path = history_path(min(float(MOST_SECONDS), now - job.started))
    answers = asyncio.run(read_nodes({node.name: node.address for node in chosen}, path, token))
    unread = dict.fromkeys(node.name for node in nodes[_MOST_NODES:])
    return joined_samples({**answers, **unread}, gpus, now)


async def read_nodes(
    addresses: Mapping[str, str],
    path: str,
    token: str,
    port: int = NODE_METRICS_PORT,
    timeout_s: float = _TIMEOUT_S,
) -> Mapping[str, NodeSamples | None]:
    """The answer of each node by its name; None for a node that gives none in time."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def read(address: str) -> NodeSamples | None:
        async with free:
            with suppress(OSError, ValueError, asyncio.TimeoutError):
                text = await asyncio.wait_for(
                    fetch(str(IPv4Address(address)), port, path, f"Bearer {token}"), timeout_s
                )
                answer = from_json(NodeSamples, text)
                return answer if is_possible(answer) else None
        return None

    found = await asyncio.gather(*(read(address) for address in addresses.values()))
    return dict(zip(addresses, found, strict=True))


async def fetch(address: str, port: int, path: str, authorization: str) -> str:
    """The body of the answer of a node, or of Prometheus. Raises OSError, and ValueError for one that is no answer."""
    reader, writer = await asyncio.open_connection(address, port)
    try:
        request = f"GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: {authorization}\r\n\r\n"
        writer.write(request.encode())
        answer = b""
        while piece := await reader.read(_MOST_BYTES):
            answer += piece
            if len(answer) > _MOST_BYTES:
                raise ValueError("too long an answer")
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(_OK):
        raise ValueError(f"it answered {head[:12].decode(errors='replace')!r}")
    return body.decode()
