"""The smaller services: the calls of the stacks, through boto3."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients

ACCOUNT = "123456789012"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)
POLICY = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]})


def _code(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return str(refused.value.response["Error"]["Code"])


@pytest.mark.parametrize(
    "name",
    [
        "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
        "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
        "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
        "/aws/service/debian/release/13/latest/amd64",
        "/corral-box/ami",
    ],
)
@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1"])
def test_a_public_parameter_names_an_image_of_its_region(aws: Clients, name: str, region: str) -> None:
    image = aws("ssm", region).get_parameter(Name=name)["Parameter"]["Value"]
    assert len(aws("ec2", region).describe_images(ImageIds=[image])["Images"]) == 1


def test_a_parameter_under_the_reserved_prefix_is_refused(aws: Clients) -> None:
    with pytest.raises(ClientError) as refused:
        aws("ssm").put_parameter(Name="/aws/mine", Value="x", Type="String")
    assert _code(refused) == "AccessDeniedException"


def _budget(aws: Clients) -> Any:
    budgets = aws("budgets")
    budgets.create_budget(
        AccountId=ACCOUNT,
        Budget={
            "BudgetName": "dev",
            "BudgetLimit": {"Amount": "100", "Unit": "USD"},
            "TimeUnit": "MONTHLY",
            "BudgetType": "COST",
        },
        NotificationsWithSubscribers=[
            {
                "Notification": {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80.0},
                "Subscribers": [{"SubscriptionType": "EMAIL", "Address": "a@b.c"}],
            }
        ],
        ResourceTags=[{"Key": "corral:base", "Value": "dev"}],
    )
    return budgets


def test_a_budget_keeps_its_notifications_subscribers_and_tags(aws: Clients) -> None:
    budgets, named = _budget(aws), {"AccountId": ACCOUNT, "BudgetName": "dev"}
    (notification,) = budgets.describe_notifications_for_budget(**named)["Notifications"]
    subscribers = budgets.describe_subscribers_for_notification(**named, Notification=notification)["Subscribers"]
    tags = budgets.list_tags_for_resource(ResourceARN=f"arn:aws:budgets::{ACCOUNT}:budget/dev")["ResourceTags"]
    assert (notification["Threshold"], subscribers, tags) == (
        80.0,
        [{"SubscriptionType": "EMAIL", "Address": "a@b.c"}],
        [{"Key": "corral:base", "Value": "dev"}],
    )


def test_a_budget_can_be_changed_without_losing_its_notifications(aws: Clients) -> None:
    budgets, named = _budget(aws), {"AccountId": ACCOUNT, "BudgetName": "dev"}
    budget = budgets.describe_budget(**named)["Budget"]
    changed = {name: budget[name] for name in ("BudgetName", "TimeUnit", "BudgetType")}
    budgets.update_budget(AccountId=ACCOUNT, NewBudget={**changed, "BudgetLimit": {"Amount": "200", "Unit": "USD"}})
    after = budgets.describe_budget(**named)["Budget"]["BudgetLimit"]["Amount"]
    assert (after, len(budgets.describe_notifications_for_budget(**named)["Notifications"])) == ("200", 1)


def _role(aws: Clients) -> Any:
    iam = aws("iam")
    boundary = iam.create_policy(PolicyName="boundary", PolicyDocument=POLICY)["Policy"]["Arn"]
    iam.create_role(RoleName="head", AssumeRolePolicyDocument=TRUST, PermissionsBoundary=boundary)
    return iam


def _long(characters: int) -> str:
    """A policy of so many characters, white space not counted, with a lot of white space."""
    document = json.loads(POLICY)
    document["Statement"][0]["Sid"] = ""
    missing = characters - len("".join(json.dumps(document).split()))
    document["Statement"][0]["Sid"] = "x" * missing
    return json.dumps(document, indent=40)


def test_a_managed_policy_has_6144_characters_at_most_white_space_not_counted(aws: Clients) -> None:
    iam = aws("iam")
    arn = iam.create_policy(PolicyName="long", PolicyDocument=_long(6_144))["Policy"]["Arn"]
    calls = [
        (iam.create_policy, {"PolicyName": "longer", "PolicyDocument": _long(6_145)}),
        (iam.create_policy_version, {"PolicyArn": arn, "PolicyDocument": _long(6_145)}),
    ]
    result = []
    for call, parameters in calls:
        with pytest.raises(ClientError) as refused:
            call(**parameters)
        result.append((refused.value.response["Error"]["Code"], refused.value.response["Error"]["Message"]))
    assert result == [("LimitExceeded", "Cannot exceed quota for PolicySize: 6144")] * 2


def test_the_inline_policies_of_a_role_have_10240_characters_together_white_space_not_counted(aws: Clients) -> None:
    iam = _role(aws)
    iam.put_role_policy(RoleName="head", PolicyName="one", PolicyDocument=_long(10_000))
    iam.put_role_policy(RoleName="head", PolicyName="two", PolicyDocument=_long(240))
    iam.put_role_policy(RoleName="head", PolicyName="one", PolicyDocument=_long(10_000))  # in place of itself
    with pytest.raises(ClientError) as refused:
        iam.put_role_policy(RoleName="head", PolicyName="two", PolicyDocument=_long(241))
    result = refused.value.response["Error"]
    assert (result["Code"], result["Message"]) == (
        "LimitExceeded",
        "Maximum policy size of 10240 bytes exceeded for role head",
    )


def test_a_sixth_version_of_a_policy_is_refused(aws: Clients) -> None:
    iam = aws("iam")
    arn = iam.create_policy(PolicyName="five", PolicyDocument=POLICY)["Policy"]["Arn"]
    for _ in range(4):
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=POLICY, SetAsDefault=True)
    with pytest.raises(ClientError) as refused:
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=POLICY)
    assert refused.value.response["Error"]["Code"] == "LimitExceeded"


def test_the_default_version_is_not_deleted(aws: Clients) -> None:
    iam = aws("iam")
    arn = iam.create_policy(PolicyName="one", PolicyDocument=POLICY)["Policy"]["Arn"]
    with pytest.raises(ClientError) as refused:
        iam.delete_policy_version(PolicyArn=arn, VersionId="v1")
    assert refused.value.response["Error"]["Code"] == "DeleteConflict"


def test_a_policy_of_aws_can_be_attached_and_is_not_the_accounts(aws: Clients) -> None:
    iam, arn = _role(aws), "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    iam.attach_role_policy(RoleName="head", PolicyArn=arn)
    attached = iam.list_attached_role_policies(RoleName="head")["AttachedPolicies"]
    own = iam.list_policies(Scope="Local")["Policies"]
    assert ([held["PolicyArn"] for held in attached], [held["PolicyName"] for held in own]) == ([arn], ["boundary"])


def test_a_policy_that_neither_aws_nor_the_account_has_is_refused(aws: Clients) -> None:
    iam = _role(aws)
    with pytest.raises(ClientError) as refused:
        iam.attach_role_policy(RoleName="head", PolicyArn="arn:aws:iam::aws:policy/AmazonNothing")
    assert _code(refused) == "NoSuchEntity"


def test_roles_and_policies_stay_while_something_holds_them(aws: Clients) -> None:
    iam, codes = _role(aws), []
    iam.put_role_policy(RoleName="head", PolicyName="own", PolicyDocument=POLICY)
    iam.create_instance_profile(InstanceProfileName="head")
    iam.add_role_to_instance_profile(InstanceProfileName="head", RoleName="head")
    for act, named in (
        (iam.delete_policy, {"PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/boundary"}),
        (iam.delete_role, {"RoleName": "head"}),
        (iam.delete_instance_profile, {"InstanceProfileName": "head"}),
    ):
        with pytest.raises(ClientError) as refused:
            act(**named)
        codes.append(_code(refused))
    assert codes == ["DeleteConflict", "DeleteConflict", "DeleteConflict"]


def test_a_secret_deleted_without_recovery_frees_its_name(aws: Clients) -> None:
    secrets = aws("secretsmanager")
    secrets.create_secret(Name="munge", SecretString="x")
    secrets.delete_secret(SecretId="munge", ForceDeleteWithoutRecovery=True)
    assert secrets.create_secret(Name="munge", SecretString="y")["Name"] == "munge"


def test_the_changes_that_create_and_delete_a_zone_are_found(aws: Clients) -> None:
    """AWS's own provider waits for both."""
    route53 = aws("route53")
    created = route53.create_hosted_zone(Name="found.example.", CallerReference="found")
    deleted = route53.delete_hosted_zone(Id=created["HostedZone"]["Id"])
    states = [route53.get_change(Id=one["ChangeInfo"]["Id"])["ChangeInfo"]["Status"] for one in (created, deleted)]
    assert states == ["INSYNC", "INSYNC"]


