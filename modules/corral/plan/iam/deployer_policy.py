"""The deployer's IAM policies, as plain data: what a person or pipeline needs to run corral in one region.

The policies are generated from a table of grants. `actions` are those observed in whole runs in the box; `unseen` lists
all others, each with its reason. Source of actions: Service Authorization Reference, "Actions, resources, and condition
keys". Created resources carry the tag `corral:base`, or a name with corral's prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corral.model.partitions import linked_service, partition_of, service_principal
from corral.model.signing import SIGNING_ALIASES
from corral.model.tags import BASE_TAG, CLUSTER_TAG, request_tag, resource_tag
from corral.plan.iam.head_documents import CONTROL, QUERY
from corral.plan.iam.iam_policies import RECORD_NAMES_KEY, VIA_SERVICE_KEY, VPCS_KEY, existing_interfaces

STATE_ALIAS = "alias/corral-state"
STATE_BUCKET = "corral-state-{account}-{region}"

Condition = Mapping[str, Mapping[str, Any]]
HERE: Condition = {"StringEquals": {"aws:RequestedRegion": "{region}"}}
OURS: Condition = {"Null": {resource_tag(BASE_TAG): "false"}}
_BOUNDARY = "arn:{partition}:iam::{account}:policy/corral/guards-boundary-{region}"
UNNAMED: Condition = {"Null": {"kms:ResourceAliases": "true"}}
BOUNDED: Condition = {"StringEquals": {"iam:PermissionsBoundary": _BOUNDARY}}

TAGS = "AWS requires it to create tagged resources, and the provider to change tags"
CHANGES = "the provider updates resources in place when the spec changes"
PROVIDER = "the official provider calls it, the box's provider does not"
ON_HEAD = "the owner of the box runs programs on machines without Systems Manager"
FOR_FSX = "not called directly: AWS checks it when FSx creates a file system"
IMAGES = "`corral check` calls it for clusters whose jobs declare images in ECR"
FOR_ENDPOINTS = "not called directly: AWS checks it when EC2 creates a VPC endpoint with names of its own"
FOR_SERVICE = "not called directly: AWS checks it when another call passes the resource to a service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A statement. `actions` occur in the box; `unseen` are required on AWS as well, each with its reason."""

    sid: str
    actions: tuple[str, ...] = ()
    unseen: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[str, ...] = ("*",)
    condition: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A managed policy: its name, its document, and its path in IAM."""

    name: str
    document: Mapping[str, Any]
    path: str = "/"


def _all(service: str, names: str) -> tuple[str, ...]:
    return tuple(f"{service}:{name}" for name in names.split())


def _each(service: str, names: str, reason: str) -> dict[str, str]:
    return {f"{service}:{name}": reason for name in names.split()}


_BALANCING = "arn:{partition}:elasticloadbalancing:{region}:{account}:"
BALANCERS = tuple(f"{_BALANCING}{kind}/*" for kind in ("loadbalancer/net", "listener/net", "targetgroup"))
NETWORK = (
    Grant(
        sid="See",
        actions=(
            *("ec2:Describe*", "ec2:GetSpotPlacementScores", "ec2:GetSubnetCidrReservations"),
            "elasticloadbalancing:Describe*",
        ),
        unseen={"ec2:GetSecurityGroupsForVpc": FOR_FSX},
        condition=HERE,
    ),
    Grant(
        sid="ContainerImages",
        unseen=_each("ecr", "BatchGetImage GetDownloadUrlForLayer", IMAGES),
        resources=("arn:{partition}:ecr:{region}:{account}:repository/*",),
    ),
    Grant(sid="Quotas", actions=("servicequotas:ListServiceQuotas",), condition=HERE),
    Grant(
        sid="Make",
        actions=_all(
            "ec2",
            "AllocateAddress CreateInternetGateway CreateLaunchTemplate CreateNatGateway CreateNetworkInterface"
            " CreatePlacementGroup CreateRouteTable CreateSecurityGroup CreateSubnet CreateVpc"
            " DeleteSubnetCidrReservation RunInstances",
        ),
        condition=HERE,
    ),
    Grant(
        sid="TagWhatIsMade",
        unseen={"ec2:CreateTags": TAGS},
        condition={**HERE, "Null": {"ec2:CreateAction": "false"}},
    ),
    Grant(
        sid="ChangeOwn",
        actions=_all(
            "ec2",
            "AssociateRouteTable AttachInternetGateway AttachVolume AuthorizeSecurityGroupEgress"
            " AuthorizeSecurityGroupIngress CreateRoute CreateSubnetCidrReservation CreateVpcEndpoint"
            " DeleteInternetGateway"
            " DeleteLaunchTemplate DeleteNatGateway DeletePlacementGroup DeleteRoute DeleteRouteTable"
            " DeleteSecurityGroup DeleteSubnet DeleteVolume DeleteVpc DeleteVpcEndpoints DetachInternetGateway"
            " DetachVolume DisassociateRouteTable ModifyVpcAttribute ReleaseAddress RevokeSecurityGroupEgress"
            " RevokeSecurityGroupIngress StopInstances TerminateInstances",
        ),
        unseen={
            **_each("ec2", "CreateTags DeleteTags", TAGS),
            **_each(
                "ec2",
                "CreateLaunchTemplateVersion DeleteLaunchTemplateVersions ModifyInstanceAttribute"
                " ModifyInstanceMetadataOptions ModifyLaunchTemplate ModifyNetworkInterfaceAttribute"
                " ModifySecurityGroupRules ModifySubnetAttribute ModifyVolume ModifyVpcEndpoint ReplaceRoute"
                " StartInstances",
                CHANGES,
            ),
            **_each("ec2", "DetachNetworkInterface DisassociateAddress", PROVIDER),
        },
        condition={**HERE, **OURS},
    ),
    Grant(  # a new rule has no tag yet; its group has
        sid="NewRules",
        unseen=_each(
            "ec2", "AuthorizeSecurityGroupEgress AuthorizeSecurityGroupIngress", "AWS checks the rule as well"
        ),
        resources=("arn:{partition}:ec2:{region}:{account}:security-group-rule/*",),
    ),
    Grant(  # its VPC, subnets, groups and route tables have a tag: "ChangeOwn"
        sid="NewEndpoints",
        actions=("ec2:CreateVpcEndpoint",),
        resources=("arn:{partition}:ec2:{region}:{account}:vpc-endpoint/*",),
    ),
    Grant(  # and none from a snapshot, which would need that of `snapshot/*`
        sid="NewVolumes",
        actions=("ec2:CreateVolume",),
        resources=("arn:{partition}:ec2:{region}:{account}:volume/*",),
    ),
    Grant(
        sid="MakeBalancers",
        actions=_all("elasticloadbalancing", "CreateLoadBalancer CreateTargetGroup"),
        resources=BALANCERS,
        condition={"Null": {request_tag(BASE_TAG): "false"}},
    ),
    Grant(
        sid="TagNewBalancers",
        unseen=_each("elasticloadbalancing", "AddTags", TAGS),
        resources=BALANCERS,
        condition={"Null": {"elasticloadbalancing:CreateAction": "false"}},
    ),
    Grant(
        sid="OwnBalancers",
        actions=_all(
            "elasticloadbalancing",
            "CreateListener DeleteListener DeleteLoadBalancer DeleteTargetGroup DeregisterTargets"
            " ModifyLoadBalancerAttributes ModifyTargetGroupAttributes RegisterTargets",
        ),
        unseen={
            **_each(
                "elasticloadbalancing",
                "ModifyListener ModifyListenerAttributes ModifyTargetGroup SetSecurityGroups SetSubnets",
                CHANGES,
            ),
            **_each("elasticloadbalancing", "AddTags RemoveTags", TAGS),
        },
        resources=BALANCERS,
        condition=OURS,
    ),
    Grant(  # EFS deletes the interface of a mount target with the caller's permissions, and it carries no tag
        sid="EndInterfaces",
        actions=("ec2:DeleteNetworkInterface",),
        resources=("arn:{partition}:ec2:{region}:{account}:network-interface/*",),
    ),
)
BUCKETS = ("arn:{partition}:s3:::corral-*-{account}-{region}",)
OBJECTS = ("arn:{partition}:s3:::corral-*-{account}-{region}/*",)
KEYS = ("arn:{partition}:kms:{region}:{account}:key/*",)
REQUEST_ALIAS_KEY = "kms:RequestAlias"
# The services that use a base's key for the deployer. Source: KMS Developer Guide, "kms:ViaService".
_KEY_SERVICES = ("ec2", "elasticfilesystem", "fsx", "s3", "secretsmanager")
KEY_USERS = tuple(f"{service}.{{region}}.{{domain}}" for service in _KEY_SERVICES)
STORAGE = (
    Grant(
        sid="Buckets",
        actions=_all(
            "s3",
            "CreateBucket DeleteBucket GetBucket* GetEncryptionConfiguration GetLifecycleConfiguration ListBucket"
            " ListBucketMultipartUploads ListBucketVersions PutBucketOwnershipControls PutBucketPolicy"
            " PutBucketPublicAccessBlock PutBucketTagging PutBucketVersioning PutEncryptionConfiguration"
            " PutLifecycleConfiguration",
        ),
        unseen={
            **_each("s3", "GetAccelerateConfiguration GetReplicationConfiguration", PROVIDER),
            **_each("s3", "ListTagsForResource", PROVIDER),
            **_each("s3", "DeleteBucketPolicy", CHANGES),
            **_each("s3", "TagResource UntagResource", TAGS),
        },
        resources=BUCKETS,
    ),
    Grant(
        sid="Objects",
        actions=_all("s3", "DeleteObject DeleteObjectTagging GetObject* PutObject"),
        unseen={
            **_each("s3", "PutObjectTagging", TAGS),
            **_each(
                "s3",
                "AbortMultipartUpload DeleteObjectVersion",
                "`--delete-data` on a bucket with versions and uploads",
            ),
        },
        resources=OBJECTS,
    ),
    Grant(  # what `up` does with a key within minutes of its creation, when its tag does not count yet
        sid="Keys",
        actions=_all(
            "kms",
            "CreateKey DescribeKey GetKeyPolicy GetKeyRotationStatus GetPublicKey ListAliases ListResourceTags",
        ),
        condition=HERE,
    ),
    Grant(  # a tag or a name makes a key one of corral's: only of keys that nobody has named yet
        sid="NewKeys",
        actions=("kms:CreateAlias", "kms:EnableKeyRotation"),
        unseen=_each("kms", "TagResource", TAGS),
        resources=KEYS,
        condition=UNNAMED,
    ),
    Grant(
        sid="UseKeys",
        unseen=_each("kms", "CreateGrant Decrypt GenerateDataKey* ReEncrypt*", FOR_SERVICE),
        resources=KEYS,
        condition={"StringEquals": {VIA_SERVICE_KEY: KEY_USERS}},
    ),
    Grant(  # by the name in the request, which counts at once, unlike the tag of a new key
        sid="SignManifests",
        actions=("kms:Sign",),
        resources=KEYS,
        condition={"StringLike": {REQUEST_ALIAS_KEY: f"{SIGNING_ALIASES}*"}},
    ),
    Grant(
        sid="OwnKeys",
        actions=_all("kms", "ScheduleKeyDeletion UntagResource"),
        unseen={
            **_each("kms", "EnableKeyRotation PutKeyPolicy UpdateAlias UpdateKeyDescription", CHANGES),
            **_each("kms", "TagResource", TAGS),
        },
        resources=KEYS,
        condition=OURS,
    ),
    Grant(
        sid="Aliases",
        actions=("kms:CreateAlias", "kms:DeleteAlias"),
        unseen=_each("kms", "UpdateAlias", CHANGES),
        resources=("arn:{partition}:kms:{region}:{account}:alias/corral-*",),
    ),
    Grant(sid="EndAliases", actions=("kms:DeleteAlias",), resources=KEYS),
    Grant(
        sid="StateKey",
        unseen=_each("kms", "Decrypt Encrypt", "Pulumi's secrets; the box encrypts its states with a passphrase"),
        resources=KEYS,
        condition={"ForAnyValue:StringEquals": {"kms:ResourceAliases": "{alias}"}},
    ),
    Grant(
        sid="Homes",
        actions=("elasticfilesystem:CreateFileSystem", "elasticfilesystem:Describe*"),
        unseen=_each("elasticfilesystem", "ListTagsForResource", PROVIDER),
        condition=HERE,
    ),
    Grant(
        sid="TagNewHomes",
        unseen=_each("elasticfilesystem", "TagResource", TAGS),
        condition={**HERE, "Null": {"elasticfilesystem:CreateAction": "false"}},
    ),
    Grant(
        sid="OwnHomes",
        actions=_all("elasticfilesystem", "CreateMountTarget DeleteFileSystem DeleteMountTarget"),
        unseen={
            **_each(
                "elasticfilesystem",
                "ModifyMountTargetSecurityGroups PutLifecycleConfiguration UpdateFileSystem",
                CHANGES,
            ),
            **_each("elasticfilesystem", "TagResource UntagResource", TAGS),
        },
        condition={**HERE, **OURS},
    ),
    Grant(
        sid="Lustre",
        actions=_all("fsx", "CreateDataRepositoryAssociation CreateFileSystem Describe*"),
        unseen={**_each("fsx", "TagResource", TAGS), **_each("fsx", "ListTagsForResource", PROVIDER)},
        condition=HERE,
    ),
    Grant(
        sid="OwnLustre",
        actions=("fsx:DeleteDataRepositoryAssociation", "fsx:DeleteFileSystem"),
        unseen={
            **_each("fsx", "UpdateDataRepositoryAssociation UpdateFileSystem", CHANGES),
            **_each("fsx", "UntagResource", TAGS),
        },
        condition={**HERE, **OURS},
    ),
)
ROLES = ("arn:{partition}:iam::{account}:role/corral/identity-*",)
_LINKED_ROLES = f"role/aws-service-role/{linked_service('s3.data-source.lustre.fsx')}"
S3_ROLES = (f"arn:{{partition}}:iam::{{account}}:{_LINKED_ROLES}/*",)
LINKED = "FSx creates a role for each file system with S3 links, with the caller's permissions"
IDENTITY = (
    Grant(
        sid="CreateRoles",
        actions=("iam:CreateRole",),
        resources=ROLES,
        condition={**BOUNDED, "Null": {request_tag(BASE_TAG): "false"}},
    ),
    Grant(
        sid="BoundedRoles",
        actions=("iam:PutRolePolicy",),
        unseen=_each("iam", "PutRolePermissionsBoundary", CHANGES),
        resources=ROLES,
        condition=BOUNDED,
    ),
    Grant(  # not UpdateAssumeRolePolicy: a changed trust replaces the role
        sid="Roles",
        actions=_all("iam", "DeleteRole DeleteRolePolicy GetRole* List*"),
        unseen={
            **_each("iam", "DetachRolePolicy", "a cleanup detaches what others attached"),
            **_each("iam", "TagRole UntagRole", TAGS),
            **_each("iam", "UpdateRole UpdateRoleDescription", CHANGES),
        },
        resources=ROLES,
    ),
    Grant(
        sid="PassRoles",
        unseen=_each("iam", "PassRole", FOR_SERVICE),
        resources=ROLES,
        condition={"StringEquals": {"iam:PassedToService": "{ec2}"}},
    ),
    Grant(
        sid="Profiles",
        actions=_all(
            "iam",
            "AddRoleToInstanceProfile CreateInstanceProfile DeleteInstanceProfile GetInstanceProfile"
            " RemoveRoleFromInstanceProfile",
        ),
        unseen={
            **_each("iam", "TagInstanceProfile UntagInstanceProfile", TAGS),
            **_each("iam", "ListInstanceProfileTags", PROVIDER),
        },
        resources=("arn:{partition}:iam::{account}:instance-profile/corral/identity-*",),
    ),
    Grant(sid="Boundary", actions=("iam:GetPolicy", "iam:GetPolicyVersion"), resources=(_BOUNDARY,)),
    Grant(
        sid="Names",
        actions=_all("iam", "ListInstanceProfiles ListPolicies ListRoles SimulateCustomPolicy SimulatePrincipalPolicy"),
    ),
    Grant(
        sid="LinkedRoles",
        unseen=_each("iam", "AttachRolePolicy CreateServiceLinkedRole PutRolePolicy", LINKED),
        resources=S3_ROLES,
    ),
)
ZONES = ("arn:{partition}:route53:::hostedzone/*",)
GUARDS = (
    Grant(
        sid="Parameters",
        actions=_all(
            "ssm",
            "AddTagsToResource DeleteParameter GetParameter GetParametersByPath ListTagsForResource PutParameter",
        ),
        unseen={**_each("ssm", "RemoveTagsFromResource", TAGS), **_each("ssm", "GetParameters", PROVIDER)},
        resources=("arn:{partition}:ssm:{region}:{account}:parameter/corral/*",),
    ),
    Grant(
        sid="Images",
        actions=("ssm:GetParameter",),
        resources=("arn:{partition}:ssm:{region}::parameter/aws/service/*",),
    ),
    Grant(
        sid="AskHeads",
        unseen=_each("ssm", "SendCommand", ON_HEAD),
        resources=("arn:{partition}:ec2:{region}:{account}:instance/*",),
        condition={"StringLike": {resource_tag(CLUSTER_TAG, "ssm"): "*"}},
    ),
    Grant(
        sid="HeadPrograms",
        unseen=_each("ssm", "SendCommand", ON_HEAD),
        resources=tuple(
            f"arn:{{partition}}:ssm:{{region}}:{{account}}:document/{one.name}" for one in (QUERY, CONTROL)
        ),
    ),
    Grant(
        sid="Secrets",
        actions=_all("secretsmanager", "CreateSecret DeleteSecret DescribeSecret GetResourcePolicy"),
        unseen={
            **_each("secretsmanager", "TagResource UntagResource", TAGS),
            **_each("secretsmanager", "UpdateSecret", CHANGES),
        },
        resources=("arn:{partition}:secretsmanager:{region}:{account}:secret:corral/*",),
    ),
    Grant(
        sid="Logs",
        actions=_all("logs", "CreateLogGroup DeleteLogGroup ListTagsForResource PutRetentionPolicy"),
        unseen={
            **_each("logs", "TagResource UntagResource", TAGS),
            **_each("logs", "AssociateKmsKey DeleteRetentionPolicy DisassociateKmsKey", CHANGES),
        },
        resources=("arn:{partition}:logs:{region}:{account}:log-group:/corral/*",),
    ),
    Grant(
        sid="Topics",
        actions=_all("sns", "CreateTopic DeleteTopic GetTopicAttributes ListTagsForResource Subscribe"),
        unseen={
            **_each("sns", "TagResource UntagResource", TAGS),
            **_each("sns", "SetTopicAttributes", CHANGES),
            **_each("sns", "ListSubscriptionsByTopic", PROVIDER),
        },
        resources=("arn:{partition}:sns:{region}:{account}:watch-*",),
    ),
    Grant(
        sid="Alarms",
        actions=_all("cloudwatch", "DeleteAlarms ListTagsForResource PutMetricAlarm"),
        unseen=_each("cloudwatch", "TagResource UntagResource", TAGS),
        resources=("arn:{partition}:cloudwatch:{region}:{account}:alarm:watch-*",),
    ),
    Grant(
        sid="Budgets",
        actions=("budgets:ModifyBudget",),
        unseen={
            **_each("budgets", "TagResource UntagResource", TAGS),
            **_each("budgets", "ListTagsForResource", PROVIDER),
        },
        resources=("arn:{partition}:budgets::{account}:budget/corral-*",),
    ),
    Grant(
        sid="SeeBudgets", actions=("budgets:ViewBudget",), resources=("arn:{partition}:budgets::{account}:budget/*",)
    ),
    Grant(
        sid="DnsNames",
        actions=("route53:ChangeResourceRecordSets",),
        resources=ZONES,
        condition={"ForAllValues:StringLike": {RECORD_NAMES_KEY: "*.corral.internal"}},
    ),
    Grant(
        sid="DnsZones",
        actions=_all(
            "route53",
            "ChangeTagsForResource DeleteHostedZone GetDNSSEC GetHostedZone ListResourceRecordSets ListTagsForResource",
        ),
        unseen=_each("route53", "UpdateHostedZoneComment", CHANGES),
        resources=ZONES,
    ),
    Grant(  # a VPC of the region: its id is not known beforehand, and Route 53 knows no tags
        sid="NewZones",
        actions=("route53:CreateHostedZone",),
        unseen=_each("route53", "AssociateVPCWithHostedZone", FOR_ENDPOINTS),
        condition={"ForAllValues:StringLike": {VPCS_KEY: "VPCId=*,VPCRegion={region}"}},
    ),
    Grant(
        sid="Lists",
        actions=(
            "cloudwatch:DescribeAlarms",
            "logs:DescribeLogGroups",
            "sns:GetSubscriptionAttributes",
            "sns:Unsubscribe",
            "ssm:DescribeParameters",
            "tag:GetResources",
        ),
        unseen=_each("ssm", "GetCommandInvocation", ON_HEAD),
        condition=HERE,
    ),
    Grant(
        sid="Global",
        actions=("route53:ListHostedZones", "sts:GetCallerIdentity"),
        unseen=_each("route53", "GetChange", PROVIDER),
    ),
)
POLICIES: Mapping[str, tuple[Grant, ...]] = {
    "network": NETWORK,
    "storage": STORAGE,
    "identity": (*IDENTITY, *GUARDS),
}
# The state bucket has a name like a base's bucket: nobody may delete its versions or its protection.
PROTECTED = (
    *("s3:DeleteBucket*", "s3:DeleteObjectVersion", "s3:PutBucket*", "s3:PutEncryptionConfiguration"),
    *("s3:PutLifecycleConfiguration", "s3:TagResource", "s3:UntagResource"),
)

PREFIXES = {
    "efs": "elasticfilesystem",
    "elbv2": "elasticloadbalancing",
    "resourcegroupstaggingapi": "tag",
    "service-quotas": "servicequotas",
}
# Calls whose IAM action has another name. Source: Service Authorization Reference; S3 API Reference, "Permissions".
RENAMED: Mapping[tuple[str, str], str] = {
    ("s3", "CopyObject"): "PutObject",
    ("s3", "DeleteObjects"): "DeleteObject",
    ("s3", "GetBucketEncryption"): "GetEncryptionConfiguration",
    ("s3", "GetBucketLifecycleConfiguration"): "GetLifecycleConfiguration",
    ("s3", "GetPublicAccessBlock"): "GetBucketPublicAccessBlock",
    ("s3", "HeadBucket"): "ListBucket",
    ("s3", "HeadObject"): "GetObject",
    ("s3", "ListBuckets"): "ListAllMyBuckets",
    ("s3", "ListMultipartUploads"): "ListBucketMultipartUploads",
    ("s3", "ListObjectVersions"): "ListBucketVersions",
    ("s3", "ListObjects"): "ListBucket",
    ("s3", "ListObjectsV2"): "ListBucket",
    ("s3", "PutBucketEncryption"): "PutEncryptionConfiguration",
    ("s3", "PutBucketLifecycleConfiguration"): "PutLifecycleConfiguration",
    ("s3", "PutPublicAccessBlock"): "PutBucketPublicAccessBlock",
    ("budgets", "CreateBudget"): "ModifyBudget",
    ("budgets", "DeleteBudget"): "ModifyBudget",
    ("budgets", "DescribeBudget"): "ViewBudget",
    ("budgets", "DescribeBudgets"): "ViewBudget",
}


def deployer_policies(*, account: str, region: str, alias: str = STATE_ALIAS, bucket: str = "") -> tuple[Policy, ...]:
    """Return the policies that together allow running corral in this region, each within IAM's size limit.

    Policies for a key alias other than the default have that alias in their names.
    """
    partition = partition_of(region)
    facts = {"partition": partition.name, "domain": partition.dns_suffix, "region": region, "account": account}
    facts |= {"alias": alias, "ec2": service_principal("ec2", region)}
    state = bucket or STATE_BUCKET.format(**facts)
    facts |= {"state": state}
    name = "corral" if alias == STATE_ALIAS else alias.removeprefix("alias/")
    return tuple(
        Policy(name=f"{name}-deploy-{region}-{topic}", document=_document(topic, grants, facts))
        for topic, grants in POLICIES.items()
    )


def permission(service: str, operation: str) -> str:
    """Return the IAM action for an API call, by boto3's service name."""
    return f"{PREFIXES.get(service, service)}:{RENAMED.get((service, operation), operation)}"


