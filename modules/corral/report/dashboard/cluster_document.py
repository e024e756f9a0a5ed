"""What the page of `corral dashboard` shows of a cluster, as one document."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from corral.forecast.cost.cost_range import Sum
from corral.inventory.status import Status
from corral.model.cluster import QueuePlan
from corral.model.head_report import HeadJob, HeadStatus
from corral.model.node_names import expand
from corral.report.account.job_view import slurm_document
from corral.report.plan.plan_json import Document, sums_document
from corral.report.timeline.event_lines import ClusterEvent, shorten

SHOWN_EVENTS = 100
# What matters most first; the page has a letter for each.
NODE_KINDS = ("down", "draining", "allocated", "idle", "booting", "stopping", "off")
_OFF = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"})
_HAVE_JOBS = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_UNUSABLE = frozenset({"DOWN", "NOT_RESPONDING", "UNKNOWN", "FAIL", "ERROR"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """When a source last answered, None if not yet, and why it does not answer now; empty if it does.

    `every_s`: how often it is queried.
    """

    at: datetime | None = None
    problem: str = ""
    every_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSoFar:
    """What the cluster has cost since `since`."""

    since: datetime
    usd: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """All that the page shows. `queues`: as the environment's files declare them, empty if these have errors.

    `status`, `slurm`, `cost`: None until the account, the head and its history have answered.
    """

    environment: str
    region: str
    queues: Sequence[QueuePlan]
    status: Status | None = None
    slurm: HeadStatus | None = None
    events: Sequence[ClusterEvent] = ()
    cost: CostSoFar | None = None
    of_account: Answer = Answer()
    of_head: Answer = Answer()
    of_cost: Answer = Answer()


def cluster_document(view: ClusterView) -> Document:
    """The document `corral.dashboard/1`."""
    status, slurm = view.status, slurm_document(view.slurm)
    return {
        "schema": "corral.dashboard/1",
        "environment": view.environment,
        "region": view.region,
        "answers": {
            "account": _answer(view.of_account),
            "head": _answer(view.of_head),
            "cost": _answer(view.of_cost),
        },
        "cluster_is_up": None if status is None else status.cluster_is_up,
        "ends_at": _iso(status.ends_at) if status else None,
        "usd_per_hour": None if status is None else _usd(status.usd_per_hour),
        "usd_so_far": {"since": _iso(view.cost.since), **_usd(view.cost.usd)} if view.cost else None,
        "queues": [] if view.slurm is None else [*_queues(view, view.slurm)],
        "offers": [*_offers(view)],
        "slurm": slurm and {name: value for name, value in slurm.items() if name != "nodes"},
        "events": [
            {"at": _iso(one.at), "kind": one.kind, "text": shorten(one.text)}
            for one in reversed(view.events[-SHOWN_EVENTS:])
        ],
    }


def node_kind(state: str) -> str:
    """One of NODE_KINDS for Slurm's base state and flags, in small letters and joined by `+`.

    As `corral.agent.metrics` counts them.
    """
    states = frozenset(state.upper().split("+"))
    if states & _OFF:
        if states & _HAVE_JOBS:
            return "allocated"
        return "off" if "POWERED_DOWN" in states else "stopping"
    if "POWERING_UP" in states:
        return "booting"
    if states & _UNUSABLE:
        return "down"
    if "DRAIN" in states:
        return "draining"
    return "allocated" if states & _HAVE_JOBS else "idle"


def _queues(view: ClusterView, slurm: HeadStatus) -> Iterator[Document]:
    """The declared queues in their order, then those that only Slurm knows."""
    declared = {one.name: one for one in view.queues}
    jobs = _jobs_by_node(slurm.jobs)
    nodes = _nodes(slurm, jobs)
    for name in dict.fromkeys((*declared, *sorted(nodes))):
        own = nodes.get(name, [])
        found = Counter(one["kind"] for one in own)
        yield {
            "name": name,
            "instance_type": declared[name].instance_type if name in declared else None,
            "is_disabled": name in slurm.disabled_queues,
            "counts": {kind: found[kind] for kind in NODE_KINDS if found[kind]},
            "nodes": own,
        }


def _nodes(slurm: HeadStatus, jobs: Mapping[str, Sequence[str]]) -> Mapping[str, list[Document]]:
    """The nodes by queue, in the order of their numbers."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for group in slurm.nodes:
        for node in _expanded(group.nodes):
            found[group.queue].append((node, group.state))
    return {
        queue: [
            {"name": node, "kind": node_kind(state), "state": state, "jobs": [*jobs.get(node, ())]}
            for node, state in sorted(own, key=lambda one: (len(one[0]), one[0]))
        ]
        for queue, own in found.items()
    }


def _jobs_by_node(jobs: Sequence[HeadJob]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for job in jobs:
        for node in _expanded(job.nodes):
            found[node].append(job.job_id)
    return found


def _expanded(nodes: str) -> Sequence[str]:
    """The names; none of a list that Slurm has cut off."""
    with contextlib.suppress(ValueError):
        return expand(nodes)
    return ()


def _offers(view: ClusterView) -> Iterator[Document]:
    """The declared offers, then others that have machines or back off."""
    machines: Counter[tuple[str, str]] = Counter()
    for group in view.status.groups if view.status else ():
        if group.state in ("pending", "running"):
            machines[group.queue, group.offer] += group.count
    backoffs = {one.offer: one for one in view.slurm.backoffs} if view.slurm else {}
    declared = {(queue.name, offer.key): str(offer.market) for queue in view.queues for offer in queue.offers}
    known = {offer for _, offer in (*declared, *machines)}
    others = [("", offer) for offer in backoffs if offer not in known]
    for queue, offer in dict.fromkeys((*declared, *machines, *others)):
        held = backoffs.get(offer)
        yield {
            "queue": queue or None,
            "offer": offer,
            "market": declared.get((queue, offer)),
            "machines": machines[queue, offer] if view.status else None,
            "backoff": held and {"until": _iso(_time(held.until)), "kind": held.kind, "reason": shorten(held.reason)},
        }


def _answer(one: Answer) -> Document:
    return {"at": _iso(one.at), "problem": one.problem or None, "every_s": one.every_s}


def _usd(amount: Sum) -> Document:
    found = sums_document({"usd": amount})
    return {"usd": found["usd"], "incomplete": found["incomplete"].get("usd", [])}


def _time(moment: int) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
