"""Whether the account's quotas hold the environment at its largest, beside what the account uses already. Pure.

What the environment takes of them the forecast knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from corral.catalog.quotas import find_quota
from corral.forecast.quotas import (
    GP3_TIB,
    NICS,
    UNITS,
    head_needs,
    market_codes,
    takers,
    things_needed,
    vcpus_needed,
    vcpus_of,
)
from corral.model.cluster import QueuePlan
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="quotas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """By the codes of quotas: what the account may have, and what others than the environment use of it.

    Where a quota is not in `allowed`, Service Quotas said nothing of it.
    """

    allowed: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """The vCPUs of each family and market, then all else that has a quota."""
    needed = vcpus_needed(wanted.cluster)
    for code, vcpus in sorted(needed.items()):
        yield _vcpus(wanted, facts, code, vcpus)
    for code, amount in things_needed(wanted.base, wanted.cluster).items():
        if code in facts.allowed:
            yield _thing(facts, code, amount)


def _vcpus(wanted: Wanted, facts: Facts, code: str, needed: int) -> Finding:
    quota = find_quota(code)
    allowed, used = facts.allowed.get(code, quota.default), facts.used.get(code, 0.0)
    free = allowed - used
    who = [queue for queue in wanted.cluster.queues if code in market_codes(queue).values()]
    names = ", ".join(takers(wanted.cluster, code))
    has = f"{_amount(allowed)} vCPUs, {_amount(used)} used by others"
    if free >= needed:
        return _TELL.ok(quota.name, f"{has}; up to {needed:,} for {names}")
    fix = _ask_for(quota.service, code, used + needed)
    text = f"{has}; up to {needed:,} wanted for {names}"
    if 0 < head_needs(wanted.cluster, code) > free or any(not _starts_a_node(queue, facts) for queue in who):
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
        facts.allowed.get(code, find_quota(code).default) - facts.used.get(code, 0.0)
        for code in market_codes(queue).values()
    )
    return any(offer.market.is_reserved for offer in queue.offers) or any(one >= vcpus_of(queue) for one in free)


def _ask_for(service: str, code: str, value: float) -> str:
    words = f"--service-code {service} --quota-code {code} --desired-value {_amount(value).replace(',', '')}"
    return f"aws service-quotas request-service-quota-increase {words}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
