"""KMS: a change of a key's tags or aliases decides about permissions only after minutes; a key pending deletion is of
no use.

Sources: KMS developer guide, "ABAC for AWS KMS": up to five minutes, while calls show the change at once; "Key states
of AWS KMS keys".
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import moto.kms.urls
from moto.core.responses import ActionResult
from moto.kms.exceptions import ValidationException
from moto.kms.models import KmsBackend, kms_backends
from moto.kms.responses import KmsResponse

from corral.box.api_errors import ApiError
from corral.box.delays import KMS_ALIASES, KMS_TAGS, seconds

# What fails for a key pending deletion. Source: the table of "Key states of AWS KMS keys".
_REFUSED_WHILE_PENDING = frozenset({
    "CreateAlias", "CreateGrant", "Decrypt", "DisableKey", "DisableKeyRotation", "EnableKey", "EnableKeyRotation",
    "Encrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncrypt", "ScheduleKeyDeletion", "Sign",
    "TagResource", "UntagResource", "UpdateAlias", "UpdateKeyDescription", "Verify",
})  # fmt: skip


_LONGEST_MESSAGE = 4096  # bytes. Source: KMS API reference, Sign
Labels = TypeVar("Labels")  # of a key: its tags, or its aliases


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange(Generic[Labels]):
    """All tags, or all aliases, of a key after a change. `at`: seconds since the epoch."""

    at: float
    labels: Labels


def possible_labels(
    changes: Sequence[LabelChange[Labels]], now: float, *, none: Labels, settle_s: float
) -> tuple[Labels, ...]:
    """The tags, or the aliases, that may decide about a call at this time, the oldest first.

    `changes`: in the order of time, from the key's creation on. `none`: what a key has before the first.
    `settle_s`: how long a change may not count yet.
    """
    settled = [change.labels for change in changes if now - change.at >= settle_s]
    recent = [change.labels for change in changes if now - change.at < settle_s]
    return (settled[-1] if settled else none, *recent)


class BoxKMS(KmsBackend):
    """The KMS of one account and region."""

    _url_module = moto.kms.urls

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.tag_changes: dict[str, list[LabelChange[Mapping[str, str]]]] = {}
        self.alias_changes: dict[str, list[LabelChange[tuple[str, ...]]]] = {}

    def create_key(self, *arguments: Any, **named: Any) -> Any:
        """Create a key with its tags; unless it has another use, it encrypts (KMS API Reference, CreateKey)."""
        key = super().create_key(*arguments, **named)
        key.key_usage = key.key_usage or "ENCRYPT_DECRYPT"
        self._record_tags(key.id)
        return key

    def tag_resource(self, arn: str, tags: dict[str, str]) -> None:
        """Add tags to a key."""
        super().tag_resource(arn, tags)
        self._record_tags(self.get_key_id(arn))

    def untag_resource(self, arn: str, tag_keys: list[str]) -> None:
        """Remove tags from a key."""
        super().untag_resource(arn, tag_keys)
        self._record_tags(self.get_key_id(arn))

    def create_alias(self, target_key_id: str, alias_name: str) -> Any:
        """Give a key an alias."""
        with self._aliases_recorded():
            return super().create_alias(target_key_id, alias_name)

    def update_alias(self, target_key_id: str, alias_name: str) -> Any:
        """Move an alias to another key."""
        with self._aliases_recorded():
            return super().update_alias(target_key_id, alias_name)

    def delete_alias(self, alias_name: str) -> None:
        """Take an alias from its key."""
        with self._aliases_recorded():
            super().delete_alias(alias_name)

    def tags_for_authorization(self, key_id: str) -> tuple[Mapping[str, str], ...]:
        """The sets of tags that may decide about a call for this key."""
        changes = self.tag_changes.get(key_id)
        if not changes:
            return (self._tags(key_id),)
        return possible_labels(changes, time.time(), none={}, settle_s=seconds(KMS_TAGS))

    def aliases_for_authorization(self, key_id: str) -> tuple[tuple[str, ...], ...]:
        """The sets of aliases that may decide about a call for this key."""
        changes = self.alias_changes.get(key_id, [])
        return possible_labels(changes, time.time(), none=(), settle_s=seconds(KMS_ALIASES))

    def find_key(self, named: str | None) -> Any:
        """The key of this id, ARN or alias; None if there is none."""
        name = (named or "").rpartition(":")[2].removeprefix("key/")
        id = self.get_key_id_from_alias(name) if name.startswith("alias/") else name
        return self.keys.get(id or "")

    def _record_tags(self, key_id: str) -> None:
        self.tag_changes.setdefault(key_id, []).append(LabelChange(at=time.time(), labels=self._tags(key_id)))

    @contextmanager
    def _aliases_recorded(self) -> Iterator[None]:
        """Record each key whose aliases differ afterwards."""
        before = self._aliases()
        yield
        for key_id, aliases in self._aliases().items():
            if aliases != before.get(key_id, ()):
                self.alias_changes.setdefault(key_id, []).append(LabelChange(at=time.time(), labels=aliases))

    def _aliases(self) -> dict[str, tuple[str, ...]]:
        return {key_id: tuple(sorted(key.aliases)) for key_id, key in self.keys.items()}

    def _tags(self, key_id: str) -> dict[str, str]:
        return {tag["TagKey"]: tag["TagValue"] for tag in self.list_resource_tags(key_id)["Tags"]}


class BoxKmsResponse(KmsResponse):
    """The actions of KMS."""

    def call_action(self) -> Any:
        """Answer a call. Raises ApiError for one that a key pending deletion cannot serve."""
        if self._get_action() in _REFUSED_WHILE_PENDING:
            for name in ("TargetKeyId", "KeyId", "DestinationKeyId"):
                key = self.kms_backend.find_key(self._get_param(name))
                if key is not None and key.key_state == "PendingDeletion":
                    refused = ApiError("KMSInvalidStateException", f"{key.arn} is pending deletion.")
                    return self.serialized(ActionResult(refused))
        return super().call_action()

    def sign(self) -> str:
        """Sign a message. Raises ValidationException for one that is too long."""
        if len(self._get_param("Message")) > _LONGEST_MESSAGE:
            raise ValidationException(
                "1 validation error detected: Value at 'message' failed to satisfy constraint: Member must have length"
                f" less than or equal to {_LONGEST_MESSAGE}"
            )
        return str(super().sign())


def install() -> None:
    """Replace moto's KMS with the box's."""
    moto.kms.urls.url_paths["{0}/$"] = BoxKmsResponse.dispatch
    kms_backends.backend = BoxKMS
