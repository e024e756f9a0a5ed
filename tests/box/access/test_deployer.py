"""Calls of a deployer: a role with exactly the policies that `corral bootstrap` creates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from test_access import client

from box.vpc_fixtures import Clients, LaunchNetwork
from corral.box import delays
from corral.box.access.policy_evaluator import RequiredAction, evaluate
from corral.box.access.tagged_resources import tag_context
from corral.box.account import ACCOUNT
from corral.box.api.kms import BoxKMS, LabelChange, possible_labels
from corral.box.client import BoxStatus
from corral.box.switches import Behaviour, Switches
from corral.engine.bootstrap.iam_steps import create_boundary
from corral.engine.bootstrap.step import BootstrapTarget
from corral.inventory.deletion import delete_resources
from corral.inventory.resources import AwsResource, ResourceKind
from corral.plan.iam.deployer_policy import Policy, deployer_policies
from corral.plan.iam.iam_policies import boundary_arn, trust_roles, trust_service
from deployer_role import DEPLOYER, create_deployer

REGION = "us-east-1"
TAGS = [{"Key": "corral:base", "Value": "dev"}]


@pytest.fixture
def deployer(box: BoxStatus, aws: Clients) -> Clients:
    """Makes clients with the deployer's credentials."""
    return as_deployer(box, aws)


