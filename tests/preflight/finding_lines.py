"""Requests for checks, and their findings as lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.preflight.preflight_findings import PreflightFinding, PreflightRequest
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT, dev_base, dev_cluster

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def dev(cluster: ClusterPlan | None = None) -> PreflightRequest:
    """A request for `dev`, at noon."""
    return PreflightRequest(base=dev_base(), cluster=cluster or dev_cluster(), now=NOW)


def train() -> PreflightRequest:
    """A request for `train`, which has a capacity block and a reservation."""
    environment = read_environment(PROJECT, "train")
    base = plan_base(environment.base)
    return PreflightRequest(base=base, cluster=plan_cluster(environment.cluster, base), now=NOW)


def on_demand(request: PreflightRequest) -> PreflightRequest:
    """The request without its spot offers."""
    queues = tuple(
        replace(queue, offers=tuple(offer for offer in queue.offers if offer.market != "spot"))
        for queue in request.cluster.queues
    )
    return replace(request, cluster=replace(request.cluster, queues=queues))


def finding_lines(findings: Iterable[PreflightFinding]) -> list[str]:
    """Each finding as `verdict about: text`."""
    return [f"{one.verdict} {one.about}: {one.message}" for one in findings]


def bad(findings: Iterable[PreflightFinding]) -> list[str]:
    """The findings that are not ok."""
    return [line for line in finding_lines(findings) if not line.startswith("ok ")]
