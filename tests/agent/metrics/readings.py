"""Readings of a head for tests: the cluster dev with two machines, one of them with a job."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.cluster.models import Instance, SlurmNode
from corral.agent.cluster.state import Backoff, BootFailures
from corral.agent.metrics.event_counts import EventCounts
from corral.agent.metrics.file_systems import FileSystem
from corral.agent.metrics.head_metrics import HeadReading, head_families
from corral.agent.metrics.slurm_jobs import JobRow
from corral.agent.metrics.spending import Spending
from corral.agent.metrics.text_format import exposition
from corral.model.monitoring import MonitoringPlan, PriceRange
from render.plans import LLAMA, cpu, dev, train

NOON = 1795521600.0
SPOT = train().offers[0].key


def node(name: str, *states: str, gpus: int = 0) -> SlurmNode:
    return SlurmNode(name=name, states=frozenset(states), gpus_allocated=gpus)


def instance(name: str, offer: str = SPOT) -> Instance:
    return Instance(instance_id=f"i-{name}", node=name, state="running", address="10.0.0.9", offer=offer)


def job(number: int, state: str = "running", account: str = "vision", waits_since: int | None = None) -> JobRow:
    return JobRow(job_id=str(number), queue="train", account=account, state=state, waits_since=waits_since, restarts=0)


def reading(**changes: Any) -> HeadReading:
    """The cluster: train-1 runs job 1, train-2 is idle, train-3 and train-4 are off, job 2 waits for ten minutes."""
    plan = replace(
        dev(train(), cpu()),
        monitoring=MonitoringPlan(prometheus=True, budget_usd_per_month=9000),
        runs=(LLAMA, replace(LLAMA, name="large", fits=False)),
    )
    events = EventCounts(
        launches=Counter({("train", SPOT, "launched"): 2, ("train", SPOT, "refused"): 1}),
        notices=Counter(train=3),
        boots={"train": [150.0, 290.0]},
    )
    made = HeadReading(
        now=NOON,
        plan=plan,
        nodes=(
            node("train-1", "ALLOCATED", "CLOUD", gpus=8),
            node("train-2", "IDLE", "CLOUD"),
            node("train-3", "IDLE", "CLOUD", "POWERED_DOWN"),
            node("train-4", "IDLE", "CLOUD", "POWERED_DOWN"),
        ),
        instances=(instance("train-1"), instance("train-2")),
        backoffs={SPOT: Backoff(until=NOON + 240, refusals=1, kind=LaunchErrorKind.CAPACITY, reason="none")},
        boot_failures={"train": BootFailures(count=1, since=NOON - 900)},
        events=events,
        jobs=(job(1), job(2, "pending", waits_since=int(NOON) - 600)),
        requeues={"train": 1},
        file_systems=(FileSystem(mount="/home", size=1000, free=250),),
        spending=Spending(at=NOON, sum=PriceRange(low=10.5, high=12.0), rate=PriceRange(low=3.0, high=4.25)),
        ends_at=NOON + 3600,
        last_cycle=NOON - 4,
    )
    return replace(made, **changes)


def lines(name: str, read: HeadReading | None = None) -> list[str]:
    """The lines of a metric's samples, without its name."""
    page = exposition(head_families(read or reading()))
    return [line.removeprefix(name) for line in page.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
