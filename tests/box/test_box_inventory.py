"""The inventory: it lists all resources, except those of every new account."""

from __future__ import annotations

import pytest
from vpc_fixtures import Clients, LaunchNetwork, launch, node_template

from boxes import inventory, subscribed_queue
from corral.box.client import BoxStatus


def test_an_empty_cloud_has_an_empty_inventory_after_read_calls(aws: Clients, box: BoxStatus) -> None:
    aws("ec2").describe_vpcs()
    aws("ec2", "eu-west-1").describe_images()
    aws("iam").list_policies()
    aws("kms").list_aliases()
    aws("ssm").get_parameter(Name="/corral-box/ami")
    aws("events").list_event_buses()
    aws("athena").list_work_groups()
    assert inventory(box.dir) == {}


def test_the_network_of_a_launch_is_counted(aws: Clients, launch_network: LaunchNetwork, box: BoxStatus) -> None:
    placement = aws("ec2").describe_placement_groups()["PlacementGroups"][0]["GroupName"]
    assert inventory(box.dir) == {
        "ec2/placement-group": [placement],
        "ec2/security-group": [launch_network.group],
        "ec2/subnet": [launch_network.subnet],
        "ec2/vpc": [launch_network.vpc],
        "iam/instance-profile": ["compute"],
    }


def test_an_instance_is_listed_with_its_resources_until_it_terminates(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    before = inventory(box.dir)
    ec2 = aws("ec2")
    (instance,) = launch(aws, node_template(launch_network))
    during = inventory(box.dir)
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    ec2.delete_launch_template(LaunchTemplateName="test-0")
    new = {kind: len(ids) for kind, ids in during.items() if kind not in before}
    assert (new, inventory(box.dir) == before) == (
        {"ec2/instance": 1, "ec2/launch-template": 1, "ec2/network-interface": 5, "ec2/volume": 1},
        True,
    )


def test_a_scheduled_deletion_is_shown(aws: Clients, box: BoxStatus) -> None:
    key = aws("kms").create_key()["KeyMetadata"]["KeyId"]
    aws("kms").schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    aws("secretsmanager").create_secret(Name="munge", SecretString="x")
    aws("secretsmanager").delete_secret(SecretId="munge")
    assert inventory(box.dir) == {
        "kms/key": [f"{key} (scheduled for deletion)"],
        "secretsmanager/secret": ["munge (scheduled for deletion)"],
    }


def test_the_public_key_of_notifications_is_no_resource(aws: Clients, box: BoxStatus) -> None:
    sns, sqs = aws("sns"), aws("sqs")
    topic = sns.create_topic(Name="alarms")["TopicArn"]
    queue = subscribed_queue(sns, sqs, topic)
    sns.publish(TopicArn=topic, Message="a node is slow")
    received = sqs.receive_message(QueueUrl=queue)["Messages"]
    sqs.delete_queue(QueueUrl=queue)
    sns.delete_topic(TopicArn=topic)
    assert (len(received), inventory(box.dir)) == (1, {})


def test_each_named_resource_is_listed(aws: Clients, box: BoxStatus) -> None:
    s3, iam, kms = aws("s3"), aws("iam"), aws("kms")
    s3.create_bucket(Bucket="artefacts")
    s3.put_object(Bucket="artefacts", Key="agent/bundle.tar", Body=b"x")
    iam.create_role(RoleName="head", AssumeRolePolicyDocument=_trust())
    kms.create_alias(AliasName="alias/dev", TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])
    aws("logs").create_log_group(logGroupName="/corral/dev")
    aws("ssm").put_parameter(Name="/corral/dev", Value="x", Type="String")
    aws("sns").create_topic(Name="alarms")
    aws("efs").create_file_system(CreationToken="home")
    found = inventory(box.dir)
    by_id = (found.pop("kms/key"), found.pop("efs/file-system"))
    assert ([len(ids) for ids in by_id], found) == (
        [1, 1],
        {
            "iam/role": ["head"],
            "kms/alias": ["alias/dev"],
            "logs/log-group": ["/corral/dev"],
            "s3/bucket": ["artefacts"],
            "s3/object": ["artefacts/agent/bundle.tar"],
            "sns/topic": ["arn:aws:sns:us-east-1:123456789012:alarms"],
            "ssm/parameter": ["/corral/dev"],
        },
    )


def test_another_region_is_named(aws: Clients, box: BoxStatus) -> None:
    vpc = aws("ec2", "eu-west-1").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    assert inventory(box.dir) == {"ec2/vpc": [f"eu-west-1/{vpc}"]}


@pytest.mark.parametrize(
    ("service", "action", "parameters", "found"),
    [
        ("sqs", "create_queue", {"QueueName": "strange"}, {"sqs/Queue": ["strange"]}),
        (
            "dynamodb",
            "create_table",
            {
                "TableName": "strange",
                "AttributeDefinitions": [{"AttributeName": "a", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
            {"dynamodb/Table": ["strange"]},
        ),
        ("ecr", "create_repository", {"repositoryName": "strange"}, {"ecr/Repository": ["strange"]}),
        (
            "events",
            "put_rule",
            {"Name": "strange", "ScheduleExpression": "rate(1 hour)"},
            {"events/Rule": 1},
        ),
        ("ec2", "create_key_pair", {"KeyName": "strange"}, {"ec2/key-pair": ["strange"]}),
        ("ec2", "create_vpn_gateway", {"Type": "ipsec.1"}, {"ec2/VpnGateway": 1}),
        ("scheduler", "create_schedule_group", {"Name": "strange"}, {"scheduler/ScheduleGroup": ["strange"]}),
    ],
)
def test_an_unknown_kind_is_listed_under_its_class_name(
    aws: Clients, box: BoxStatus, service: str, action: str, parameters: dict[str, object], found: dict[str, object]
) -> None:
    getattr(aws(service), action)(**parameters)
    counted = inventory(box.dir)
    assert {kind: ids if isinstance(found.get(kind), list) else len(ids) for kind, ids in counted.items()} == found


def _trust() -> str:
    return (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",'
        ' "Principal": {"Service": "ec2.amazonaws.com"}}]}'
    )
