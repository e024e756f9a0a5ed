"""Recorded histories of clusters in a base's bucket: their list, and the content of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from corral.inventory.resources import ResourceKind
from corral.inventory.tagged import read_tagged
from corral.model.history import StoredHistory, began_of_key, history_id, history_prefix, unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryObject:
    """An object with a cluster's history. `saved_at`: its last modification."""

    bucket: str
    key: str
    began: datetime
    saved_at: datetime

    @property
    def id(self) -> str:
        """The name of this history for users."""
        return history_id(int(self.began.timestamp()))


class UnreadableHistory(Exception):
    """A saved history that cannot be read; the text is a message for the user."""


def list_histories(session: Any, base: str, cluster: str) -> tuple[HistoryObject, ...]:
    """The recorded histories of the cluster, newest first; none if the base has no bucket."""
    buckets = [
        one.id for one in read_tagged(session) if one.kind is ResourceKind.BUCKET and one.base == base and one.keep
    ]
    found = [one for bucket in buckets for one in _listed(session, bucket, cluster)]
    return tuple(sorted(found, key=lambda one: (one.began, one.bucket), reverse=True))


def read_history(session: Any, one: HistoryObject) -> StoredHistory:
    """The history in this object. Raises UnreadableHistory."""
    content = session.client("s3").get_object(Bucket=one.bucket, Key=one.key)["Body"].read()
    try:
        return unpack(content)
    except ValueError as error:
        raise UnreadableHistory(f"s3://{one.bucket}/{one.key} cannot be read: {error}") from None


def _listed(session: Any, bucket: str, cluster: str) -> list[HistoryObject]:
    pages = (
        session.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=history_prefix(cluster))
    )
    found = [(item, began_of_key(cluster, item["Key"])) for page in pages for item in page.get("Contents", ())]
    return [
        HistoryObject(
            bucket=bucket,
            key=item["Key"],
            began=datetime.fromtimestamp(began, UTC),
            saved_at=item["LastModified"],
        )
        for item, began in found
        if began is not None
    ]