def test_a_zone_with_a_vpc_is_private(aws: Clients) -> None:
    vpc = aws("ec2").create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    route53 = aws("route53")
    created = route53.create_hosted_zone(
        Name="dev.example.", CallerReference="vpc", VPC={"VPCId": vpc, "VPCRegion": "us-east-1"}
    )
    found = route53.get_hosted_zone(Id=created["HostedZone"]["Id"])
    assert (found["HostedZone"]["Config"]["PrivateZone"], found["VPCs"]) == (
        True,
        [{"VPCId": vpc, "VPCRegion": "us-east-1"}],
    )


def test_a_private_zone_stays_while_it_has_records(aws: Clients) -> None:
    route53 = aws("route53")
    vpc = aws("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    zone = route53.create_hosted_zone(
        Name="dev.internal",
        CallerReference="1",
        VPC={"VPCRegion": "us-east-1", "VPCId": vpc},
        HostedZoneConfig={"PrivateZone": True},
    )["HostedZone"]["Id"]
    record = {"Name": "head.dev.internal", "Type": "A", "TTL": 10, "ResourceRecords": [{"Value": "10.0.1.4"}]}

    def change(action: str) -> None:
        changes = [{"Action": action, "ResourceRecordSet": record}]
        route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})

    change("CREATE")
    with pytest.raises(ClientError) as refused:
        route53.delete_hosted_zone(Id=zone)
    change("DELETE")
    route53.delete_hosted_zone(Id=zone)
    assert (_code(refused), route53.list_hosted_zones()["HostedZones"]) == ("HostedZoneNotEmpty", [])