def _document(topic: str, grants: Sequence[Grant], facts: Mapping[str, str]) -> Mapping[str, Any]:
    statements = [statement_of(grant, facts) for grant in grants]
    if topic == "storage":
        statements += _state_statements(facts)
    if topic == "network":  # a head's has the tag since it was made; with another one, a machine would have its address
        others = {**existing_interfaces("arn:{partition}:ec2:{region}:{account}".format(**facts)), "Sid": "Interfaces"}
        statements.append({**others, "Condition": {"Null": {resource_tag(BASE_TAG): "true"}}})
    return {"Version": "2012-10-17", "Statement": statements}


def statement_of(grant: Grant, facts: Mapping[str, str]) -> dict[str, Any]:
    """Return the statement of a policy for this grant, with these values for the names in its braces."""
    statement: dict[str, Any] = {
        "Sid": grant.sid,
        "Effect": "Allow",
        "Action": sorted((*grant.actions, *grant.unseen)),
        "Resource": [resource.format(**facts) for resource in grant.resources],
    }
    if grant.condition:
        statement["Condition"] = {
            test: {key: _values(value, facts) for key, value in keys.items()} for test, keys in grant.condition.items()
        }
    return statement


def _values(value: str | Sequence[str], facts: Mapping[str, str]) -> str | list[str]:
    return value.format(**facts) if isinstance(value, str) else [one.format(**facts) for one in value]


