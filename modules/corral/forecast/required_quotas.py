"""The account quotas that an environment needs at full size, from its plan alone. Pure.

Reserved capacity needs no additional quota: a reservation counts as on-demand from its first day, used or not, and a
block when it is bought (EC2 User Guide, "On-Demand Capacity Reservations", "Capacity Blocks for ML"). `preflight`
compares the needs with the account's quotas and usage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.aws.quota_defaults import Quota, find_quota, vcpu_quota
from corral.forecast.warnings import address_units, interfaces
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.enums import Market

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
class QuotaNeed:
    """The use of a quota at full size. `who`: the users; empty for the whole environment."""

    quota: Quota
    wanted: float
    who: tuple[str, ...] = ()

    @property
    def beyond_new(self) -> bool:
        """True if it exceeds the default of a new account, so that an increase must be requested."""
        return self.wanted > self.quota.default


def quotas_needed(base: BasePlan, cluster: ClusterPlan) -> tuple[QuotaNeed, ...]:
    """Every quota that the environment uses: vCPUs by family and market, then the others; each sorted by code."""
    vcpus = (
        QuotaNeed(quota=find_quota(code), wanted=wanted, who=tuple(users(cluster, code)))
        for code, wanted in sorted(vcpus_needed(cluster).items())
    )
    others = (
        QuotaNeed(quota=find_quota(code), wanted=wanted) for code, wanted in sorted(other_needs(base, cluster).items())
    )
    return (*vcpus, *others)


def vcpus_needed(cluster: ClusterPlan) -> Mapping[str, int]:
    """vCPUs by quota code, with all nodes running in each market of their queue, the head, and login nodes."""
    needed: Counter[str] = Counter()
    for instance_type, count in _always_running(cluster):
        if quota := vcpu_quota(instance_type, Market.ON_DEMAND.usage_class):
            needed[quota.code] += count
    for queue in cluster.queues:
        for code in market_codes(queue).values():
            needed[code] += queue.max_nodes * vcpus_of(queue)
    return needed


def other_needs(base: BasePlan, cluster: ClusterPlan) -> Mapping[str, float]:
    """The other quotas at full size, by code."""
    own = base.adopted_vpc is None
    nodes = sum(queue.max_nodes * queue.root_gib for queue in cluster.queues)
    logins = len(cluster.login.zones) if cluster.login else 0
    login_gib = logins * cluster.login.root_gib if cluster.login else 0
    needed: dict[str, float] = {
        **({ADDRESSES: 1, VPCS: 1, GATEWAYS: 1} if own else {}),
        **({HOMES: 1} if base.home else {}),
        NICS: interfaces(cluster) + 1 + logins,
        UNITS: address_units(cluster) + 1 + logins,
        GP3_TIB: (nodes + cluster.head.root_gib + cluster.head.state_gib + login_gib) / 1024,
    }
    systems = {system.name: system for system in (*base.lustre, *cluster.lustre)}
    for system in systems.values():
        storage, count = lustre_codes(system.deployment)
        needed[storage] = needed.get(storage, 0) + system.size_gib
        needed[count] = needed.get(count, 0) + 1
    return needed


def users(cluster: ClusterPlan, code: str) -> Iterator[str]:
    """The users of the vCPU quota with this code: `the head`, `queue train`."""
    if head_needs(cluster, code):
        yield "the head" if cluster.login is None else "the head and login nodes"
    yield from (f"queue {queue.name}" for queue in cluster.queues if code in market_codes(queue).values())


def head_needs(cluster: ClusterPlan, code: str) -> int:
    """The vCPUs of head and login nodes that the quota with this code counts."""
    found = ((vcpu_quota(name, Market.ON_DEMAND.usage_class), vcpus) for name, vcpus in _always_running(cluster))
    return sum(vcpus for quota, vcpus in found if quota and quota.code == code)


def _always_running(cluster: ClusterPlan) -> Iterator[tuple[str, int]]:
    """The instance types of head and login nodes, with their vCPUs."""
    yield cluster.head.instance_type, cluster.head.vcpus
    if login := cluster.login:
        yield login.instance_type, login.vcpus * len(login.zones)


def market_codes(queue: QueuePlan) -> Mapping[Market, str]:
    """The code of the vCPU quota of the queue in each market without reserved capacity."""
    markets = dict.fromkeys(offer.market for offer in queue.offers if not offer.market.is_reserved)
    found = {market: vcpu_quota(queue.instance_type, market.usage_class) for market in markets}
    return {market: quota.code for market, quota in found.items() if quota}


def vcpus_of(queue: QueuePlan) -> int:
    """vCPUs of one node."""
    node = queue.node
    return node.sockets * node.cores_per_socket * node.threads_per_core


def lustre_codes(deployment: str) -> tuple[str, str]:
    """The codes of the quotas on storage in GiB, and on file systems, of this kind of Lustre."""
    return next(codes for kind, codes in LUSTRE.items() if deployment.startswith(kind))
