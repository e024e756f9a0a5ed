"""The current state of an environment, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from corral.inventory.resources import AwsResource
from corral.inventory.status import InstanceGroup, Status
from corral.model.head_report import HeadStatus
from corral.model.tags import LOGIN_TAG
from corral.report.account.job_view import slurm_document
from corral.report.formatting import ago, count, lacking, summed, usd
from corral.report.plan.plan_json import Document, sums_document, usd_document
from corral.report.tables import facts, heading, table

NOTHING = "0.00"


def status_view(status: Status, now: datetime, account_option: str = "") -> Iterator[RenderableType]:
    """What is up, since when and until when, and its cost now.

    `account_option`: the end of suggested command lines that selects the same account.
    """
    yield heading(status.cluster, f"on base {status.base}, {status.region}: {_state(status, account_option)}")
    yield facts(_facts(status, now))
    if status.groups:
        yield Text()
        columns = ("queue", "offer", "instance type", "state", ">instances", "nodes", ">USD/h")
        yield table(columns, [_group(group) for group in status.groups])
    if status.file_systems:
        yield Text()
        rows = [(one.name, one.kind.value, one.state or "", _size(one), one.id) for one in status.file_systems]
        yield table(("file system", "kind", "state", ">GiB", "id"), rows)


def status_document(status: Status, slurm: HeadStatus | None = None, slurm_problem: str = "") -> Document:
    """The document of `corral status --json`. `slurm_problem`: why the head reports no status."""
    return {
        "schema": "corral.status/2",
        "environment": status.cluster,
        "base": status.base,
        "region": status.region,
        "base_is_up": status.base_is_up,
        "cluster_is_up": status.cluster_is_up,
        "head": _machine(status.head) if status.head else None,
        "login": [{"name": one.tags[LOGIN_TAG], **_machine(one)} for one in status.login],
        "load_balancer": _balancer(status.load_balancer) if status.load_balancer else None,
        "instances": [
            {
                "queue": group.queue,
                "offer": group.offer,
                "instance_type": group.type,
                "state": group.state,
                "count": group.count,
                "nodes": list(group.nodes),
                "usd_per_hour": usd_document(group.usd_per_hour),
            }
            for group in status.groups
        ],
        "file_systems": [
            {"name": one.name, "kind": one.kind.value, "id": one.id, "state": one.state, "size_gib": one.size_gib}
            for one in status.file_systems
        ],
        "slurm": slurm_document(slurm),
        "slurm_problem": slurm_problem or None,
        "ends_at": _iso(status.ends_at),
        **sums_document(
            {
                "usd_per_hour": status.usd_per_hour,
                "base_usd_per_hour": status.base_usd_per_hour,
                "cluster_usd_per_hour": status.cluster_usd_per_hour,
            }
        ),
    }


def _balancer(one: AwsResource) -> Document:
    return {"arn": one.id, "scheme": one.type, "state": one.state, "address": one.address}


def _state(status: Status, account_option: str) -> str:
    if status.cluster_is_up:
        fix = f"`corral up {status.cluster}{account_option}` creates one"
        return "up" if status.head else f"up, but without a head - {fix}"
    return "not up; its base is up" if status.base_is_up else "not up"


def _facts(status: Status, now: datetime) -> Iterator[tuple[str, str]]:
    if status.head:
        yield "head", _running(status.head, now)
    for one in status.login:
        yield one.tags[LOGIN_TAG], _running(one, now)
    if balancer := status.load_balancer:
        yield "load balancer", f"{balancer.type}, {balancer.state} at {balancer.address}"
    if status.ends_at:
        left = status.ends_at - now
        when = f"{status.ends_at:%Y-%m-%d %H:%M} UTC"
        yield "ends", f"in {ago(left)}, {when}" if left.total_seconds() > 0 else f"expired at {when}"
    if status.cluster_is_up and not status.groups:
        yield "nodes", "none running"
    if status.base_is_up or status.cluster_is_up:
        base, cluster = summed(status.base_usd_per_hour), summed(status.cluster_usd_per_hour)
        whole = status.usd_per_hour
        yield "costs", f"{summed(whole)} USD an hour now: base {base}, cluster {cluster}{lacking(whole)}"
        yield "", "plus traffic and stored data; `corral plan` shows the sources of prices"
    elif (retained := summed(status.usd_per_hour)) != NOTHING:
        yield "costs", f"{retained} USD an hour for retained data{lacking(status.usd_per_hour)}"


def _running(one: AwsResource, now: datetime) -> str:
    since = f", for {ago(now - one.since)}" if one.since else ""
    return f"{one.id} ({one.type}) is {one.state} at {one.address}{since}"


def _group(group: InstanceGroup) -> tuple[str, ...]:
    nodes = " ".join(group.nodes) or "-"
    return group.queue, group.offer, group.type, group.state, count(group.count), nodes, usd(group.usd_per_hour)


def _size(resource: AwsResource) -> str:
    return "?" if resource.size_gib is None else count(resource.size_gib)


def _machine(one: AwsResource) -> dict[str, Any]:
    return {
        "instance_id": one.id,
        "instance_type": one.type,
        "state": one.state,
        "address": one.address,
        "zone": one.zone,
        "since": _iso(one.since),
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
