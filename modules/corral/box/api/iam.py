"""IAM: AWS managed policies, loaded when named; service-linked roles under AWS's names; and AWS's length limits."""

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

from corral.box.api.iam_simulation import SimulationActions
from corral.box.api_errors import ApiError
from corral.box.service_linked_roles import service_linked_role_name

MAX_POLICY_LENGTH = 6_144  # characters of a managed policy
TAG_PUNCTUATION = "_.:/=+-@"  # valid besides letters, digits and spaces. Source: IAM API reference, Tag
MAX_ROLE_POLICIES_LENGTH = 10_240  # characters of all inline policies of a role


class BoxIAM(IAMBackend):
    """The IAM of one account."""

    _url_module = moto.iam.urls

    def create_policy(
        self, description: str, path: str, policy_document: str, policy_name: str, tags: list[dict[str, str]]
    ) -> Any:
        """Create a managed policy. Raises ApiError if it is too long."""
        _check_length(policy_document)
        return super().create_policy(description, path, policy_document, policy_name, tags)

    def create_policy_version(self, policy_arn: str, policy_document: str, set_as_default: bool) -> Any:
        """Create a version of a managed policy. Raises ApiError if it is too long, or the sixth."""
        _check_length(policy_document)
        return super().create_policy_version(policy_arn, policy_document, set_as_default)

    def put_role_policy(self, role_name: str, policy_name: str, policy_json: str) -> None:
        """Set an inline policy of a role. Raises ApiError if the role's inline policies are too long together."""
        others = [text for name, text in self.get_role(role_name).policies.items() if name != policy_name]
        if sum(map(_length, (*others, policy_json))) > MAX_ROLE_POLICIES_LENGTH:
            message = f"Maximum policy size of {MAX_ROLE_POLICIES_LENGTH} bytes exceeded for role {role_name}"
            raise ApiError("LimitExceeded", message)
        super().put_role_policy(role_name, policy_name, policy_json)

    def _tag_verification(self, tags: list[dict[str, str]]) -> Any:
        """The tags by key. Raises ApiError for a value with an invalid character."""
        for number, tag in enumerate(tags, start=1):
            if any(char not in TAG_PUNCTUATION and unicodedata.category(char)[0] not in "LNZ" for char in tag["Value"]):
                where = f"Value at 'tags.{number}.member.value' failed to satisfy constraint"
                pattern = r"Member must satisfy regular expression pattern: [\p{L}\p{Z}\p{N}_.:/=+\-@]*"
                raise ApiError("ValidationError", f"1 validation error detected: {where}: {pattern}")
        return super()._tag_verification(tags)

    def attach_role_policy(self, policy_arn: str, role_name: str) -> None:
        """Attach a policy of the account or of AWS to a role."""
        self._load_aws_policy(policy_arn)
        super().attach_role_policy(policy_arn, role_name)

    def attach_user_policy(self, policy_arn: str, user_name: str) -> None:
        """Attach a policy of the account or of AWS to a user."""
        self._load_aws_policy(policy_arn)
        super().attach_user_policy(policy_arn, user_name)

    def attach_group_policy(self, policy_arn: str, group_name: str) -> None:
        """Attach a policy of the account or of AWS to a group."""
        self._load_aws_policy(policy_arn)
        super().attach_group_policy(policy_arn, group_name)

    def get_policy(self, policy_arn: str) -> Any:
        """A policy of the account or of AWS."""
        self._load_aws_policy(policy_arn)
        return super().get_policy(policy_arn)

    def get_policy_version(self, policy_arn: str, version_id: str) -> Any:
        """A version of a policy of the account or of AWS."""
        self._load_aws_policy(policy_arn)
        return super().get_policy_version(policy_arn, version_id)

    def delete_policy(self, policy_arn: str) -> None:
        """Delete a policy that is neither attached nor a permissions boundary."""
        holders = [*self.roles.values(), *self.users.values(), *self.groups.values()]
        bounded = [*self.roles.values(), *self.users.values()]
        attached = any(policy_arn in holder.managed_policies for holder in holders)
        if attached or any(getattr(held, "permissions_boundary_arn", None) == policy_arn for held in bounded):
            raise ApiError("DeleteConflict", "Cannot delete a policy attached to entities.")
        super().delete_policy(policy_arn)

    def create_service_linked_role(self, service_name: str, description: str, suffix: str) -> Any:
        """Create a service-linked role under AWS's name. Raises ApiError for a second one."""
        name = service_linked_role_name(service_name, suffix)
        if name is None:
            return super().create_service_linked_role(service_name, description, suffix)
        if any(role.name == name for role in self.roles.values()):
            text = f"Service role name {name} has been taken in this account, please try a different suffix."
            raise ApiError("InvalidInput", text)
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

    def _load_aws_policy(self, arn: str) -> None:
        name = arn.rpartition("/")[2]
        if ":iam::aws:policy/" in arn and arn not in self.managed_policies and name in _aws_policies():
            policy = AWSManagedPolicy.from_data(name, self.account_id, self.region_name, _aws_policies()[name])
            if policy.arn == arn:
                self.managed_policies[arn] = policy


class BoxIamResponse(SimulationActions, IamResponse):
    """The actions of IAM, with those that moto lacks."""


def install() -> None:
    """Replace moto's IAM with the box's."""
    from moto.iam.models import iam_backends

    moto.iam.urls.url_paths["{0}/$"] = BoxIamResponse.dispatch
    iam_backends.backend = BoxIAM


def _check_length(document: str) -> None:
    """Raises ApiError if a policy is too long. Source: IAM User Guide, "IAM quotas"."""
    if _length(document) > MAX_POLICY_LENGTH:
        raise ApiError("LimitExceeded", f"Cannot exceed quota for PolicySize: {MAX_POLICY_LENGTH}")


def _length(document: str) -> int:
    """The length as IAM counts it, without white space."""
    return len("".join(document.split()))


@cache
def _aws_policies() -> dict[str, Any]:
    return dict(json.loads(aws_managed_policies_data))