def _state_statements(facts: Mapping[str, str]) -> list[dict[str, Any]]:
    arn = "arn:{partition}:s3:::{state}".format(**facts)
    names = sorted({STATE_ALIAS, facts["alias"]})
    aliases = ["arn:{partition}:kms:{region}:{account}:".format(**facts) + name for name in names]
    objects = ["s3:DeleteObject", "s3:GetObject", "s3:GetObjectTagging", "s3:PutObject", "s3:PutObjectTagging"]
    default = f"arn:{{partition}}:s3:::{STATE_BUCKET}".format(**facts)
    others = {"Sid": "OtherStates", "Effect": "Deny", "Action": ["s3:*"], "Resource": [default, f"{default}/*"]}
    return [
        *([others] if default != arn else []),  # its name is like that of a base's bucket, too
        {"Sid": "State", "Effect": "Allow", "Action": ["s3:GetBucketLocation", "s3:ListBucket"], "Resource": [arn]},
        {"Sid": "States", "Effect": "Allow", "Action": objects, "Resource": [f"{arn}/*"]},
        {"Sid": "StateStays", "Effect": "Deny", "Action": list(PROTECTED), "Resource": [arn, f"{arn}/*"]},
        # Deployers decrypt with the key of this name, so they may not choose the key.
        {"Sid": "StateKeyStays", "Effect": "Deny", "Action": ["kms:*Alias"], "Resource": aliases},
    ]
