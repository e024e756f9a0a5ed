"""Retained data of a base: its list, its cost, and its deletion, which requires typing the base's name.

Whoever may set tags could give those of a base to somebody else's data. So the base's own is what its state has or what
`kept_proof` finds to be its own; the rest is neither deleted nor measured.

KMS deletes a key after a waiting period, in which the key is unusable and the deletion can be cancelled. Its keep tag
is removed first, so the next deployment creates a new key. Its base's tag stays: the deletion is permitted by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.price_source import PriceList
from corral.inventory import buckets
from corral.inventory.kept_proof import retained_problem
from corral.inventory.resource_cost import usd_per_month
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.scan import read_tagged_with
from corral.model.tags import BASE_TAG, KEEP_TAG

KEY_WAITS_DAYS = 30  # KMS's maximum
PAUSE_S = 2  # deleting a mount target takes about 30 s


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedResource:
    """A resource that outlives its base. `size_gib`: None if it has none or AWS has not measured it yet."""

    kind: ResourceKind
    id: str
    name: str
    size_gib: float | None
    usd_per_month: float | None

    @property
    def size(self) -> str:
        """The size as text; empty if unknown."""
        return "" if self.size_gib is None else f"{self.size_gib:,.1f} GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedData:
    """The data with a base's keep tag, by kind. `unproven`: what is not its own, as far as is known, and why."""

    own: tuple[RetainedResource, ...]
    unproven: tuple[tuple[AwsResource, str], ...] = ()


def list_retained(
    session: Any, base: str, in_state: Collection[str] = (), prices: PriceList | None = None
) -> RetainedData:
    """The retained data of this base, with the monthly cost. `in_state`: the ids that the base's state has."""
    costs = prices or catalog_prices(session.region_name)
    own: list[RetainedResource] = []
    unproven: list[tuple[AwsResource, str]] = []
    for one in _tagged(session, base):
        problem = None if one.id in in_state else retained_problem(session, base, one.kind, one.id)
        if problem is None:
            own.append(_retained(with_size(session, one), costs))
        else:
            unproven.append((one, problem))
    return RetainedData(own=tuple(own), unproven=tuple(unproven))


def delete_retained(
    session: Any,
    base: str,
    confirmed: Iterable[RetainedResource],
    pause: Callable[[], None] = lambda: time.sleep(PAUSE_S),
) -> None:
    """Delete these, as far as they still exist, and nothing else. The key comes last: the rest is encrypted with it."""
    wanted = {(one.kind, one.id) for one in confirmed}
    for resource in _tagged(session, base):
        if (resource.kind, resource.id) in wanted:
            _DELETE[resource.kind](session, resource, pause)


def with_size(session: Any, resource: AwsResource) -> AwsResource:
    """The resource with its size, counted if necessary."""
    return buckets.measure_bucket(session, resource) if resource.kind is ResourceKind.BUCKET else resource


def _retained(resource: AwsResource, prices: PriceList) -> RetainedResource:
    usd = usd_per_month(resource, prices)
    return RetainedResource(
        kind=resource.kind,
        id=resource.id,
        name=resource.name,
        size_gib=resource.size_gib,
        usd_per_month=usd.high if usd else None,
    )


def _tagged(session: Any, base: str) -> tuple[AwsResource, ...]:
    resources = read_tagged_with(session, BASE_TAG, base)
    return tuple(resource for resource in resources if resource.keep is not None and resource.kind in _DELETE)


def _delete_bucket(session: Any, bucket: AwsResource, pause: Callable[[], None]) -> None:
    buckets.empty(session, bucket.id)
    session.client("s3").delete_bucket(Bucket=bucket.id)


def _delete_home(session: Any, home: AwsResource, pause: Callable[[], None]) -> None:
    efs = session.client("efs")
    for target in efs.describe_mount_targets(FileSystemId=home.id)["MountTargets"]:
        efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    while efs.describe_mount_targets(FileSystemId=home.id)["MountTargets"]:
        pause()
    efs.delete_file_system(FileSystemId=home.id)


def _delete_key(session: Any, key: AwsResource, pause: Callable[[], None]) -> None:
    kms = session.client("kms")
    # Permitted by the same tag as what follows, which KMS may not see for five minutes. Refused here, the key keeps its
    # alias, which proves in the next run that it is this base's.
    kms.tag_resource(KeyId=key.id, Tags=[{"TagKey": BASE_TAG, "TagValue": key.tags[BASE_TAG]}])
    for alias in kms.list_aliases(KeyId=key.id)["Aliases"]:  # its name must be free for the next key
        kms.delete_alias(AliasName=alias["AliasName"])
    kms.untag_resource(KeyId=key.id, TagKeys=[KEEP_TAG])
    kms.schedule_key_deletion(KeyId=key.id, PendingWindowInDays=KEY_WAITS_DAYS)


def _delete_lustre(session: Any, system: AwsResource, pause: Callable[[], None]) -> None:
    fsx = session.client("fsx")
    fsx.delete_file_system(FileSystemId=system.id)
    try:
        while fsx.describe_file_systems(FileSystemIds=[system.id])["FileSystems"]:
            pause()
    except fsx.exceptions.FileSystemNotFound:
        return


_DELETE: dict[ResourceKind, Callable[[Any, AwsResource, Callable[[], None]], None]] = {
    ResourceKind.BUCKET: _delete_bucket,
    ResourceKind.LUSTRE: _delete_lustre,
    ResourceKind.HOME: _delete_home,
    ResourceKind.KEY: _delete_key,
}
