"""The deployer's policies as data: short enough, limited to what is corral's, each action once and with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from corral.box.access.policy_evaluator import RequiredAction, evaluate
from corral.plan.iam.deployer_policy import Policy, deployer_policies, permission
from corral.plan.iam.iam_policies import boundary_policy
from deployer_actions import LONGEST, allows, seen_actions, size, unseen_actions

POLICIES = deployer_policies(account="123456789012", region="ap-southeast-2")
CHANGED = "route53:changeresourcerecordsetsnormalizedrecordnames"
STATEMENTS = {one["Sid"]: one for policy in POLICIES for one in policy.document["Statement"]}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_policy_fits_into_a_managed_policy(policy: Any) -> None:
    assert size(policy) <= LONGEST


def test_the_policies_of_the_longest_name_fit_too() -> None:
    name = "x" * 35  # cli/commands/bootstrap.py, LONGEST_NAME
    policies = deployer_policies(
        account="123456789012",
        region="ap-southeast-2",
        alias=f"alias/{name}",
        bucket=f"{name}-123456789012-ap-southeast-2",
    )
    assert [policy.name for policy in policies if size(policy) > LONGEST] == []


def test_the_policies_of_another_key_are_named_after_it() -> None:
    policies = deployer_policies(account="1", region="eu-west-1", alias="alias/mine", bucket="mine-1-eu-west-1")
    assert [policy.name for policy in policies] == [
        "mine-deploy-eu-west-1-network",
        "mine-deploy-eu-west-1-storage",
        "mine-deploy-eu-west-1-identity",
    ]


def test_the_policies_are_named_after_their_region() -> None:
    assert [policy.name for policy in POLICIES] == [
        "corral-deploy-ap-southeast-2-network",
        "corral-deploy-ap-southeast-2-storage",
        "corral-deploy-ap-southeast-2-identity",
    ]


def test_no_two_statements_of_a_policy_share_a_name() -> None:
    named = [[one["Sid"] for one in policy.document["Statement"]] for policy in POLICIES]
    assert [len(names) - len(set(names)) for names in named] == [0, 0, 0]


def test_every_action_without_a_sighting_has_a_reason() -> None:
    assert [action for action, reason in unseen_actions().items() if not reason] == []


def test_no_statement_allows_a_whole_service() -> None:
    patterns = {action for one in STATEMENTS.values() for action in one["Action"] if one["Effect"] == "Allow"}
    assert [pattern for pattern in patterns if pattern.endswith(":*")] == []


def test_whole_families_of_actions_are_only_read() -> None:
    patterns = {action for action in (*seen_actions(), *unseen_actions()) if action.endswith("*")}
    assert sorted(patterns) == [
        "ec2:Describe*",
        "elasticfilesystem:Describe*",
        "elasticloadbalancing:Describe*",
        "fsx:Describe*",
        "iam:GetRole*",
        "iam:List*",
        "kms:GenerateDataKey*",
        "kms:ReEncrypt*",
        "s3:GetBucket*",
        "s3:GetObject*",
    ]


@pytest.mark.parametrize("sid", ["ChangeOwn", "OwnHomes", "OwnLustre", "OwnKeys"])
def test_only_what_carries_corrals_tag_is_changed_or_ended(sid: str) -> None:
    assert STATEMENTS[sid]["Condition"]["Null"] == {"aws:ResourceTag/corral:base": "false"}


@pytest.mark.parametrize(
    ("action", "new"),
    [
        ("ec2:CreateTags", {"ec2:CreateAction": "false"}),
        ("elasticfilesystem:TagResource", {"elasticfilesystem:CreateAction": "false"}),
        ("kms:TagResource", {"kms:ResourceAliases": "true"}),
    ],
)
def test_a_tag_is_only_put_on_what_is_being_made_or_has_corrals_tag(action: str, new: Any) -> None:
    tagging = [one for one in STATEMENTS.values() if action in one["Action"]]
    assert [one["Condition"]["Null"] for one in tagging] == [new, {"aws:ResourceTag/corral:base": "false"}]


@pytest.mark.parametrize(
    "action", ["ec2:AuthorizeSecurityGroupIngress", "ec2:AuthorizeSecurityGroupEgress", "ec2:CreateRoute"]
)
def test_only_corrals_networks_are_opened(action: str) -> None:
    opening = [one for one in STATEMENTS.values() if action in one["Action"]]
    rules = "arn:aws:ec2:ap-southeast-2:123456789012:security-group-rule/*"
    assert [one["Condition"]["Null"] for one in opening if one["Resource"] != [rules]] == [
        {"aws:ResourceTag/corral:base": "false"}
    ]


HERE = "arn:aws:{}:ap-southeast-2:123456789012:{}"
OURS = {"aws:resourcetag/corral:base": "b"}
NAMED = {"kms:resourcealiases": "alias/theirs"}
ZONE = "arn:aws:route53:::hostedzone/Z1"
STATES = "arn:aws:s3:::corral-state-123456789012-ap-southeast-2"
VPC = {"route53:vpcs": ("VPCId=vpc-theirs,VPCRegion=ap-southeast-2",)}
FAR_VPC = {"route53:vpcs": ("VPCId=vpc-theirs,VPCRegion=us-east-1",)}


@pytest.mark.parametrize(
    ("action", "resource", "context", "allowed"),
    [
        ("fsx:TagResource", HERE.format("fsx", "file-system/fs-1"), {}, True),
        ("fsx:DeleteFileSystem", HERE.format("fsx", "file-system/fs-1"), OURS, True),
        ("fsx:DeleteFileSystem", HERE.format("fsx", "file-system/fs-1"), {}, False),
        ("kms:TagResource", HERE.format("kms", "key/1"), {}, True),
        ("kms:TagResource", HERE.format("kms", "key/1"), NAMED, False),
        ("kms:PutKeyPolicy", HERE.format("kms", "key/1"), OURS, True),
        ("kms:PutKeyPolicy", HERE.format("kms", "key/1"), {}, False),
        ("kms:GetKeyPolicy", HERE.format("kms", "key/1"), NAMED, True),
        ("kms:Decrypt", HERE.format("kms", "key/1"), NAMED, False),
        ("kms:Sign", HERE.format("kms", "key/1"), {"kms:requestalias": "alias/corral-signing/b"}, True),
        ("kms:Sign", HERE.format("kms", "key/1"), {"kms:requestalias": "alias/theirs"}, False),
        ("ecr:BatchGetImage", HERE.format("ecr", "repository/theirs"), {}, True),
        ("ecr:PutImage", HERE.format("ecr", "repository/theirs"), {}, False),
        ("ec2:DeleteNetworkInterface", HERE.format("ec2", "network-interface/eni-1"), {}, True),
        ("ec2:DetachNetworkInterface", HERE.format("ec2", "network-interface/eni-1"), {}, False),
        ("route53:DeleteHostedZone", ZONE, {}, True),
        ("route53:ListResourceRecordSets", ZONE, {}, True),
        ("route53:ChangeResourceRecordSets", ZONE, {CHANGED: "www.example.com"}, False),
        ("sns:Unsubscribe", "*", {}, True),
        ("sns:Unsubscribe", "*", {"aws:requestedregion": "us-east-1"}, False),
        ("route53:CreateHostedZone", "*", VPC, True),
        ("route53:CreateHostedZone", "*", FAR_VPC, False),
        ("route53:AssociateVPCWithHostedZone", ZONE, VPC, True),
        ("route53:AssociateVPCWithHostedZone", ZONE, FAR_VPC, False),
        ("route53:DisassociateVPCFromHostedZone", ZONE, VPC, False),
        ("ec2:DeleteSubnetCidrReservation", "*", {}, True),
        ("ec2:CreateSubnetCidrReservation", HERE.format("ec2", "subnet/subnet-1"), {}, False),
        ("ec2:CreateVpcEndpoint", HERE.format("ec2", "vpc-endpoint/*"), {}, True),
        ("ec2:CreateVpcEndpoint", HERE.format("ec2", "vpc/vpc-1"), {}, False),
        ("ec2:CreateVpcEndpoint", HERE.format("ec2", "vpc/vpc-1"), OURS, True),
        ("ec2:CreateVpcEndpoint", HERE.format("ec2", "route-table/rtb-1"), {}, False),
        ("ec2:CreateVpcEndpoint", HERE.format("ec2", "subnet/subnet-1"), {}, False),
        ("ec2:CreateVpcEndpoint", HERE.format("ec2", "security-group/sg-1"), {}, False),
        ("ec2:CreateVolume", HERE.format("ec2", "volume/*"), {}, True),
        ("ec2:CreateVolume", "arn:aws:ec2:ap-southeast-2::snapshot/snap-1", {}, False),
        ("ec2:RunInstances", "arn:aws:ec2:ap-southeast-2::snapshot/snap-1", {}, True),
        ("ec2:RunInstances", HERE.format("ec2", "network-interface/*"), {}, True),
        ("ec2:RunInstances", HERE.format("ec2", "network-interface/eni-1"), {}, False),
        ("ec2:RunInstances", HERE.format("ec2", "network-interface/eni-1"), OURS, True),
        ("kms:EnableKeyRotation", HERE.format("kms", "key/1"), {}, True),
        ("kms:EnableKeyRotation", HERE.format("kms", "key/1"), NAMED, False),
        ("kms:EnableKeyRotation", HERE.format("kms", "key/1"), {**NAMED, **OURS}, True),
        ("s3:PutEncryptionConfiguration", STATES, {}, False),
        ("s3:TagResource", STATES, {}, False),
        ("s3:UntagResource", STATES, {}, False),
    ],
)
def test_what_a_deployer_may_do_with_what_is_not_corrals_and_no_more(
    action: str, resource: str, context: dict[str, Any], allowed: bool
) -> None:
    """What docs/security.md says remains. The calls that are refused are the next ones that would do harm."""
    required = RequiredAction(
        action=action, resource=resource, context={"aws:requestedregion": "ap-southeast-2", **context}
    )
    assert evaluate([policy.document for policy in POLICIES], (), required).allowed == allowed


def test_the_states_of_another_bootstrap_are_out_of_reach() -> None:
    """Their bucket and alias have names like those of a base's."""
    policies = deployer_policies(account="1", region="eu-west-1", alias="alias/mine", bucket="mine-1-eu-west-1")
    statements = {one["Sid"]: one for one in policies[1].document["Statement"]}
    bucket, keys = "arn:aws:s3:::corral-state-1-eu-west-1", "arn:aws:kms:eu-west-1:1:alias"
    assert [statements[sid]["Resource"] for sid in ("OtherStates", "StateKeyStays")] == [
        [bucket, f"{bucket}/*"],
        [f"{keys}/corral-state", f"{keys}/mine"],
    ]


