"""The calls that `corral up`, `down` and `sweep` make of one environment, for asking IAM whether somebody may.

They follow from the grants of `deployer`, each with names and tags as corral gives them, so that its conditions hold.
IAM's simulations know no wildcards in actions: for a family of them stand those that are called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.calls import Calls
from corral.plan.deployer import OWN_NAMES, POLICIES, STATE_ALIAS, Grant

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
    "fsx:Describe*": ("fsx:DescribeDataRepositoryAssociations", "fsx:DescribeFileSystems"),
    "iam:GetPolicy*": ("iam:GetPolicy", "iam:GetPolicyVersion"),
    "iam:GetRole*": ("iam:GetRole", "iam:GetRolePolicy"),
    "iam:List*": ("iam:ListAttachedRolePolicies", "iam:ListInstanceProfilesForRole", "iam:ListRolePolicies"),
    "kms:GenerateDataKey*": ("kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext"),
    "kms:ReEncrypt*": ("kms:ReEncryptFrom", "kms:ReEncryptTo"),
    "s3:GetBucket*": ("s3:GetBucketLocation", "s3:GetBucketPolicy", "s3:GetBucketTagging", "s3:GetBucketVersioning"),
    "s3:GetObject*": ("s3:GetObject", "s3:GetObjectTagging"),
}
# An environment in a VPC of somebody else's makes none of these.
_MADE_FOR_A_VPC = (
    "AllocateAddress AssociateRouteTable AttachInternetGateway CreateInternetGateway CreateNatGateway CreateRoute"
    " CreateRouteTable CreateSubnet CreateSubnetCidrReservation CreateVpc CreateVpcEndpoint DeleteInternetGateway"
    " DeleteNatGateway DeleteRoute DeleteRouteTable DeleteSubnet DeleteSubnetCidrReservation DeleteVpc"
    " DeleteVpcEndpoints DetachInternetGateway DisassociateAddress DisassociateRouteTable ModifySubnetAttribute"
    " ModifyVpcAttribute ModifyVpcEndpoint ReleaseAddress ReplaceRoute"
)
_OF_THE_VPC = frozenset(f"ec2:{name}" for name in _MADE_FOR_A_VPC.split())
_OF_THE_STATE = frozenset({"StateKey"})  # where Pulumi's secrets lie behind a passphrase, it is not used
_OF_LINKS = "LinkedRoles"


def deployer_calls(base: BasePlan, cluster: ClusterPlan, account: str) -> tuple[Calls, ...]:
    """What is called of this environment, one of each set of resources; nothing of file systems that it lacks."""
    context = _context(base, cluster, account)
    actions: dict[tuple[str, ...], set[str]] = {}
    for grant in (grant for grants in POLICIES.values() for grant in grants):
        if _is_needed(grant, base, cluster):
            wanted = {action for action in _actions(grant) if _is_made(action, base, cluster)}
            actions.setdefault(_resources(grant, base, account), set()).update(wanted)
    return tuple(
        Calls(actions=tuple(sorted(names)), resources=resources, context=context)
        for resources, names in sorted(actions.items())
        if names
    )


def _actions(grant: Grant) -> Iterator[str]:
    for action in (*grant.actions, *grant.unseen):
        yield from FAMILIES.get(action, (action,))


def _resources(grant: Grant, base: BasePlan, account: str) -> tuple[str, ...]:
    facts = {"account": account, "region": base.region}
    return tuple(one if one == "*" else one.format(**facts).replace("*", base.name) for one in grant.resources)


def _context(base: BasePlan, cluster: ClusterPlan, account: str) -> Mapping[str, str]:
    """What AWS would see with the calls; a key that an action does not know does no harm.

    All keys of corral's own policies are among them: IAM tells those that are missing with actions that do not ask.
    """
    return {
        "aws:RequestedRegion": base.region,
        "aws:ResourceTag/corral:base": base.name,
        "ec2:CreateAction": "CreateVpc",
        "kms:ResourceAliases": STATE_ALIAS,
        "iam:PermissionsBoundary": f"arn:aws:iam::{account}:policy/guards-boundary-{base.name}",
        "ssm:resourceTag/corral:cluster": cluster.name,
        OWN_NAMES: cluster.dns_zone,
    }


def _is_needed(grant: Grant, base: BasePlan, cluster: ClusterPlan) -> bool:
    links = any(system.data for system in (*base.lustre, *cluster.lustre))
    return grant.sid not in _OF_THE_STATE and (grant.sid != _OF_LINKS or links)


def _is_made(action: str, base: BasePlan, cluster: ClusterPlan) -> bool:
    if action in _OF_THE_VPC:
        return base.adopted_vpc is None
    service = action.partition(":")[0]
    has = {"fsx": base.lustre or cluster.lustre, "elasticfilesystem": base.home, "budgets": base.budget}
    return bool(has.get(service, True))
