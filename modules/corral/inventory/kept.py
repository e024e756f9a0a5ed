"""Kept data of a base: what there is, what it costs, and the one way to delete it. Only its name, typed, asks for that.

A key cannot be deleted at once: it waits, unusable, and can be saved until then. Its tags go at once, so that the next
up makes a new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from corral.forecast.catalogue import catalogue_prices
from corral.forecast.prices import PriceList
from corral.inventory import buckets
from corral.inventory.account import read_tagged_with
from corral.inventory.things import BASE_TAG, KEEP_TAG, Kind, Thing
from corral.inventory.worth import usd_per_month

KEY_WAITS_DAYS = 30  # KMS's longest
PAUSE_S = 2  # mount targets take about half a minute to go


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptThing:
    """Something that outlives its base. `size_gib`: None where it has none or AWS has not counted yet."""

    kind: Kind
    id: str
    name: str
    size_gib: float | None
    usd_per_month: float | None

    @property
    def size(self) -> str:
        """The size for the eye, empty where there is none."""
        return "" if self.size_gib is None else f"{self.size_gib:,.1f} GiB"


def kept_things(session: Any, base: str, prices: PriceList | None = None) -> tuple[KeptThing, ...]:
    """What this base keeps, by kind, with what it costs a month as long as it is kept."""
    known = prices or catalogue_prices(session.region_name)
    return tuple(_kept(thing, known) for thing in _sized(session, base))


def delete_kept(
    session: Any, base: str, pause: Callable[[], None] = lambda: time.sleep(PAUSE_S)
) -> tuple[KeptThing, ...]:
    """What was deleted: everything that this base kept. The key comes last, since it opens the rest."""
    things, deleted = _sized(session, base), kept_things(session, base)
    for thing in things:
        _DELETE[thing.kind](session, thing, pause)
    return deleted


def sized(session: Any, thing: Thing) -> Thing:
    """The thing with its size, where that has to be counted first."""
    return buckets.sized(session, thing) if thing.kind is Kind.BUCKET else thing


def _kept(thing: Thing, prices: PriceList) -> KeptThing:
    usd = usd_per_month(thing, prices)
    return KeptThing(
        kind=thing.kind,
        id=thing.id,
        name=thing.name,
        size_gib=thing.size_gib,
        usd_per_month=usd.high if usd else None,
    )


def _sized(session: Any, base: str) -> tuple[Thing, ...]:
    things = read_tagged_with(session, BASE_TAG, base)
    kept = [thing for thing in things if thing.keep is not None and thing.kind in _DELETE]
    return tuple(sized(session, thing) for thing in kept)


def _delete_bucket(session: Any, bucket: Thing, pause: Callable[[], None]) -> None:
    buckets.empty(session, bucket.id)
    session.client("s3").delete_bucket(Bucket=bucket.id)


def _delete_home(session: Any, home: Thing, pause: Callable[[], None]) -> None:
    efs = session.client("efs")
    for target in efs.describe_mount_targets(FileSystemId=home.id)["MountTargets"]:
        efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    while efs.describe_mount_targets(FileSystemId=home.id)["MountTargets"]:
        pause()
    efs.delete_file_system(FileSystemId=home.id)


def _delete_key(session: Any, key: Thing, pause: Callable[[], None]) -> None:
    kms = session.client("kms")
    kms.untag_resource(KeyId=key.id, TagKeys=[BASE_TAG, KEEP_TAG])
    kms.schedule_key_deletion(KeyId=key.id, PendingWindowInDays=KEY_WAITS_DAYS)


def _delete_lustre(session: Any, system: Thing, pause: Callable[[], None]) -> None:
    fsx = session.client("fsx")
    fsx.delete_file_system(FileSystemId=system.id)
    try:
        while fsx.describe_file_systems(FileSystemIds=[system.id])["FileSystems"]:
            pause()
    except fsx.exceptions.FileSystemNotFound:
        return


_DELETE: dict[Kind, Callable[[Any, Thing, Callable[[], None]], None]] = {
    Kind.BUCKET: _delete_bucket,
    Kind.LUSTRE: _delete_lustre,
    Kind.HOME: _delete_home,
    Kind.KEY: _delete_key,
}
