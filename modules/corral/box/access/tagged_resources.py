"""The file systems and keys that a call is about, with their tags as condition keys. Hold the cloud's lock.

Source: Service Authorization Reference, resource types of Amazon FSx, Amazon EFS and AWS KMS; the actions on mount
targets are those on their file system.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from corral.box.access.policy_evaluator import Context
from corral.box.account import ACCOUNT, PARTITION
from corral.box.api_calls import Call

Fields = Mapping[str, Any]
# These take ids only as filters: they are about all resources.
_READS = ("Describe", "List")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedResource:
    """A resource: its ARN, and its tags and other facts by condition key in lower case."""

    arn: str
    context: Context = field(default_factory=dict)


def tag_context(tags: Mapping[str, str], scopes: tuple[str, ...] = ("aws",)) -> dict[str, str]:
    """The tags of a resource by condition key. `scopes`: the prefixes of the service's keys."""
    return {f"{scope}:resourcetag/{key}".lower(): value for key, value in tags.items() for scope in scopes}


def tagged_resources(prefix: str, call: Call, fields: Fields, path: str) -> Iterator[TaggedResource]:
    """The resources of a call of a service with this IAM prefix; none for a call about all, or of another service."""
    if (find := _BY_PREFIX.get(prefix)) is not None:
        yield from find(call, fields, path)


def mount_target(call: Call, path: str) -> Any:
    """Moto's mount target in the path of a call of EFS; None without one."""
    from moto.efs.models import efs_backends

    targets = efs_backends[ACCOUNT][call.region].mount_targets_by_id
    return next((targets[part] for part in path.split("/") if part in targets), None)


def _efs(call: Call, fields: Fields, path: str) -> Iterator[TaggedResource]:
    from moto.efs.models import efs_backends

    backend = efs_backends[ACCOUNT][call.region]
    if call.action.startswith(_READS):
        return
    target = mount_target(call, path)
    named = target.file_system_id if target else fields.get("FileSystemId")
    for id in (named, *path.split("/")):
        if id in backend.file_systems_by_id:
            tags = {tag["Key"]: tag["Value"] for tag in backend.list_tags_for_resource(id)}
            arn = f"arn:{PARTITION}:elasticfilesystem:{call.region}:{ACCOUNT}:file-system/{id}"
            yield TaggedResource(arn=arn, context=tag_context(tags))


def _fsx(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    from moto.fsx.models import fsx_backends

    backend = fsx_backends[ACCOUNT][call.region]
    if call.action.startswith(_READS):
        return
    for resource in backend.iter_tagged_resources():
        names = {resource.arn, resource.arn.rpartition("/")[2]}
        if names & {fields.get("FileSystemId"), fields.get("AssociationId"), fields.get("ResourceARN")}:
            yield TaggedResource(arn=resource.arn, context=tag_context(resource.tags))
    if call.action == "CreateDataRepositoryTask":
        yield TaggedResource(arn=f"{backend.arn_prefix}:task/*")


def _kms(call: Call, fields: Fields, _: str) -> Iterator[TaggedResource]:
    """The key, once for each set of labels that may count, and the alias that the call creates, changes or deletes."""
    if call.action == "ListAliases":
        return
    alias = fields.get("AliasName")
    if alias is not None:
        yield TaggedResource(arn=f"arn:{PARTITION}:kms:{call.region}:{ACCOUNT}:{alias}")
    name = fields.get("TargetKeyId") or fields.get("KeyId") or alias or _encrypting_key(fields)
    yield from kms_key(call.region, str(name))


def _encrypting_key(fields: Fields) -> str:
    """The id of the key of a ciphertext: calls such as Decrypt need not name a key. Empty if there is none."""
    from moto.kms.utils import KEY_ID_LEN

    with suppress(ValueError):
        return b64decode(str(fields.get("CiphertextBlob", "")))[:KEY_ID_LEN].decode("ascii")
    return ""


def kms_key(region: str, name: str) -> Iterator[TaggedResource]:
    """The key with this id, ARN or alias, once for each set of tags and aliases that may count; none if it does not
    exist.
    """
    from moto.kms.models import kms_backends

    backend = kms_backends[ACCOUNT][region]
    named = backend.get_alias_name(name)
    key_id = backend.get_key_id_from_alias(named) if named.startswith("alias/") else named
    if key_id is not None and (key_id := backend.get_key_id(key_id)) in backend.keys:
        labels = product(backend.tags_for_authorization(key_id), backend.aliases_for_authorization(key_id))
        for tags, aliases in labels:
            known: Context = {"kms:resourcealiases": aliases} if aliases else {}
            yield TaggedResource(arn=backend.keys[key_id].arn, context={**tag_context(tags), **known})


_BY_PREFIX: Mapping[str, Callable[[Call, Fields, str], Iterator[TaggedResource]]] = {
    "elasticfilesystem": _efs,
    "fsx": _fsx,
    "kms": _kms,
}