def as_deployer(
    box: BoxStatus, aws: Clients, denied: str | None = None, policies: Sequence[Policy] | None = None
) -> Clients:
    """Makes clients of a role with the deployer's policies, or others. `denied`: an action that the role lacks."""
    iam = aws("iam")
    create_deployer(iam, policies=policies)
    create_boundary(aws, BootstrapTarget(account=ACCOUNT, region=REGION))
    if denied is not None:
        statement = {"Effect": "Deny", "Action": denied, "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_role_policy(RoleName=DEPLOYER, PolicyName="less", PolicyDocument=document)
    held = aws("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{DEPLOYER}", RoleSessionName="up")[
        "Credentials"
    ]
    return lambda service, region=REGION: client(box, service, held["AccessKeyId"], region)


def lustre(launch_network: LaunchNetwork) -> Mapping[str, Any]:
    return {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [launch_network.subnet],
        "SecurityGroupIds": [launch_network.group],
        "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
        "Tags": TAGS,
    }


def test_a_deployer_creates_a_file_system(deployer: Clients, launch_network: LaunchNetwork) -> None:
    made = deployer("fsx").create_file_system(**lustre(launch_network))["FileSystem"]
    assert made["Lifecycle"] == "CREATING"


@pytest.mark.parametrize("action", ["ec2:GetSecurityGroupsForVpc", "fsx:TagResource"])
def test_a_file_system_requires_its_dependent_actions(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork, action: str
) -> None:
    with pytest.raises(ClientError, match=f"not authorized to perform: {action}"):
        as_deployer(box, aws, denied=action)("fsx").create_file_system(**lustre(launch_network))


def home(aws: Clients, launch_network: LaunchNetwork) -> tuple[str, str]:
    """A file system of EFS with corral's tag, and its mount target, as the account's owner creates them."""
    efs = aws("efs")
    system = efs.create_file_system(CreationToken="home", Tags=TAGS)["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=system, SubnetId=launch_network.subnet)["MountTargetId"]
    return system, target


def test_the_interface_of_a_mount_target_has_no_tag(aws: Clients, launch_network: LaunchNetwork) -> None:
    home(aws, launch_network)
    (interface,) = aws("ec2").describe_network_interfaces()["NetworkInterfaces"]
    assert (interface["RequesterManaged"], interface["TagSet"]) == (True, [])


def test_a_deployer_creates_and_deletes_a_home(deployer: Clients, launch_network: LaunchNetwork) -> None:
    efs = deployer("efs")
    system, target = home(deployer, launch_network)
    efs.delete_mount_target(MountTargetId=target)
    efs.delete_file_system(FileSystemId=system)
    assert efs.describe_file_systems()["FileSystems"] == []


@pytest.mark.parametrize(
    "action",
    [
        "elasticfilesystem:TagResource",
        "ec2:DescribeSubnets",
        "ec2:DescribeNetworkInterfaces",
        "ec2:CreateNetworkInterface",
    ],
)
def test_a_mount_target_requires_its_dependent_actions(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork, action: str
) -> None:
    with pytest.raises(ClientError, match=f"not authorized to perform: {action}"):
        home(as_deployer(box, aws, denied=action), launch_network)


def test_the_end_of_a_mount_target_requires_the_deletion_of_its_interface(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    _, target = home(aws, launch_network)
    deployer = as_deployer(box, aws, denied="ec2:DeleteNetworkInterface")
    with pytest.raises(ClientError, match="not authorized to perform: ec2:DeleteNetworkInterface"):
        deployer("efs").delete_mount_target(MountTargetId=target)


def test_a_deployer_does_not_end_what_is_not_corrals(
    deployer: Clients, aws: Clients, launch_network: LaunchNetwork
) -> None:
    theirs = aws("efs").create_file_system(CreationToken="theirs")["FileSystemId"]
    with pytest.raises(ClientError, match="not authorized to perform: elasticfilesystem:DeleteFileSystem"):
        deployer("efs").delete_file_system(FileSystemId=theirs)


def key_tags(**tags: str) -> list[dict[str, str]]:
    return [{"TagKey": f"corral:{key}", "TagValue": value} for key, value in tags.items()]


def test_a_deployer_creates_a_key(deployer: Clients) -> None:
    """As the provider does, within seconds: the tag of a new key does not count yet."""
    kms = deployer("kms")
    key = kms.create_key(Tags=key_tags(base="dev", keep="key"))["KeyMetadata"]["KeyId"]
    kms.enable_key_rotation(KeyId=key)
    kms.create_alias(AliasName="alias/corral-dev", TargetKeyId=key)
    read = (kms.describe_key, kms.get_key_rotation_status, kms.list_resource_tags)
    assert [len(call(KeyId=key)) > 0 for call in read] == [True, True, True]


def test_a_new_key_is_not_deleted_by_its_tag(deployer: Clients) -> None:
    kms = deployer("kms")
    key = kms.create_key(Tags=key_tags(base="dev"))["KeyMetadata"]["KeyId"]
    with pytest.raises(ClientError, match="not authorized to perform: kms:ScheduleKeyDeletion"):
        kms.schedule_key_deletion(KeyId=key)


BASE, KEPT = {"corral:base": "dev"}, {"corral:base": "dev", "corral:keep": "key"}


def kms_decision(action: str, **context: str) -> bool:
    """Whether the deployer's policies allow this action of KMS on a key."""
    documents = [policy.document for policy in deployer_policies(account=ACCOUNT, region=REGION)]
    arn = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
    return evaluate(documents, (), RequiredAction(action=f"kms:{action}", resource=arn, context=context)).allowed


@pytest.mark.parametrize(
    ("left", "allowed"),
    [(BASE, [True, True]), ({}, [True, False])],  # if the tags before the change count, and if those after it
)
def test_a_key_is_deleted_after_its_keep_tag_was_removed_and_not_after_its_base_tag(
    left: Mapping[str, str], allowed: list[bool]
) -> None:
    changes = [LabelChange(at=0, labels=KEPT), LabelChange(at=1000, labels=left)]
    found = [
        kms_decision("ScheduleKeyDeletion", **tag_context(tags))
        for tags in possible_labels(changes, 1001, none={}, settle_s=300)
    ]
    assert found == allowed


@pytest.mark.parametrize(
    ("service", "allowed"), [("elasticfilesystem", True), ("fsx", True), ("ec2", True), ("s3", True), ("athena", False)]
)
def test_a_new_key_is_used_by_the_services_of_a_base(service: str, allowed: bool) -> None:
    via = {"kms:viaservice": f"{service}.{REGION}.amazonaws.com"}
    assert kms_decision("GenerateDataKeyWithoutPlaintext", **via) == allowed


def test_a_deployer_does_not_decrypt_with_any_key() -> None:
    assert not kms_decision("Decrypt", **{"aws:requestedregion": REGION})


CREATED, UNTAGGED = LabelChange(at=0, labels=KEPT), LabelChange(at=1000, labels=BASE)


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        ([CREATED], 299, ({}, KEPT)),
        ([CREATED], 300, (KEPT,)),
        ([CREATED, UNTAGGED], 1299, (KEPT, BASE)),
        ([CREATED, UNTAGGED], 1300, (BASE,)),
    ],
)
def test_the_tags_of_a_key_count_after_five_minutes(
    changes: list[LabelChange[Mapping[str, str]]], now: float, expected: tuple[Mapping[str, str], ...]
) -> None:
    assert possible_labels(changes, now, none={}, settle_s=300) == expected


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [(Behaviour.AWS_LIKE, ((), ("alias/lab",), (), ("alias/team",))), (Behaviour.INSTANT, (("alias/team",),))],
)
def test_a_new_alias_of_a_key_counts_later_in_an_aws_like_box(
    monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, expected: tuple[tuple[str, ...], ...]
) -> None:
    monkeypatch.setattr(delays, "switches", Switches(behaviour=behaviour))
    kms = BoxKMS(REGION, ACCOUNT)
    key = kms.create_key(None, None, "SYMMETRIC_DEFAULT", None, [])
    kms.create_alias(key.id, "alias/lab")
    kms.delete_alias("alias/lab")
    kms.create_alias(key.id, "alias/team")
    assert kms.aliases_for_authorization(key.id) == expected


