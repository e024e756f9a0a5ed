"""The principal of an access key: a role, assumed by an instance or through STS. Hold the cloud's lock.

The keys of an instance are derived from the box's secret, its id and its role. They are not stored: a lookup derives
them again. The daemon sets `secret` when it starts.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from corral.box.account import ACCOUNT, OWNER_ARN, PARTITION
from corral.box.api_errors import ApiError
from corral.box.machines.imds_data import TEMPORARY, access_key, role_of
from corral.box.secret import BoxSecret

OWNER_ID = "AIDACORRALBOXOWNER000"
_ADMINISTRATOR = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
secret = BoxSecret(secrets.token_hex(32))
_known: dict[str, tuple[str, str]] = {}  # instance and role by access key; an entry never changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A session of a role: its id and ARN, the role's ARN and policies, and their limits. A user is its own role."""

    id: str
    arn: str
    role_arn: str
    policies: tuple[Mapping[str, Any], ...]
    limits: tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Policies, and their limits: pairs of a kind and a document."""

    policies: tuple[Mapping[str, Any], ...]
    limits: tuple[tuple[str, Mapping[str, Any]], ...]


class UnknownKey(Exception):
    """No principal has this access key."""


def principal_of(key: str) -> Principal | None:
    """The session with this access key; None if it is the account owner's or a user's.

    Raises UnknownKey, and ApiError if the session has expired.
    """
    if not key.startswith(TEMPORARY):
        if key == secret.owner_key or _is_users(key):
            return None
        raise UnknownKey(key)
    if (assumed := sts_backends[ACCOUNT]["aws"].get_assumed_role_from_access_key(key)) is not None:
        if assumed.expiration <= utcnow():
            raise ApiError("ExpiredToken", "The security token included in the request is expired")
        return _session(assumed.role_arn.rpartition("/")[2], assumed.session_name, assumed.policy)
    if key not in _known:
        _known.update((access_key(secret, *one), one) for one in _instances())
    if (found := _known.get(key)) is None:
        raise UnknownKey(key)
    return _session(found[1], found[0])


def instance_of(key: str) -> str | None:
    """The id of the instance with this access key, once it has made a call; None for another principal."""
    return _known[key][0] if key in _known else None


def user_of(key: str) -> Principal:
    """The account's owner, or the user with this access key, as an administrator: the box limits neither's policies."""
    user = iam_backends[ACCOUNT]["aws"].get_user_from_access_key_id(key)
    id, arn = (user.id, user.arn) if user else (OWNER_ID, OWNER_ARN)
    return Principal(id=id, arn=arn, role_arn=arn, policies=(_read(_ADMINISTRATOR),), limits=())


def _is_users(key: str) -> bool:
    users = iam_backends[ACCOUNT]["aws"].users.values()
    return any(held.access_key_id == key and held.status == "Active" for user in users for held in user.access_keys)


def _instances() -> Iterator[tuple[str, str]]:
    """Instances with their roles, also terminated ones, whose credentials remain valid for hours."""
    for _, backend in list(ec2_backends[ACCOUNT].items()):
        for instance in backend.all_instances():
            if (role := role_of(instance)) is not None:
                yield instance.id, role


def _session(name: str, session: str, policy: str | None = None) -> Principal | None:
    iam = iam_backends[ACCOUNT]["aws"]
    role = next((held for held in iam.roles.values() if held.name == name), None)
    if role is None:
        raise ApiError("InvalidClientTokenId", "The security token included in the request is invalid")
    rights = permissions_of(role)
    limits = (*rights.limits, *((("session policy", _read(policy)),) if policy else ()))
    return Principal(
        id=f"{role.id}:{session}",
        arn=f"arn:{PARTITION}:sts::{ACCOUNT}:assumed-role/{name}/{session}",
        role_arn=role.arn,
        policies=rights.policies,
        limits=limits,
    )


def role_tags(arn: str) -> Mapping[str, str]:
    """The tags of the role with this ARN; none if there is no such role."""
    iam = iam_backends[ACCOUNT]["aws"]
    name = next((held.name for held in iam.roles.values() if held.arn == arn), None)
    return {tag["Key"]: tag["Value"] for tag in iam.list_role_tags(name, None)[0]} if name else {}


def permissions_of(holder: Any) -> Permissions:
    """The policies of a role, user or group of moto; a user has those of its groups as well."""
    iam = iam_backends[ACCOUNT]["aws"]
    groups = iam.get_groups_for_user(holder.name) if hasattr(holder, "access_keys") else ()
    texts = [text for one in (holder, *groups) for text in _texts(one)]
    boundary = getattr(holder, "permissions_boundary_arn", None)
    limits = (("permissions boundary", _read(_text(iam.get_policy(boundary)))),) if boundary else ()
    return Permissions(policies=tuple(map(_read, texts)), limits=limits)


def _texts(holder: Any) -> Iterator[str]:
    yield from holder.policies.values()
    yield from map(_text, holder.managed_policies.values())


def _text(policy: Any) -> str:
    """The document of a managed policy's default version."""
    return next(str(one.document) for one in policy.versions if one.version_id == policy.default_version_id)


@cache
def _read(text: str) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(text)
    return document