def test_the_name_of_the_state_key_is_not_a_deployers_to_give() -> None:
    assert STATEMENTS["StateKeyStays"] == {
        "Sid": "StateKeyStays",
        "Effect": "Deny",
        "Action": ["kms:*Alias"],
        "Resource": ["arn:aws:kms:ap-southeast-2:123456789012:alias/corral-state"],
    }


def test_roles_are_only_made_below_a_boundary_of_corrals() -> None:
    boundary = "arn:aws:iam::123456789012:policy/corral/guards-boundary-ap-southeast-2"
    assert [STATEMENTS[sid]["Condition"]["StringEquals"] for sid in ("CreateRoles", "BoundedRoles")] == [
        {"iam:PermissionsBoundary": boundary}
    ] * 2


def test_the_states_can_be_written_and_their_history_cannot_be_removed() -> None:
    bucket = "arn:aws:s3:::corral-state-123456789012-ap-southeast-2"
    assert (STATEMENTS["States"]["Resource"], STATEMENTS["StateStays"]) == (
        [f"{bucket}/*"],
        {
            "Sid": "StateStays",
            "Effect": "Deny",
            "Action": [
                "s3:DeleteBucket*",
                "s3:DeleteObjectVersion",
                "s3:PutBucket*",
                "s3:PutEncryptionConfiguration",
                "s3:PutLifecycleConfiguration",
                "s3:TagResource",
                "s3:UntagResource",
            ],
            "Resource": [bucket, f"{bucket}/*"],
        },
    )