def specified(kind: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": TAGS}]


def test_a_deployer_creates_and_deletes_a_network(deployer: Clients) -> None:
    ec2 = deployer("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16", TagSpecifications=specified("vpc"))["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway(TagSpecifications=specified("internet-gateway"))["InternetGateway"]
    ends = {"VpcId": vpc, "InternetGatewayId": gateway["InternetGatewayId"]}
    ec2.attach_internet_gateway(**ends)
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", TagSpecifications=specified("subnet"))["Subnet"]
    group = ec2.create_security_group(
        GroupName="g", Description="g", VpcId=vpc, TagSpecifications=specified("security-group")
    )["GroupId"]
    ec2.delete_security_group(GroupId=group)
    ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    ec2.detach_internet_gateway(**ends)
    ec2.delete_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"])
    ec2.delete_vpc(VpcId=vpc)
    assert vpc not in {one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"]}


def test_a_deployer_creates_endpoints_in_its_own_networks_alone(
    deployer: Clients, launch_network: LaunchNetwork
) -> None:
    """One for S3 would lead what a stranger's machines send there through the deployer's policy."""
    ec2 = deployer("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16", TagSpecifications=specified("vpc"))["Vpc"]["VpcId"]
    table = ec2.create_route_table(VpcId=vpc, TagSpecifications=specified("route-table"))["RouteTable"]["RouteTableId"]
    endpoint = {"ServiceName": f"com.amazonaws.{REGION}.s3", "TagSpecifications": specified("vpc-endpoint")}
    made = ec2.create_vpc_endpoint(VpcId=vpc, RouteTableIds=[table], **endpoint)["VpcEndpoint"]
    with pytest.raises(ClientError, match=f"not authorized to perform: ec2:CreateVpcEndpoint .*{launch_network.vpc}"):
        ec2.create_vpc_endpoint(VpcId=launch_network.vpc, **endpoint)
    assert made["VpcId"] == vpc


def test_a_deployer_creates_volumes_but_none_from_a_snapshot(deployer: Clients, aws: Clients) -> None:
    ec2, new = deployer("ec2"), {"AvailabilityZone": f"{REGION}a", "TagSpecifications": specified("volume")}
    volume = ec2.create_volume(Size=8, **new)["VolumeId"]
    snapshot = aws("ec2").create_snapshot(VolumeId=volume)["SnapshotId"]
    with pytest.raises(ClientError, match=f"not authorized to perform: ec2:CreateVolume .*snapshot/{snapshot}"):
        ec2.create_volume(SnapshotId=snapshot, **new)


def test_a_deployer_launches_with_an_interface_of_corrals_alone(
    deployer: Clients, launch_network: LaunchNetwork
) -> None:
    """A head has the address of an interface that was made before it."""
    ec2 = deployer("ec2")
    made = {
        kind: ec2.create_network_interface(SubnetId=launch_network.subnet, **more)["NetworkInterface"][
            "NetworkInterfaceId"
        ]
        for kind, more in (("own", {"TagSpecifications": specified("network-interface")}), ("theirs", {}))
    }

    def launch(interface: str) -> Any:
        nics = [{"DeviceIndex": 0, "NetworkInterfaceId": interface}]
        return ec2.run_instances(ImageId=launch_network.image, MinCount=1, MaxCount=1, NetworkInterfaces=nics)

    launch(made["own"])
    with pytest.raises(ClientError, match=f"not authorized to perform: ec2:RunInstances .*{made['theirs']}"):
        launch(made["theirs"])


def test_a_deployer_creates_and_deletes_a_placement_group(deployer: Clients) -> None:
    ec2 = deployer("ec2")
    ec2.create_placement_group(GroupName="p", Strategy="cluster", TagSpecifications=specified("placement-group"))
    ec2.delete_placement_group(GroupName="p")
    assert ec2.describe_placement_groups()["PlacementGroups"] == []


@pytest.mark.parametrize("call", ["delete_subnet", "delete_security_group", "delete_placement_group"])
def test_a_deployer_does_not_delete_an_untagged_resource_of_ec2(
    deployer: Clients, launch_network: LaunchNetwork, call: str
) -> None:
    parameters = {
        "delete_subnet": {"SubnetId": launch_network.subnet},
        "delete_security_group": {"GroupId": launch_network.group},
        "delete_placement_group": {"GroupName": launch_network.placement},
    }
    with pytest.raises(ClientError) as refused:
        getattr(deployer("ec2"), call)(**parameters[call])
    assert refused.value.response["Error"]["Code"] == "UnauthorizedOperation"


def test_a_deployer_does_not_tag_what_is_not_corrals(deployer: Clients, launch_network: LaunchNetwork) -> None:
    with pytest.raises(ClientError, match="not authorized to perform: ec2:CreateTags"):
        deployer("ec2").create_tags(Resources=[launch_network.subnet], Tags=TAGS)


BOUNDARY = boundary_arn(REGION, ACCOUNT)
TRUST = json.dumps(trust_service("ec2.amazonaws.com"))


def without(sid: str, action: str) -> tuple[Policy, ...]:
    """The deployer's policies, of which one statement no longer allows one action."""
    return tuple(
        Policy(
            name=policy.name,
            document={
                **policy.document,
                "Statement": [
                    {**one, "Action": left}
                    for one in policy.document["Statement"]
                    if (left := [each for each in one["Action"] if (one["Sid"], each) != (sid, action)])
                ],
            },
        )
        for policy in deployer_policies(account=ACCOUNT, region=REGION)
    )


def role(of: Clients, name: str = "identity-x", path: str = "/corral/", boundary: str = BOUNDARY) -> None:
    """A role within a boundary, by default as corral creates it."""
    of("iam").create_role(
        RoleName=name, Path=path, AssumeRolePolicyDocument=TRUST, PermissionsBoundary=boundary, Tags=TAGS
    )


def role_in_profile(of: Clients) -> None:
    """A role within corral's boundary, in an instance profile of its name."""
    role(of)
    iam = of("iam")
    iam.create_instance_profile(InstanceProfileName="identity-x", Path="/corral/", Tags=TAGS)
    iam.add_role_to_instance_profile(InstanceProfileName="identity-x", RoleName="identity-x")


def log_group(of: Clients) -> None:
    """A log group with a retention time and tags, as the provider creates it."""
    of("logs").create_log_group(logGroupName="/corral/dev", tags={"corral:base": "dev"})
    of("logs").put_retention_policy(logGroupName="/corral/dev", retentionInDays=30)


def topic_and_alarm(of: Clients) -> None:
    """A topic with a subscriber, and an alarm."""
    topic = of("sns").create_topic(Name="watch-topic-1", Tags=TAGS)["TopicArn"]
    of("sns").subscribe(TopicArn=topic, Protocol="email", Endpoint="ann@example.com")
    of("cloudwatch").put_metric_alarm(
        AlarmName="watch-head-1",
        Namespace="AWS/EC2",
        MetricName="StatusCheckFailed",
        ComparisonOperator="GreaterThanThreshold",
        EvaluationPeriods=1,
        Threshold=0.0,
        Period=60,
        Statistic="Maximum",
        Tags=TAGS,
    )


def secret_and_parameter(of: Clients) -> None:
    """A secret under a key of the base, and a parameter."""
    key = of("kms").create_key(Tags=key_tags(base="dev"))["KeyMetadata"]["Arn"]
    of("secretsmanager").create_secret(Name="corral/dev/munge", KmsKeyId=key, Tags=TAGS)
    of("ssm").put_parameter(Name="/corral/dev/image", Value="ami-1", Type="String")
    of("ssm").add_tags_to_resource(ResourceType="Parameter", ResourceId="/corral/dev/image", Tags=TAGS)


def zone_with_record(of: Clients) -> None:
    """A private zone, and a name of corral's in it."""
    vpc = of("ec2").describe_vpcs()["Vpcs"][0]["VpcId"]
    name = "dev.corral.internal"
    zone = of("route53").create_hosted_zone(
        Name=name, CallerReference="1", VPC={"VPCRegion": REGION, "VPCId": vpc}, HostedZoneConfig={"PrivateZone": True}
    )["HostedZone"]["Id"]
    record(of, zone, f"head.{name}")


def record(of: Clients, zone: str, *names: str) -> None:
    """Records of a zone."""
    changes = [
        {
            "Action": "UPSERT",
            "ResourceRecordSet": {"Name": one, "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]},
        }
        for one in names
    ]
    of("route53").change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})


MADE = (role_in_profile, log_group, topic_and_alarm, secret_and_parameter, zone_with_record)


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_a_deployer_makes(deployer: Clients, make: Callable[[Clients], None]) -> None:
    make(deployer)


@pytest.mark.parametrize(
    ("sid", "action", "make"),
    [
        ("CreateRoles", "iam:CreateRole", role_in_profile),
        ("PassRoles", "iam:PassRole", role_in_profile),
        ("Roles", "iam:TagRole", role_in_profile),
        ("Profiles", "iam:AddRoleToInstanceProfile", role_in_profile),
        ("Logs", "logs:TagResource", log_group),
        ("Logs", "logs:PutRetentionPolicy", log_group),
        ("Topics", "sns:Subscribe", topic_and_alarm),
        ("Alarms", "cloudwatch:PutMetricAlarm", topic_and_alarm),
        ("Alarms", "cloudwatch:TagResource", topic_and_alarm),
        ("Secrets", "secretsmanager:TagResource", secret_and_parameter),
        ("UseKeys", "kms:GenerateDataKey*", secret_and_parameter),
        ("UseKeys", "kms:Decrypt", secret_and_parameter),
        ("Parameters", "ssm:AddTagsToResource", secret_and_parameter),
        ("DnsNames", "route53:ChangeResourceRecordSets", zone_with_record),
        ("NewZones", "route53:CreateHostedZone", zone_with_record),
    ],
)
def test_a_grant_that_is_taken_away_is_missed(
    box: BoxStatus, aws: Clients, sid: str, action: str, make: Callable[[Clients], None]
) -> None:
    deployer = as_deployer(box, aws, policies=without(sid, action))
    with pytest.raises(ClientError, match=f"not authorized to perform: {action.removesuffix('*')} "):
        make(deployer)


def test_a_role_without_corrals_boundary_is_not_created(deployer: Clients) -> None:
    with pytest.raises(ClientError, match="not authorized to perform: iam:CreateRole"):
        deployer("iam").create_role(RoleName="identity-x", Path="/corral/", AssumeRolePolicyDocument=TRUST, Tags=TAGS)


@pytest.mark.parametrize(
    "other",
    [{"path": "/"}, {"name": "other"}, {"boundary": f"arn:aws:iam::{ACCOUNT}:policy/corral/guards-boundary-wide"}],
    ids=["path", "name", "boundary"],
)
def test_a_role_of_another_path_name_or_boundary_is_not_created(deployer: Clients, other: dict[str, str]) -> None:
    role(deployer)  # as corral creates it
    with pytest.raises(ClientError, match="not authorized to perform: iam:CreateRole"):
        role(deployer, **{"name": "identity-y", **other})


WIDE = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
ESCALATIONS: Sequence[tuple[str, Mapping[str, Any]]] = [
    ("create_policy", {"PolicyName": "guards-boundary-wide", "Path": "/corral/", "PolicyDocument": WIDE}),
    ("create_policy_version", {"PolicyArn": BOUNDARY, "PolicyDocument": WIDE, "SetAsDefault": True}),
    ("set_default_policy_version", {"PolicyArn": BOUNDARY, "VersionId": "v1"}),
    ("delete_policy", {"PolicyArn": BOUNDARY}),
    ("delete_role_permissions_boundary", {"RoleName": "identity-x"}),
    ("update_assume_role_policy", {"RoleName": "identity-x", "PolicyDocument": TRUST}),
    ("attach_role_policy", {"RoleName": "identity-x", "PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}),
]


@pytest.mark.parametrize(("call", "parameters"), ESCALATIONS, ids=[call for call, _ in ESCALATIONS])
def test_a_deployer_does_not_widen_what_its_roles_may(
    deployer: Clients, call: str, parameters: Mapping[str, Any]
) -> None:
    role(deployer)
    deployer("iam").put_role_policy(RoleName="identity-x", PolicyName="own", PolicyDocument=WIDE)
    with pytest.raises(ClientError, match="not authorized to perform"):
        getattr(deployer("iam"), call)(**parameters)


def test_a_role_of_a_deployer_is_held_by_the_boundary_whatever_its_own_policy(
    box: BoxStatus, deployer: Clients, aws: Clients
) -> None:
    trust = json.dumps(trust_roles([f"arn:aws:iam::{ACCOUNT}:root"]))
    deployer("iam").create_role(
        RoleName="identity-x", Path="/corral/", AssumeRolePolicyDocument=trust, PermissionsBoundary=BOUNDARY, Tags=TAGS
    )
    deployer("iam").put_role_policy(RoleName="identity-x", PolicyName="own", PolicyDocument=WIDE)
    held = aws("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/corral/identity-x", RoleSessionName="xx")
    key = held["Credentials"]["AccessKeyId"]
    instances = client(box, "ec2", key).describe_instances()["Reservations"]
    with pytest.raises(ClientError, match="not authorized to perform: iam:CreateUser"):
        client(box, "iam", key).create_user(UserName="admin")
    assert instances == []


def test_a_role_that_lost_its_boundary_gets_no_policy(deployer: Clients, aws: Clients) -> None:
    role_in_profile(deployer)
    aws("iam").delete_role_permissions_boundary(RoleName="identity-x")
    with pytest.raises(ClientError, match="not authorized to perform: iam:PutRolePolicy"):
        deployer("iam").put_role_policy(RoleName="identity-x", PolicyName="p", PolicyDocument="{}")


@pytest.mark.parametrize(
    ("service", "call", "parameters"),
    [
        ("iam", "get_role", {"RoleName": "admin"}),
        ("iam", "delete_policy", {"PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/corral-deploy-us-east-1-network"}),
        ("logs", "delete_log_group", {"logGroupName": "/aws/lambda/theirs"}),
        ("sns", "create_topic", {"Name": "theirs"}),
        ("cloudwatch", "delete_alarms", {"AlarmNames": ["theirs"]}),
        ("secretsmanager", "delete_secret", {"SecretId": "theirs"}),
        ("secretsmanager", "get_secret_value", {"SecretId": "corral/dev/munge"}),
        ("ssm", "put_parameter", {"Name": "/theirs", "Value": "v", "Type": "String"}),
        ("s3", "delete_object", {"Bucket": "theirs", "Key": "k"}),
    ],
)
def test_a_deployer_does_not_touch(deployer: Clients, service: str, call: str, parameters: Any) -> None:
    with pytest.raises(ClientError, match="not authorized to perform"):
        getattr(deployer(service), call)(**parameters)


def test_a_deployer_writes_only_names_of_corral(deployer: Clients, aws: Clients) -> None:
    zone = aws("route53").create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"]
    with pytest.raises(ClientError, match="not authorized to perform: route53:ChangeResourceRecordSets"):
        record(deployer, zone, "head.dev.corral.internal", "www.example.com")


def test_a_key_whose_policy_its_creator_could_not_change_is_refused(deployer: Clients) -> None:
    with pytest.raises(ClientError, match="will not allow you to update the key policy in the future"):
        deployer("kms").create_key(Policy=json.dumps({"Version": "2012-10-17", "Statement": []}))


def test_a_deployer_decrypts_with_the_key_of_the_states_alone(deployer: Clients, aws: Clients) -> None:
    kms = aws("kms")
    keys = [kms.create_key()["KeyMetadata"]["KeyId"] for _ in range(2)]
    kms.create_alias(AliasName="alias/corral-state", TargetKeyId=keys[0])
    deployer("kms").encrypt(KeyId=keys[0], Plaintext=b"secret")
    with pytest.raises(ClientError, match="not authorized to perform: kms:Encrypt"):
        deployer("kms").encrypt(KeyId=keys[1], Plaintext=b"secret")


def test_a_cleanup_does_not_miss_a_volume_that_went_with_its_instance(box: BoxStatus, aws: Clients) -> None:
    session = SimpleNamespace(client=as_deployer(box, aws))
    gone = AwsResource(kind=ResourceKind.VOLUME, id="vol-0123456789abcdef0", tags={"corral:base": "dev"})
    assert [one.refusal for one in delete_resources(session, [gone])] == [None]
