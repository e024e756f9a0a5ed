"""Service-linked roles that a service creates at its first use, with the caller's permission. Hold the cloud's lock.

Sources: EC2 User Guide, "Service-linked role for Spot Instance requests", and for the launch that creates it
cloudfoundry/bosh-bootloader#466, MartinLoeper in chialab/aws-autoscaling-gitlab-runner#7; user guides of FSx for
Lustre, EFS and Elastic Load Balancing, "Using service-linked roles". Texts: AutoSpotting#187 (spot),
aws/aws-parallelcluster#6122 (links to S3), hashicorp/terraform-provider-aws#1727 (EFS, which answers so to any missing
permission).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from corral.box.access.policy_evaluator import RequiredAction
from corral.box.access.required_actions_ec2 import is_spot_launch
from corral.box.account import ACCOUNT, PARTITION
from corral.box.api_calls import Call
from corral.box.api_errors import ApiError
from corral.box.service_linked_roles import SERVICE_LINKED_ROLES
from corral.model.partitions import linked_service

BALANCERS = linked_service("elasticloadbalancing")
SPOT, FILES = linked_service("spot"), linked_service("fsx")
HOME, LINK = linked_service("elasticfilesystem"), linked_service("s3.data-source.lustre.fsx")
# The role that a call needs besides a spot launch.
_NEEDED: Mapping[tuple[str, str], str] = {
    ("fsx", "CreateFileSystem"): FILES,
    ("fsx", "CreateDataRepositoryAssociation"): LINK,
    ("efs", "CreateMountTarget"): HOME,
    ("elbv2", "CreateLoadBalancer"): BALANCERS,
}
# What a caller without the permission gets; others get the denial of iam:CreateServiceLinkedRole.
_REFUSALS: Mapping[str, tuple[str, str, int]] = {
    SPOT: (
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
        403,
    ),
    LINK: (
        "BadRequest",
        "Amazon FSx is unable to create Service-Linked-Role to access the S3 bucket. Ensure the IAM role or user you"
        " are using has the required permissions.",
        400,
    ),
    HOME: ("AccessDeniedException", "User is not authorized to perform that action on the specified resource", 403),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRole:
    """The role of a service that does not exist yet. `required`: the permission to create it."""

    service: str
    required: RequiredAction

    @property
    def refusal(self) -> ApiError | None:
        """The service's own error for a caller without the permission; None for IAM's."""
        return ApiError(*_REFUSALS[self.service]) if self.service in _REFUSALS else None

    def create(self) -> None:
        """Create the role. FSx's for S3, of which each file system has one, is left out."""
        if self.service != LINK:
            iam_backends[ACCOUNT]["aws"].create_service_linked_role(self.service, "", "")


def may_create_role(call: Call) -> bool:
    """True for calls of services that create their role at its first use."""
    return call.action == "RunInstances" or (call.service, call.action) in _NEEDED


def missing_role(call: Call, fields: Mapping[str, Any]) -> MissingRole | None:
    """The service-linked role that the service has to create for this call; None if it exists, or needs none."""
    service = _NEEDED.get((call.service, call.action), SPOT)
    if service == SPOT and not is_spot_launch(fields, ec2_backends[ACCOUNT][call.region]):
        return None
    path = f"/aws-service-role/{service}/"
    if service != LINK and any(role.path == path for role in iam_backends[ACCOUNT]["aws"].roles.values()):
        return None
    name = SERVICE_LINKED_ROLES[service] + (f"_{fields.get('FileSystemId', '')}" if service == LINK else "")
    required = RequiredAction(
        action="iam:CreateServiceLinkedRole",
        resource=f"arn:{PARTITION}:iam::{ACCOUNT}:role{path}{name}",
        context={"iam:awsservicename": service},
    )
    return MissingRole(service=service, required=required)
