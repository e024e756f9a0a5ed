"""IAM: the policies that AWS keeps in every account are there when named, without holding all thousand of them.

Roles of services have the names that AWS gives them, each once. Policies are as long as AWS lets them be.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import json
import unicodedata
from functools import cache
from typing import Any

import moto.iam.urls
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend
from moto.iam.responses import IamResponse

from corral.box import service_linked_roles
from corral.box.iam_simulation import SimulationActions
from corral.box.refusals import Refused

LONGEST = 6_144  # characters of a managed policy
TAG_SIGNS = "_.:/=+-@"  # beside letters, digits and spaces. Source: IAM API reference, Tag
LONGEST_OF_ROLE = 10_240  # characters of all inline policies of a role


class BoxIAM(IAMBackend):
    """The IAM of one account."""

    _url_module = moto.iam.urls

    def create_policy(
        self, description: str, path: str, policy_document: str, policy_name: str, tags: list[dict[str, str]]
    ) -> Any:
        """A new managed policy; a long one is refused."""
        _check_length(policy_document)
        return super().create_policy(description, path, policy_document, policy_name, tags)

    def create_policy_version(self, policy_arn: str, policy_document: str, set_as_default: bool) -> Any:
        """A further version of a managed policy; a long one is refused, and a sixth."""
        _check_length(policy_document)
        return super().create_policy_version(policy_arn, policy_document, set_as_default)

    def put_role_policy(self, role_name: str, policy_name: str, policy_json: str) -> None:
        """Gives a role an inline policy, or changes it; one with which the role's are long together is refused."""
        others = [text for name, text in self.get_role(role_name).policies.items() if name != policy_name]
        if sum(map(_length, (*others, policy_json))) > LONGEST_OF_ROLE:
            message = f"Maximum policy size of {LONGEST_OF_ROLE} bytes exceeded for role {role_name}"
            raise Refused("LimitExceeded", message)
        super().put_role_policy(role_name, policy_name, policy_json)

    def _tag_verification(self, tags: list[dict[str, str]]) -> Any:
        """The tags by their keys; a value with a character that IAM does not take is refused."""
        for number, tag in enumerate(tags, start=1):
            if any(sign not in TAG_SIGNS and unicodedata.category(sign)[0] not in "LNZ" for sign in tag["Value"]):
                where = f"Value at 'tags.{number}.member.value' failed to satisfy constraint"
                pattern = r"Member must satisfy regular expression pattern: [\p{L}\p{Z}\p{N}_.:/=+\-@]*"
                raise Refused("ValidationError", f"1 validation error detected: {where}: {pattern}")
        return super()._tag_verification(tags)

    def attach_role_policy(self, policy_arn: str, role_name: str) -> None:
        """Attaches a policy of the account or of AWS to a role."""
        self._know(policy_arn)
        super().attach_role_policy(policy_arn, role_name)

    def attach_user_policy(self, policy_arn: str, user_name: str) -> None:
        """Attaches a policy of the account or of AWS to a user."""
        self._know(policy_arn)
        super().attach_user_policy(policy_arn, user_name)

    def attach_group_policy(self, policy_arn: str, group_name: str) -> None:
        """Attaches a policy of the account or of AWS to a group."""
        self._know(policy_arn)
        super().attach_group_policy(policy_arn, group_name)

    def get_policy(self, policy_arn: str) -> Any:
        """A policy of the account or of AWS."""
        self._know(policy_arn)
        return super().get_policy(policy_arn)

    def get_policy_version(self, policy_arn: str, version_id: str) -> Any:
        """A version of a policy of the account or of AWS."""
        self._know(policy_arn)
        return super().get_policy_version(policy_arn, version_id)

    def delete_policy(self, policy_arn: str) -> None:
        """Removes a policy that is neither attached nor a permissions boundary."""
        holders = [*self.roles.values(), *self.users.values(), *self.groups.values()]
        bounded = [*self.roles.values(), *self.users.values()]
        attached = any(policy_arn in holder.managed_policies for holder in holders)
        if attached or any(getattr(held, "permissions_boundary_arn", None) == policy_arn for held in bounded):
            raise Refused("DeleteConflict", "Cannot delete a policy attached to entities.")
        super().delete_policy(policy_arn)

    def create_service_linked_role(self, service_name: str, description: str, suffix: str) -> Any:
        """The role of a service, under AWS's own name; a second one is refused."""
        name = service_linked_roles.role_name(service_name, suffix)
        if name is None:
            return super().create_service_linked_role(service_name, description, suffix)
        if any(role.name == name for role in self.roles.values()):
            raise service_linked_roles.taken(name)
        trust = {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Principal": {"Service": [service_name]}}
        return self.create_role(
            name,
            json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
            f"/aws-service-role/{service_name}/",
            permissions_boundary=None,
            description=description,
            tags=[],
            max_session_duration="3600",
            linked_service=service_name,
        )

    def _know(self, arn: str) -> None:
        name = arn.rpartition("/")[2]
        if ":iam::aws:policy/" in arn and arn not in self.managed_policies and name in _kept_by_aws():
            policy = AWSManagedPolicy.from_data(name, self.account_id, self.region_name, _kept_by_aws()[name])
            if policy.arn == arn:
                self.managed_policies[arn] = policy


class BoxIamResponse(SimulationActions, IamResponse):
    """The actions of IAM, with those that moto lacks."""


def install() -> None:
    """Puts the box's IAM in moto's place."""
    from moto.iam.models import iam_backends

    moto.iam.urls.url_paths["{0}/$"] = BoxIamResponse.dispatch
    iam_backends.backend = BoxIAM


def _check_length(document: str) -> None:
    """Refuses what is longer than AWS takes. Source: IAM User Guide, "IAM quotas"."""
    if _length(document) > LONGEST:
        raise Refused("LimitExceeded", f"Cannot exceed quota for PolicySize: {LONGEST}")


def _length(document: str) -> int:
    """The length as IAM counts it: white space does not count."""
    return len("".join(document.split()))


@cache
def _kept_by_aws() -> dict[str, Any]:
    return dict(json.loads(aws_managed_policies_data))
