"""What a cleanup finds in one region: orphans, retained data, and orphans of unknown projects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from corral.inventory.live_stacks import read_live_stacks
from corral.inventory.orphans import Orphan, find_orphans, find_retained, of_names
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.retained_data import with_size
from corral.inventory.scan import Session, read_resources


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredNames:
    """The declared names: those of one environment, or of a whole project."""

    bases: frozenset[str]
    clusters: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupFindings:
    """What a cleanup found in a region, compared with the stacks of `backend`.

    `foreign`: orphans of unknown names. `retained`: the data of bases that are not up.
    """

    region: str
    backend: str
    orphans: tuple[Orphan, ...]
    foreign: tuple[Orphan, ...]
    retained: tuple[AwsResource, ...]


def find_in_region(session: Session, backend: str, declared: DeclaredNames, *, only_declared: bool) -> CleanupFindings:
    """The resources to clean up, compared with the live stacks of this backend. `only_declared` omits all others."""
    resources, alive = read_resources(session), read_live_stacks(backend, session)
    left = find_orphans(resources, alive)
    ours = of_names(left, clusters=declared.clusters, bases=declared.bases)
    retained = (
        resource for resource in find_retained(resources, alive) if not only_declared or resource.base in declared.bases
    )
    return CleanupFindings(
        region=session.region_name,
        backend=backend,
        orphans=ours,
        foreign=() if only_declared else tuple(one for one in left if one not in ours),
        retained=tuple(with_size(session, resource) for resource in retained),
    )


def deduplicated(found: Iterable[CleanupFindings]) -> tuple[CleanupFindings, ...]:
    """The findings of several regions, each resource in the first one only: every region lists global resources."""
    seen: set[tuple[ResourceKind, str]] = set()
    once = []
    for one in found:
        resources = (*(left.resource for left in (*one.orphans, *one.foreign)), *one.retained)
        new = {_key(resource) for resource in resources} - seen
        once.append(
            replace(
                one,
                orphans=tuple(left for left in one.orphans if _key(left.resource) in new),
                foreign=tuple(left for left in one.foreign if _key(left.resource) in new),
                retained=tuple(resource for resource in one.retained if _key(resource) in new),
            )
        )
        seen |= new
    return tuple(once)


def _key(resource: AwsResource) -> tuple[ResourceKind, str]:
    return resource.kind, resource.id
