"""Whether the account's quotas hold the environment at its largest, beside what the account uses already. Pure.

Reserved capacity takes nothing more: a reservation counts as on-demand from its first day, used or not, and a block
when it is bought (EC2 User Guide, "On-Demand Capacity Reservations", "Capacity Blocks for ML").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from corral.catalog.quotas import find_quota, vcpu_quota
from corral.forecast.notes import address_units, interfaces
from corral.model.cluster import QueuePlan
from corral.model.markets import Market
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="quotas")
ADDRESSES, VPCS, GATEWAYS = "L-0263D0A3", "L-F678F1CE", "L-FE5A380F"
NICS, HOMES, GP3_TIB = "L-DF5E4CA3", "L-848C634D", "L-7A658B76"
UNITS = "L-BB24F6E5"
# Storage in GiB and number of Lustre file systems, by what FSx counts together.
LUSTRE: Mapping[str, tuple[str, str]] = {
    "SCRATCH": ("L-AD2FC696", "L-C48231E5"),
    "PERSISTENT_1": ("L-C8640C82", "L-9AFA1F09"),
    "PERSISTENT_2": ("L-8F1B9C74", "L-FD6F2F22"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """By the codes of quotas: what the account may have, and what others than the environment use of it.

    Where a quota is not in `allowed`, Service Quotas said nothing of it.
    """

    allowed: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """The vCPUs of each family and market, then all else that has a quota."""
    needed = vcpus_needed(wanted)
    for code, vcpus in sorted(needed.items()):
        yield _vcpus(wanted, facts, code, vcpus)
    for code, amount in things_needed(wanted).items():
        if code in facts.allowed:
            yield _thing(facts, code, amount)


def vcpus_needed(wanted: Wanted) -> Mapping[str, int]:
    """vCPUs by the code of their quota, with every node running, each in each of its queue's markets; and the head."""
    needed: Counter[str] = Counter()
    head = vcpu_quota(wanted.cluster.head.instance_type, Market.ON_DEMAND.usage_class)
    if head:
        needed[head.code] += wanted.cluster.head.vcpus
    for queue in wanted.cluster.queues:
        for code in _codes(queue).values():
            needed[code] += queue.max_nodes * _vcpus_of(queue)
    return needed


def things_needed(wanted: Wanted) -> Mapping[str, float]:
    """What else the environment takes of quotas, at its largest, by code."""
    base, cluster = wanted.base, wanted.cluster
    own = base.adopted_vpc is None
    nodes = sum(queue.max_nodes * queue.root_gib for queue in cluster.queues)
    needed: dict[str, float] = {
        **({ADDRESSES: 1, VPCS: 1, GATEWAYS: 1} if own else {}),
        **({HOMES: 1} if base.home else {}),
        NICS: interfaces(cluster) + 1,
        UNITS: address_units(cluster) + 1,
        GP3_TIB: (nodes + cluster.head.root_gib + cluster.head.state_gib) / 1024,
    }
    systems = {system.name: system for system in (*base.lustre, *cluster.lustre)}
    for system in systems.values():
        storage, count = lustre_codes(system.deployment)
        needed[storage] = needed.get(storage, 0) + system.size_gib
        needed[count] = needed.get(count, 0) + 1
    return needed


def lustre_codes(deployment: str) -> tuple[str, str]:
    """The codes of the quotas on storage in GiB, and on file systems, of this kind of Lustre."""
    return next(codes for kind, codes in LUSTRE.items() if deployment.startswith(kind))


def _vcpus(wanted: Wanted, facts: Facts, code: str, needed: int) -> Finding:
    quota = find_quota(code)
    allowed, used = facts.allowed.get(code, quota.default), facts.used.get(code, 0.0)
    free = allowed - used
    who = [queue for queue in wanted.cluster.queues if code in _codes(queue).values()]
    names = ", ".join(_named(wanted, code, who))
    has = f"{_amount(allowed)} vCPUs, {_amount(used)} used by others"
    if free >= needed:
        return _TELL.ok(quota.name, f"{has}; up to {needed:,} for {names}")
    fix = _ask_for(quota.service, code, used + needed)
    text = f"{has}; up to {needed:,} wanted for {names}"
    if _head_needs(wanted, code) > free or any(not _starts_a_node(queue, facts) for queue in who):
        return _TELL.fail(quota.name, text, fix)
    return _TELL.warn(quota.name, text, fix)


def _thing(facts: Facts, code: str, needed: float) -> Finding:
    quota, allowed, used = find_quota(code), facts.allowed[code], facts.used.get(code, 0.0)
    text = f"{_amount(allowed)} {quota.unit}, {_amount(used)} used by others; up to {_amount(needed)} wanted"
    if used + needed <= allowed:
        return _TELL.ok(quota.name, text)
    fix = _ask_for(quota.service, code, used + needed)
    # Nodes come one by one: fewer of them start than the queue may have.
    return _TELL.warn(quota.name, text, fix) if code in (NICS, UNITS, GP3_TIB) else _TELL.fail(quota.name, text, fix)


def _starts_a_node(queue: QueuePlan, facts: Facts) -> bool:
    """Whether one node of the queue fits in some market, or comes from reserved capacity."""
    free = (
        facts.allowed.get(code, find_quota(code).default) - facts.used.get(code, 0.0) for code in _codes(queue).values()
    )
    return any(offer.market.is_reserved for offer in queue.offers) or any(one >= _vcpus_of(queue) for one in free)


def _codes(queue: QueuePlan) -> Mapping[Market, str]:
    """The code of the quota on the queue's vCPUs in each market where nothing is reserved for it."""
    markets = dict.fromkeys(offer.market for offer in queue.offers if not offer.market.is_reserved)
    found = {market: vcpu_quota(queue.instance_type, market.usage_class) for market in markets}
    return {market: quota.code for market, quota in found.items() if quota}


def _named(wanted: Wanted, code: str, queues: Iterable[QueuePlan]) -> Iterator[str]:
    if _head_needs(wanted, code):
        yield "the head"
    yield from (f"queue {queue.name}" for queue in queues)


def _head_needs(wanted: Wanted, code: str) -> int:
    head = vcpu_quota(wanted.cluster.head.instance_type, Market.ON_DEMAND.usage_class)
    return wanted.cluster.head.vcpus if head and head.code == code else 0


def _vcpus_of(queue: QueuePlan) -> int:
    node = queue.node
    return node.sockets * node.cores_per_socket * node.threads_per_core


def _ask_for(service: str, code: str, value: float) -> str:
    words = f"--service-code {service} --quota-code {code} --desired-value {_amount(value).replace(',', '')}"
    return f"aws service-quotas request-service-quota-increase {words}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
