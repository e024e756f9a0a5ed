"""What a check says, as short words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.preflight.findings import Finding, Wanted
from corral.spec.files import read_environment
from environments import PROJECT, dev_base, dev_cluster

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def dev(cluster: ClusterPlan | None = None) -> Wanted:
    """The environment `dev`, at noon."""
    return Wanted(base=dev_base(), cluster=cluster or dev_cluster(), now=NOW)


def train() -> Wanted:
    """The environment `train`, which has a capacity block and a reservation."""
    environment = read_environment(PROJECT, "train")
    base = plan_base(environment.base)
    return Wanted(base=base, cluster=plan_cluster(environment.cluster, base), now=NOW)


def on_demand(wanted: Wanted) -> Wanted:
    """Without its spot offers."""
    queues = tuple(
        replace(queue, offers=tuple(offer for offer in queue.offers if offer.market != "spot"))
        for queue in wanted.cluster.queues
    )
    return replace(wanted, cluster=replace(wanted.cluster, queues=queues))


def said(findings: Iterable[Finding]) -> list[str]:
    """Each as `verdict about: text`."""
    return [f"{one.verdict} {one.about}: {one.text}" for one in findings]


def bad(findings: Iterable[Finding]) -> list[str]:
    """Those that are not ok."""
    return [line for line in said(findings) if not line.startswith("ok ")]
