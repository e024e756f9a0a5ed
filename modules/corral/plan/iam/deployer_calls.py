"""The API calls of `corral up`, `down` and `cleanup` for one environment, to check with IAM.

They follow from the grants in `deployer_policy`, with corral's names and tags, so that the conditions hold. IAM's
simulator does not accept wildcards in actions: the calls that corral makes replace them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.model.partitions import partition_of, service_principal
from corral.model.signing import signing_alias
from corral.model.tags import BASE_TAG, CLUSTER_TAG, request_tag, resource_tag
from corral.plan.iam.api_permissions import Calls
from corral.plan.iam.deployer_policy import (
    KEY_USERS,
    POLICIES,
    REQUEST_ALIAS_KEY,
    STATE_ALIAS,
    UNNAMED,
    Grant,
)
from corral.plan.iam.iam_policies import RECORD_NAMES_KEY, VIA_SERVICE_KEY, VPCS_KEY, boundary_arn

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "ec2:Describe*": (
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypeOfferings",
        "ec2:DescribeInstances",
        "ec2:DescribeLaunchTemplates",
        "ec2:DescribeNatGateways",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribePlacementGroups",
        "ec2:DescribeRouteTables",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVolumes",
        "ec2:DescribeVpcEndpoints",
        "ec2:DescribeVpcs",
    ),
    "elasticfilesystem:Describe*": (
        "elasticfilesystem:DescribeFileSystems",
        "elasticfilesystem:DescribeLifecycleConfiguration",
        "elasticfilesystem:DescribeMountTargets",
    ),
    "elasticloadbalancing:Describe*": (
        "elasticloadbalancing:DescribeListeners",
        "elasticloadbalancing:DescribeLoadBalancerAttributes",
        "elasticloadbalancing:DescribeLoadBalancers",
        "elasticloadbalancing:DescribeTags",
        "elasticloadbalancing:DescribeTargetGroupAttributes",
        "elasticloadbalancing:DescribeTargetGroups",
        "elasticloadbalancing:DescribeTargetHealth",
    ),
    "fsx:Describe*": ("fsx:DescribeDataRepositoryAssociations", "fsx:DescribeFileSystems"),
    "iam:GetRole*": ("iam:GetRole", "iam:GetRolePolicy"),
    "iam:List*": ("iam:ListAttachedRolePolicies", "iam:ListInstanceProfilesForRole", "iam:ListRolePolicies"),
    "kms:GenerateDataKey*": ("kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext"),
    "kms:ReEncrypt*": ("kms:ReEncryptFrom", "kms:ReEncryptTo"),
    "s3:GetBucket*": ("s3:GetBucketLocation", "s3:GetBucketPolicy", "s3:GetBucketTagging", "s3:GetBucketVersioning"),
    "s3:GetObject*": ("s3:GetObject", "s3:GetObjectTagging"),
}
# An environment in an adopted VPC makes none of these calls.
_MADE_FOR_A_VPC = (
    "AllocateAddress AssociateRouteTable AttachInternetGateway CreateInternetGateway CreateNatGateway CreateRoute"
    " CreateRouteTable CreateSubnet CreateSubnetCidrReservation CreateVpc CreateVpcEndpoint DeleteInternetGateway"
    " DeleteNatGateway DeleteRoute DeleteRouteTable DeleteSubnet DeleteSubnetCidrReservation DeleteVpc"
    " DeleteVpcEndpoints DetachInternetGateway DisassociateAddress DisassociateRouteTable ModifySubnetAttribute"
    " ModifyVpcAttribute ModifyVpcEndpoint ReleaseAddress ReplaceRoute"
)
_OF_THE_VPC = frozenset(f"ec2:{name}" for name in _MADE_FOR_A_VPC.split())
_OF_THE_STATE = frozenset({"StateKey"})  # not used if Pulumi's secrets are encrypted by a passphrase
_OF_LINKS = "LinkedRoles"
_OF_IMAGES = "ContainerImages"


def deployer_calls(base: BasePlan, cluster: ClusterPlan, account: str) -> tuple[Calls, ...]:
    """Return the calls for this environment; none for file systems that it does not have.

    There is one for each set of resources, and one for those that no key has named yet.
    """
    context = _context(base, cluster, account)
    unnamed = {key: value for key, value in context.items() if key not in UNNAMED["Null"]}
    actions: dict[tuple[tuple[str, ...], bool], set[str]] = {}
    for grant in (grant for grants in POLICIES.values() for grant in grants):
        if _is_needed(grant, base, cluster):
            wanted = {action for action in _actions(grant) if _is_made(action, base, cluster)}
            actions.setdefault((_resources(grant, base, account), grant.condition == UNNAMED), set()).update(wanted)
    return tuple(
        Calls(actions=tuple(sorted(names)), resources=resources, context=unnamed if is_new else context)
        for (resources, is_new), names in sorted(actions.items())
        if names
    )


def _actions(grant: Grant) -> Iterator[str]:
    for action in (*grant.actions, *grant.unseen):
        yield from FAMILIES.get(action, (action,))


def _resources(grant: Grant, base: BasePlan, account: str) -> tuple[str, ...]:
    facts = {"partition": partition_of(base.region).name, "region": base.region, "account": account}
    return tuple(one if one == "*" else one.format(**facts).replace("*", base.name) for one in grant.resources)


def _context(base: BasePlan, cluster: ClusterPlan, account: str) -> Mapping[str, str]:
    """Return the values of condition keys; IAM ignores a key that an action does not use.

    Includes all keys in corral's policies, since IAM reports missing keys even for actions that do not use them.
    """
    return {
        "aws:RequestedRegion": base.region,
        resource_tag(BASE_TAG): base.name,
        "ec2:CreateAction": "CreateVpc",
        "elasticfilesystem:CreateAction": "CreateFileSystem",
        "elasticloadbalancing:CreateAction": "CreateLoadBalancer",
        "kms:ResourceAliases": STATE_ALIAS,
        REQUEST_ALIAS_KEY: signing_alias(base.name),
        VIA_SERVICE_KEY: KEY_USERS[0].format(region=base.region, domain=partition_of(base.region).dns_suffix),
        "iam:PermissionsBoundary": boundary_arn(base.region, account),
        "iam:PassedToService": service_principal("ec2", base.region),
        request_tag(BASE_TAG): base.name,
        resource_tag(CLUSTER_TAG, "ssm"): cluster.name,
        RECORD_NAMES_KEY: cluster.dns_zone,
        VPCS_KEY: f"VPCId=vpc-1,VPCRegion={base.region}",
    }


def _is_needed(grant: Grant, base: BasePlan, cluster: ClusterPlan) -> bool:
    links = any(system.data for system in (*base.lustre, *cluster.lustre))
    needed = {_OF_LINKS: links, _OF_IMAGES: bool(cluster.jobs.images)}
    return grant.sid not in _OF_THE_STATE and needed.get(grant.sid, True)


def _is_made(action: str, base: BasePlan, cluster: ClusterPlan) -> bool:
    if action in _OF_THE_VPC:
        return base.adopted_vpc is None
    service = action.partition(":")[0]
    has = {
        "fsx": base.lustre or cluster.lustre,
        "elasticfilesystem": base.home,
        "elasticloadbalancing": cluster.login and cluster.login.load_balancer,
        "budgets": base.budget,
    }
    return bool(has.get(service, True))
