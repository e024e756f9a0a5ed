"""Views of a synthetic cluster of 1,000 nodes for the tests of the dashboard: every state, offers, events, and jobs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from corral.forecast.cost.cost_range import Sum, Usd
from corral.inventory.status import InstanceGroup, Status
from corral.model.cluster import QueuePlan
from corral.model.head_report import AutoscalerStatus, HeadJob, HeadStatus, NodeGroup, OfferBackoff
from corral.model.job_evidence import JobCurves
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.report.dashboard.cluster_document import Answer, ClusterView, CostSoFar
from corral.report.diagnosis.evidence import ExpectedRun, JobEvidence
from corral.report.diagnosis.findings import FindingKind
from corral.report.timeline.event_lines import ClusterEvent, read_events
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT
from report.diagnosis.synthetic_jobs import evidence, faulty_job

# Tries to leave its text: as an element, as an attribute, and as a script.
HOSTILE = "<img src=x onerror=\"document.title='owned'\">'\"</script><script>document.title='owned'</script>"
AT = datetime(2026, 11, 28, 12, tzinfo=UTC)


def queues() -> Sequence[QueuePlan]:
    """The queues of the shipped environment `train`."""
    spec = read_environment(PROJECT, "train")
    return plan_cluster(spec.cluster, plan_base(spec.base), catalog=spec.catalog).queues


def head_job(job_id: str, nodes: str = "", *, name: str = "llama", count: int = 1) -> HeadJob:
    """A job that runs on these nodes, or waits without any."""
    return HeadJob(
        job_id=job_id,
        user="ada" if nodes else "grace",
        name=name,
        queue="train",
        state="running" if nodes else "pending",
        nodes=nodes,
        node_count=count,
        since=int(AT.timestamp()) - 4000,
        reason="" if nodes else "train-spot-use1-az1: InsufficientInstanceCapacity",
        until=None if nodes else int(AT.timestamp()) + 900,
        account="ml",
    )


def slurm(at: datetime = AT) -> HeadStatus:
    """A head of 1,000 nodes in every state."""
    states = (
        ("allocated", "train-[1-96]", 96),
        ("idle", "train-[97-104]", 8),
        ("down+powering_up", "train-[105-108]", 4),
        ("idle+drain", "train-109", 1),
        ("down", "train-110", 1),
        ("idle+powering_down", "train-[111-112]", 2),
        ("idle+powered_down", "train-[113-1000]", 888),
    )
    return HeadStatus(
        at=int(at.timestamp()),
        jobs=(
            head_job("17", "train-[1-64]", count=64),
            head_job("18", "train-[65-96]", name=HOSTILE, count=32),
            head_job("19", count=16),
            head_job("20_[1-9]"),
        ),
        running=2,
        waiting=10,
        backoffs=(
            OfferBackoff(
                offer="train-spot-use1-az1",
                until=int(at.timestamp()) + 900,
                kind="no capacity",
                reason="InsufficientInstanceCapacity",
            ),
        ),
        disabled_queues=(),
        nodes=tuple(NodeGroup(queue="train", state=state, nodes=nodes, count=count) for state, nodes, count in states),
        autoscaler=AutoscalerStatus(is_running=True, last_cycle=None, start_command="x", log_command="x"),
    )


def status() -> Status:
    """The account's part: machines of one offer, an end, and a cost."""
    group = InstanceGroup(
        queue="train",
        offer="train-spot-use1-az1",
        type="p4d.24xlarge",
        state="running",
        count=105,
        nodes=("train-[1-105]",),
        usd_per_hour=Usd(900.0, 1400.0),
    )
    return Status(
        cluster="train",
        base="main",
        region="us-east-1",
        base_is_up=True,
        cluster_is_up=True,
        head=None,
        load_balancer=None,
        login=(),
        misnamed=(),
        groups=(group,),
        file_systems=(),
        ends_at=AT + timedelta(hours=5),
        base_usd_per_hour=Sum(usd=Usd(0.5, 0.5)),
        cluster_usd_per_hour=Sum(usd=Usd(900.0, 1400.0)),
    )


def events() -> tuple[ClusterEvent, ...]:
    """Events, one with a hostile text."""
    return read_events(
        (
            '{"at": "2026-11-28T11:00:00Z", "event": "launched", "text": "train-[1-96]: 96 of p4d.24xlarge"}',
            '{"at": "2026-11-28T11:05:00Z", "event": "refused",'
            ' "text": "train-spot-use1-az1: InsufficientInstanceCapacity: We have no capacity; tried again at 12:15"}',
            '{"at": "2026-11-28T11:06:00Z", "event": "notice", "text": "<b id=owned>train-7</b> will be reclaimed"}',
        )
    )


def view(at: datetime = AT) -> ClusterView:
    """All answers, given at this time."""
    return ClusterView(
        environment="train",
        region="us-east-1",
        queues=queues(),
        status=status(),
        slurm=slurm(at),
        events=events(),
        cost=CostSoFar(since=AT - timedelta(hours=3), usd=Sum(usd=Usd(2700.0, 4200.0))),
        of_account=Answer(at=at, every_s=60.0),
        of_head=Answer(at=at, every_s=10.0),
        of_cost=Answer(at=at, every_s=600.0),
    )


def job_evidence() -> JobEvidence:
    """A job of four nodes with a straggler, its curve, and a forecast."""
    seen = evidence(replace(faulty_job(FindingKind.STRAGGLER, 1), nodes=4, slow={2: 1.6}))
    speed = 1.2 * (seen.tokens_per_s_per_accelerator or 0.0)
    expected = ExpectedRun(
        name="llama3-8b",
        tokens_per_s_per_accelerator=speed,
        mfu=0.42,
        communication_share=0.08,
        memory_gib=60.0,
        memory_limit_gib=74.0,
        largest_micro_batch=4,
        change=None,
    )
    return replace(seen, job=replace(seen.job, name=HOSTILE), expected=expected, curves=kept_curves(seen))


def kept_curves(seen: JobEvidence) -> JobCurves:
    """What Prometheus has of an hour and a half: a gap of ten minutes, a pause, and at the end nothing of GPUs."""
    chance = random.Random(1)
    mean = sum(one.tokens_per_s for one in seen.training) / len(seen.training)
    minutes = range(2, 91)

    def values(level: float, *, stops: bool = False) -> tuple[float | None, ...]:
        wave = [level * chance.uniform(0.94, 1.02) for _ in minutes]
        gaps = {*range(40, 50), *((70, 71, 73, 74) if level == mean else ()), *(range(84, 91) if stops else ())}
        return tuple(None if minute in gaps else value for minute, value in zip(minutes, wave, strict=True))

    started = seen.job.started or 0
    return JobCurves(
        is_kept=True,
        first=started + 120,
        last=started + 5400,
        every_s=60,
        over_s=120,
        nodes=4,
        tokens_per_s=values(mean),
        communication_share=values(0.11),
        gpu_utilization=values(0.93, stops=True),
        efa_sent_bytes_per_s=values(4.2e10),
    )
