"""The lives of clusters that a base's bucket keeps: which there are, and what is in one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from corral.inventory.tagged import read_tagged
from corral.inventory.things import Kind
from corral.model.lives import KeptLife, began_in, life_word, lives_prefix, unpacked


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeObject:
    """An object that keeps a life. `kept`: when it was written last."""

    bucket: str
    key: str
    began: datetime
    kept: datetime
    size_bytes: int

    @property
    def word(self) -> str:
        """How people call this life."""
        return life_word(int(self.began.timestamp()))


class UnreadableLife(Exception):
    """What is kept of a life and cannot be read; its text is a sentence."""


def lives_of(session: Any, base: str, cluster: str) -> tuple[LifeObject, ...]:
    """The lives of the cluster that the base keeps, the newest first; none where the base has no bucket."""
    buckets = [one.id for one in read_tagged(session) if one.kind is Kind.BUCKET and one.base == base and one.keep]
    found = [one for bucket in buckets for one in _listed(session, bucket, cluster)]
    return tuple(sorted(found, key=lambda one: (one.began, one.bucket), reverse=True))


def read_life(session: Any, one: LifeObject) -> KeptLife:
    """What the object keeps. Raises UnreadableLife."""
    content = session.client("s3").get_object(Bucket=one.bucket, Key=one.key)["Body"].read()
    try:
        return unpacked(content)
    except ValueError as error:
        raise UnreadableLife(f"s3://{one.bucket}/{one.key} cannot be read: {error}") from None


def _listed(session: Any, bucket: str, cluster: str) -> list[LifeObject]:
    pages = session.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=lives_prefix(cluster))
    found = [(item, began_in(cluster, item["Key"])) for page in pages for item in page.get("Contents", ())]
    return [
        LifeObject(
            bucket=bucket,
            key=item["Key"],
            began=datetime.fromtimestamp(began, UTC),
            kept=item["LastModified"],
            size_bytes=item["Size"],
        )
        for item, began in found
        if began is not None
    ]
