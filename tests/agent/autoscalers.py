"""An autoscaler in the test's process: a real EC2 of the box or none, and a scheduler that records its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corral.agent.autoscaler.interfaces import Cloud
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.cluster.models import PowerRequest, SlurmNode, WaitingJob
from corral.agent.cluster.state import AutoscalerState
from corral.agent.events import EventLog
from corral.agent.slurm import SlurmError
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.node_names import expand, fold


@dataclass(kw_only=True)
class SchedulerLog:
    """What a scheduler was calls, as words."""

    known: tuple[SlurmNode, ...] = ()
    calls: list[str] = field(default_factory=list)
    refuses_requeue: bool = False

    def nodes(self) -> tuple[SlurmNode, ...]:
        return self.known

    def set_addresses(self, addresses: Mapping[str, str]) -> None:
        self.calls.append("place " + " ".join(f"{node}={address}" for node, address in sorted(addresses.items())))

    def power_down(self, nodes: Sequence[str], reason: str) -> None:
        self.calls.append(f"power down {fold(nodes)}: {reason}")

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        self.calls.append(f"drain {fold(nodes)}: {reason}")

    def request_checkpoints(self, nodes: Sequence[str]) -> None:
        self.calls.append(f"ask {fold(nodes)}")

    def requeue_jobs(self, nodes: Sequence[str]) -> None:
        self.calls.append(f"requeue jobs on {fold(nodes)}")
        if self.refuses_requeue:
            raise SlurmError("Requested operation is presently disabled for job 7")

    def replace(self, nodes: Sequence[str], reason: str) -> None:
        self.calls.append(f"replace {fold(nodes)}: {reason}")

    def power_up(self, nodes: Sequence[str]) -> None:
        self.calls.append(f"power up {fold(nodes)}")

    def undrain(self, nodes: Sequence[str]) -> None:
        self.calls.append(f"undrain {fold(nodes)}")

    def stop_queue(self, queue: str) -> None:
        self.calls.append(f"stop {queue}")

    def notify_waiting(self, jobs: Sequence[int], text: str) -> None:
        self.calls.append(f"notify {','.join(str(job) for job in jobs)}: {text}")


@dataclass(kw_only=True)
class Clock:
    """Time that passes when a test says so. Seconds since 1970."""

    now: float = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(kw_only=True)
class AutoscalerFixture:
    """An autoscaler and what is around it. `saved`: what it wrote down, in order."""

    autoscaler: Autoscaler
    scheduler: SchedulerLog
    clock: Clock
    saved: list[AutoscalerState]
    left: list[PowerRequest] = field(default_factory=list)

    def request(self, verb: str, nodes: str, *jobs: str, key: str = "1-1") -> list[str]:
        """The scheduler's calls for a request of these nodes, by jobs that each wait for some of them."""
        wanted = set(expand(nodes))
        waiting = tuple(
            WaitingJob(
                job_id=number,
                nodes=tuple(node for node in expand(job) if node in wanted),
                allocated_nodes=tuple(node for node in expand(job) if node not in wanted),
            )
            for number, job in enumerate(jobs, start=1)
        )
        request = PowerRequest(key=key, verb=verb, nodes=expand(nodes), requested_at=self.clock.now, jobs=waiting)
        done: list[PowerRequest] = []
        before = len(self.scheduler.calls)
        self.autoscaler.process_requests([request], done.append)
        self.left = [request] if not done else []
        return self.scheduler.calls[before:]


def autoscaler_fixture(
    plan: ClusterPlan,
    deployed: Deployed,
    cloud: Cloud,
    known: AutoscalerState | None = None,
    events: Path | None = None,
) -> AutoscalerFixture:
    calls, clock, saved = SchedulerLog(), Clock(), list[AutoscalerState]()
    autoscaler = Autoscaler(
        plan, deployed, cloud, calls, saved.append, clock, EventLog(events), known or AutoscalerState()
    )
    return AutoscalerFixture(autoscaler=autoscaler, scheduler=calls, clock=clock, saved=saved)
