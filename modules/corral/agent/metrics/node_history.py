"""What a node's GPUs and EFA interfaces did in the last minutes, from its readings. Pure; the head asks for it.

One reading is a second in half a minute: clocks that are held back now may be so once. Counters tell nothing alone.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

from corral.agent.health.gpus import USUAL_REASON
from corral.agent.metrics.efa_counters import EfaCounters
from corral.agent.metrics.gpu_load import GpuLoad
from corral.model.job_evidence import GpuSamples, NodeSamples

MOST_SECONDS = 600
_PATH = re.compile(r"/history\?seconds=(\d{1,4})")


def history_path(seconds: float) -> str:
    """The path at which a node serves its last seconds."""
    return f"/history?seconds={min(MOST_SECONDS, max(0, int(seconds)))}"


def requested_seconds(path: str) -> float | None:
    """The seconds that a request for this path is about; None for another path."""
    found = _PATH.fullmatch(path)
    return float(min(MOST_SECONDS, int(found[1]))) if found else None


def node_samples(
    node: str, gpus: Sequence[Sequence[GpuLoad]], efa: Sequence[tuple[float, Sequence[EfaCounters]]]
) -> NodeSamples:
    """These readings as one record; those of EFA with their age in seconds, the oldest first."""
    by_index: dict[int, list[GpuLoad]] = {}
    for reading in gpus:
        for one in reading:
            by_index.setdefault(one.index, []).append(one)
    sent = [(age, _sent(counters)) for age, counters in efa if counters]
    grown = sent[-1][1] - sent[0][1] if len(sent) > 1 else -1  # less: a driver was loaded again
    return NodeSamples(
        gpus=tuple(_gpu(node, index, loads) for index, loads in sorted(by_index.items())),
        efa_sent_bytes=grown if grown >= 0 else None,
        efa_seconds=round(sent[0][0] - sent[-1][0], 1) if grown >= 0 else 0.0,
    )


def _gpu(node: str, index: int, loads: Sequence[GpuLoad]) -> GpuSamples:
    slowed = Counter(reason for one in loads for reason in one.slowed_by)
    reason = max(sorted(slowed), key=lambda one: (one != USUAL_REASON, slowed[one]), default="")
    return GpuSamples(
        node=node,
        gpu=index,
        samples=len(loads),
        utilization=_or_none(fmean, (one.utilization for one in loads), 3),
        throttled_share=round(slowed[reason] / len(loads), 3),
        reason=reason,
        clock_mhz=_or_none(median, (one.clock_hz / 1e6 for one in loads if one.clock_hz is not None), 0),
        temperature_c=_or_none(max, (one.temperature_c for one in loads), 0),
    )


def _or_none(combined: Callable[[list[float]], float], values: Iterable[float | None], digits: int) -> float | None:
    known = [one for one in values if one is not None]
    return round(combined(known), digits) if known else None


def _sent(counters: Sequence[EfaCounters]) -> int:
    return sum(one.sent_bytes for one in counters)