def test_the_key_of_the_states_is_named_by_its_alias() -> None:
    policies = deployer_policies(account="1", region="eu-west-1", alias="alias/mine", bucket="mine-1-eu-west-1")
    statements = {one["Sid"]: one for one in policies[1].document["Statement"]}
    assert statements["StateKey"]["Condition"] == {"ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/mine"}}


@pytest.mark.parametrize(
    ("service", "operation", "action"),
    [
        ("s3", "ListObjectsV2", "s3:ListBucket"),
        ("s3", "HeadObject", "s3:GetObject"),
        ("efs", "DescribeFileSystems", "elasticfilesystem:DescribeFileSystems"),
        ("resourcegroupstaggingapi", "GetResources", "tag:GetResources"),
        ("budgets", "CreateBudget", "budgets:ModifyBudget"),
        ("ec2", "RunInstances", "ec2:RunInstances"),
    ],
)
def test_a_call_needs_the_permission(service: str, operation: str, action: str) -> None:
    assert permission(service, operation) == action


@pytest.mark.parametrize(
    "action",
    [
        "iam:AttachUserPolicy",
        "iam:CreateAccessKey",
        "iam:CreatePolicy",
        "iam:CreatePolicyVersion",
        "iam:CreateUser",
        "iam:DeleteRolePermissionsBoundary",
        "iam:SetDefaultPolicyVersion",
        "iam:UpdateAssumeRolePolicy",
        "s3:ListAllMyBuckets",
        "secretsmanager:GetSecretValue",
    ],
)
def test_actions_that_no_command_needs_are_not_allowed(action: str) -> None:
    assert not allows(POLICIES, action)


@pytest.mark.parametrize(
    ("region", "service"), [("ap-southeast-2", "ec2.amazonaws.com"), ("cn-north-1", "ec2.amazonaws.com.cn")]
)
def test_roles_of_clusters_alone_are_passed_and_to_ec2_alone(region: str, service: str) -> None:
    (*_, identity) = deployer_policies(account="123456789012", region=region)
    passing = [one for one in identity.document["Statement"] if "iam:PassRole" in one["Action"]]
    assert [(one["Resource"][0].partition("::")[2], one["Condition"]) for one in passing] == [
        ("123456789012:role/corral/identity-*", {"StringEquals": {"iam:PassedToService": service}})
    ]


def test_the_boundary_fits_into_a_managed_policy() -> None:
    region = "ap-southeast-2"
    assert size(Policy(name="boundary", document=boundary_policy(region, "123456789012"))) <= LONGEST
