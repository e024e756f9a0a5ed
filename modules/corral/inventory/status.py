"""The status of an environment: up or not, its instances, file systems, expiry, and present cost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from corral.forecast.cost.cost_range import HOURS_PER_MONTH, Sum, Usd, total
from corral.forecast.cost.price_source import PriceList
from corral.inventory.resource_cost import sum_per_month, usd_per_hour
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.scan import read_environment_resources, read_expiry
from corral.model.node_names import fold, name_at
from corral.model.printable import printable
from corral.model.tags import LOGIN_TAG, NODES_TAG, OFFER_TAG, QUEUE_TAG, is_head, login_name


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceGroup:
    """Instances of one queue, offer and state. `nodes`: their Slurm node names, folded."""

    queue: str
    offer: str
    type: str
    state: str
    count: int
    nodes: tuple[str, ...]
    usd_per_hour: Usd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of an environment. `head`: None if there is no head instance. `login`: login nodes, by name.

    `misnamed`: machines tagged as login nodes, under names that corral gives none; they count as neither.
    `load_balancer`: what leads to the login nodes; None without one.
    """

    cluster: str
    base: str
    region: str
    base_is_up: bool
    cluster_is_up: bool
    head: AwsResource | None
    login: tuple[AwsResource, ...]
    misnamed: tuple[AwsResource, ...]
    load_balancer: AwsResource | None
    groups: tuple[InstanceGroup, ...]
    file_systems: tuple[AwsResource, ...]
    ends_at: datetime | None
    base_usd_per_hour: Sum
    cluster_usd_per_hour: Sum

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each machine that is left out of the login nodes."""
        return tuple(
            f"{one.id} is left out: its tag {LOGIN_TAG} is '{printable(one.tags[LOGIN_TAG])}', which is not the name of"
            " a login node - find out who tagged it, then end it or remove the tag"
            for one in self.misnamed
        )

    @property
    def usd_per_hour(self) -> Sum:
        """The hourly cost of base and cluster."""
        return Sum.together([self.base_usd_per_hour, self.cluster_usd_per_hour])


def read_status(session: Any, cluster: str, base: str, prices: PriceList) -> Status:
    """The status of this cluster and its base."""
    resources = read_environment_resources(session, base)
    return find_status(resources, cluster, base, session.region_name, read_expiry(session, cluster), prices)


def find_status(
    resources: Iterable[AwsResource], cluster: str, base: str, region: str, ends_at: datetime | None, prices: PriceList
) -> Status:
    """The status, from these resources. Pure."""
    found = tuple(resources)
    own = tuple(resource for resource in found if resource.cluster == cluster)
    of_base = tuple(resource for resource in found if resource.cluster is None and resource.base == base)
    machines = [resource for resource in own if resource.kind is ResourceKind.INSTANCE]
    return Status(
        cluster=cluster,
        base=base,
        region=region,
        base_is_up=any(resource.kind is ResourceKind.VPC for resource in of_base),
        cluster_is_up=bool(own),
        head=next((one for one in machines if is_head(one.tags)), None),
        login=tuple(sorted((one for one in machines if login_name(one.tags)), key=lambda one: one.tags[LOGIN_TAG])),
        misnamed=tuple(one for one in machines if LOGIN_TAG in one.tags and not login_name(one.tags)),
        load_balancer=next((one for one in own if one.kind is ResourceKind.LOAD_BALANCER), None),
        groups=group_instances([one for one in machines if QUEUE_TAG in one.tags], prices),
        file_systems=tuple(
            resource for resource in (*of_base, *own) if resource.kind in (ResourceKind.HOME, ResourceKind.LUSTRE)
        ),
        ends_at=ends_at,
        base_usd_per_hour=_cost(of_base, prices),
        cluster_usd_per_hour=_cost(own, prices),
    )


def group_instances(instances: Iterable[AwsResource], prices: PriceList) -> tuple[InstanceGroup, ...]:
    """The instances by queue, offer and state, in that order."""
    groups: dict[tuple[str, str, str], list[AwsResource]] = {}
    for one in instances:
        key = (one.tags[QUEUE_TAG], one.tags.get(OFFER_TAG, ""), one.state or "")
        groups.setdefault(key, []).append(one)
    return tuple(_group(*key, groups[key], prices) for key in sorted(groups))


def _group(queue: str, offer: str, state: str, members: list[AwsResource], prices: PriceList) -> InstanceGroup:
    costs = [usd_per_hour(one, prices) for one in members]
    return InstanceGroup(
        queue=queue,
        offer=offer,
        type=", ".join(sorted({one.type or "?" for one in members})),
        state=state,
        count=len(members),
        nodes=tuple(filter(None, (fold(_nodes(members)),))),
        usd_per_hour=None if None in costs else total(cost for cost in costs if cost),
    )


def _nodes(members: Iterable[AwsResource]) -> Iterator[str]:
    """The node names of these instances: the launch index picks one from the launch's list."""
    for one in members:
        with contextlib.suppress(ValueError):  # not corral's tag
            yield name_at(one.tags.get(NODES_TAG, ""), one.launch_index or 0)


def _cost(resources: Iterable[AwsResource], prices: PriceList) -> Sum:
    """The hourly cost of the resources, without data in buckets, which is not measured here."""
    measured = (
        resource
        for resource in resources
        if resource.size_gib is not None or resource.kind not in (ResourceKind.BUCKET, ResourceKind.FILES)
    )
    return sum_per_month(measured, prices).times(1 / HOURS_PER_MONTH)