def test_a_private_zone_has_no_dnssec(aws: Clients) -> None:
    route53 = aws("route53")
    vpc = aws("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    zone = route53.create_hosted_zone(
        Name="dev.internal",
        CallerReference="1",
        VPC={"VPCRegion": "us-east-1", "VPCId": vpc},
        HostedZoneConfig={"PrivateZone": True},
    )["HostedZone"]["Id"]
    with pytest.raises(ClientError, match="Operation is unsupported for private") as refused:
        route53.get_dnssec(HostedZoneId=zone)
    assert _code(refused) == "InvalidArgument"


def test_an_alarm_keeps_its_settings(aws: Clients) -> None:
    cloudwatch = aws("cloudwatch")
    wanted = {
        "AlarmName": "head",
        "Namespace": "AWS/EC2",
        "MetricName": "StatusCheckFailed",
        "Dimensions": [{"Name": "InstanceId", "Value": "i-1"}],
        "Statistic": "Maximum",
        "Period": 60,
        "EvaluationPeriods": 2,
        "Threshold": 1.0,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "breaching",
        "AlarmActions": [f"arn:aws:sns:us-east-1:{ACCOUNT}:alarms"],
    }
    cloudwatch.put_metric_alarm(**wanted)
    shown = cloudwatch.describe_alarms(AlarmNames=["head"])["MetricAlarms"][0]
    assert {name: shown[name] for name in wanted} == wanted


def test_a_log_group_keeps_its_retention_and_tags(aws: Clients) -> None:
    logs = aws("logs")
    logs.create_log_group(logGroupName="/corral/dev", tags={"corral:cluster": "dev"})
    logs.put_retention_policy(logGroupName="/corral/dev", retentionInDays=14)
    group = logs.describe_log_groups(logGroupNamePrefix="/corral")["logGroups"][0]
    tags = logs.list_tags_for_resource(resourceArn=group["logGroupArn"])["tags"]
    assert (group["retentionInDays"], tags) == (14, {"corral:cluster": "dev"})


@pytest.mark.parametrize("action", ["encrypt", "tag_resource", "create_grant", "schedule_key_deletion"])
def test_a_key_pending_deletion_serves_no(aws: Clients, action: str) -> None:
    kms = aws("kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.schedule_key_deletion(KeyId=key)
    more: dict[str, Any] = {
        "encrypt": {"Plaintext": b"secret"},
        "tag_resource": {"Tags": [{"TagKey": "corral:keep", "TagValue": "dev"}]},
        "create_grant": {"GranteePrincipal": "arn:aws:iam::123456789012:role/x", "Operations": ["Decrypt"]},
    }
    with pytest.raises(ClientError, match=rf"KMSInvalidStateException.*{key} is pending deletion"):
        getattr(kms, action)(KeyId=key, **more.get(action, {}))


def test_an_alias_of_a_key_pending_deletion_decrypts_nothing(aws: Clients) -> None:
    kms = aws("kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName="alias/base", TargetKeyId=key)
    kms.schedule_key_deletion(KeyId=key)
    with pytest.raises(ClientError, match="KMSInvalidStateException"):
        kms.encrypt(KeyId="alias/base", Plaintext=b"secret")


def test_a_key_pending_deletion_is_described_and_restored(aws: Clients) -> None:
    kms = aws("kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.schedule_key_deletion(KeyId=key)
    before = kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
    kms.cancel_key_deletion(KeyId=key)
    assert (before, kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"]) == ("PendingDeletion", "Disabled")


def test_a_key_encrypts_unless_it_has_another_use(aws: Clients) -> None:
    assert aws("kms").create_key()["KeyMetadata"]["KeyUsage"] == "ENCRYPT_DECRYPT"


def test_a_signature_is_one_that_openssl_verifies(aws: Clients, tmp_path: Path) -> None:
    kms = aws("kms")
    key = kms.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
    signed = kms.sign(KeyId=key, Message=b"text\n", MessageType="RAW", SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256")
    (tmp_path / "signature").write_bytes(signed["Signature"])
    (tmp_path / "key.der").write_bytes(kms.get_public_key(KeyId=key)["PublicKey"])
    command = ["openssl", "dgst", "-sha256", "-verify", "key.der", "-keyform", "DER", "-signature", "signature"]
    done = subprocess.run(command, cwd=tmp_path, input=b"text\n", capture_output=True, check=False)
    assert done.stdout == b"Verified OK\n"


def test_a_message_of_more_than_4096_bytes_is_not_signed(aws: Clients) -> None:
    kms = aws("kms")
    key = kms.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
    with pytest.raises(ClientError) as refused:
        kms.sign(KeyId=key, Message=b"x" * 4097, SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256")
    assert _code(refused) == "ValidationException"
