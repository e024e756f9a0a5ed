"""Read what the metrics are computed from: what the autoscaler knows, files of the head, and one call of squeue.

`HeadExporter.text` is called for each scrape, from a thread of its own. The autoscaler replaces its records, and never
changes one, so a reading needs no lock.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.metrics.event_counts import EventFollower
from corral.agent.metrics.file_systems import FileSystemWatch
from corral.agent.metrics.head_metrics import HeadReading, head_families
from corral.agent.metrics.slurm_jobs import JobRow, RequeueCounter
from corral.agent.metrics.spending import Spending, SpendingMeter, rate_of
from corral.agent.metrics.text_format import exposition
from corral.agent.shutdown.head_liveness import end_time
from corral.agent.slurm import SlurmError
from corral.model.monitoring import PRICES, ClusterPrices
from corral.model.serialization import from_json

# How long after its start a head is taken as changing: Slurm and its nodes come back one after the other.
SETTLES_IN_S = 600.0


@dataclass(kw_only=True)
class HeadExporter:
    """The head's metrics. `jobs`: the jobs in these queues, or raises SlurmError; called once a scrape.

    `heartbeat`: the file that the autoscaler touches in each cycle. `is_applied_or_drained`: whether
    an apply or `corral down` changes the cluster now.
    """

    autoscaler: Autoscaler
    jobs: Callable[[Sequence[str]], tuple[JobRow, ...]]
    events: EventFollower
    file_systems: FileSystemWatch
    meter: SpendingMeter
    heartbeat: Path
    is_applied_or_drained: Callable[[], bool]
    prices: Path = Path(PRICES)
    clock: Callable[[], float] = time.time
    _requeues: RequeueCounter = field(default_factory=RequeueCounter)
    _began_at: float = 0.0

    def __post_init__(self) -> None:
        self._began_at = self.clock()

    def text(self) -> str:
        """The metrics now, in Prometheus's text format."""
        return exposition(head_families(self.read()))

    def read(self) -> HeadReading:
        """What the metrics are computed from."""
        now, autoscaler = self.clock(), self.autoscaler
        return HeadReading(
            now=now,
            plan=autoscaler.plan,
            nodes=autoscaler.nodes,
            instances=autoscaler.instances,
            backoffs=autoscaler.state.backoffs,
            boot_failures=autoscaler.state.failures,
            events=self.events.follow(),
            jobs=self._jobs(),
            requeues=self._requeues.counts,
            file_systems=self.file_systems.latest(),
            spending=self._spending(),
            block_ends=autoscaler.block_ends,
            ends_at=end_time(autoscaler.deployed.ends_at),
            last_cycle=_touched(self.heartbeat),
            is_changing=autoscaler.is_closing or now - self._began_at < SETTLES_IN_S or self.is_applied_or_drained(),
        )

    def _jobs(self) -> tuple[JobRow, ...] | None:
        try:
            found = self.jobs([queue.name for queue in self.autoscaler.plan.queues])
        except SlurmError:
            return None
        self._requeues.add(found)
        return found

    def _spending(self) -> Spending | None:
        """The spending; None without prices, which a head has if Prometheus is declared."""
        try:
            prices = from_json(ClusterPrices, self.prices.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return self.meter.read(rate_of(prices, self.autoscaler.instances))


def _touched(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return None
