"""Orphaned resources of an account. Pure: resources and live stacks in, orphans out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from corral.inventory.resources import AwsResource, ResourceKind
from corral.model.tags import QUEUE_TAG

_LOOSE = frozenset({ResourceKind.VOLUME, ResourceKind.INTERFACE})  # EC2 deletes a compute node's with its instance


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStacks:
    """The names of the bases and clusters with live stacks.

    `queues`: the queue names of each cluster; a cluster whose deployment has not finished is missing.
    """

    bases: frozenset[str]
    clusters: frozenset[str]
    queues: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A resource that no live stack owns, and the reason."""

    resource: AwsResource
    reason: str


def find_orphans(resources: Iterable[AwsResource], alive: LiveStacks) -> tuple[Orphan, ...]:
    """The orphans among these resources, in their order. Retained data is never an orphan."""
    evaluated = ((resource, _reason(resource, alive)) for resource in resources if resource.keep is None)
    return tuple(Orphan(resource=resource, reason=reason) for resource, reason in evaluated if reason)


def find_retained(resources: Iterable[AwsResource], alive: LiveStacks) -> tuple[AwsResource, ...]:
    """The retained data among these resources whose base is not up, in their order."""
    return tuple(resource for resource in resources if resource.keep is not None and resource.base not in alive.bases)


def of_names(orphans: Iterable[Orphan], clusters: Collection[str], bases: Collection[str]) -> tuple[Orphan, ...]:
    """The resources whose cluster (or base, if they have no cluster) has one of these names."""
    return tuple(
        one
        for one in orphans
        if (one.resource.cluster in clusters if one.resource.cluster is not None else one.resource.base in bases)
    )


def _reason(resource: AwsResource, alive: LiveStacks) -> str | None:
    if resource.cluster is not None and resource.cluster not in alive.clusters:
        return f"cluster {resource.cluster} is not up"
    if resource.cluster is None and resource.base not in alive.bases:
        return f"base {resource.base} is not up"
    if resource.kind in _LOOSE and resource.state == "available" and QUEUE_TAG in resource.tags:
        return "its instance is gone"
    queues = alive.queues.get(resource.cluster or "")
    queue = resource.tags.get(QUEUE_TAG)
    if resource.kind is ResourceKind.INSTANCE and queues is not None and queue is not None and queue not in queues:
        return f"cluster {resource.cluster} has no queue {queue}"
    return None
