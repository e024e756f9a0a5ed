"""The saved cloud: all services come back, and a disk that cannot be written is told, not fatal."""

from __future__ import annotations

from pathlib import Path

import boxes
from corral.box import control


def test_a_save_that_fails_is_told_and_made_up_for(state_directory: Path) -> None:
    status = control.start(state_directory)
    s3 = boxes.client(status, "s3")
    in_the_way = state_directory / "cloud.new"
    in_the_way.mkdir()
    s3.create_bucket(Bucket="first")
    failed = control.status(state_directory).problem
    in_the_way.rmdir()
    control.reset(state_directory)
    assert (failed, control.status(state_directory).problem) == (
        "the cloud could not be saved: Is a directory",
        None,
    )


def test_every_service_that_the_stacks_use_comes_back_after_a_restart(state_directory: Path) -> None:
    status = control.start(state_directory)
    for service, action, parameters in (
        ("ec2", "create_vpc", {"CidrBlock": "10.0.0.0/16"}),
        ("s3", "create_bucket", {"Bucket": "kept"}),
        ("kms", "create_key", {"KeySpec": "RSA_2048", "KeyUsage": "SIGN_VERIFY"}),
        ("ssm", "put_parameter", {"Name": "/kept", "Value": "x", "Type": "String"}),
        ("sqs", "create_queue", {"QueueName": "kept"}),
        ("sns", "create_topic", {"Name": "kept"}),
        ("efs", "create_file_system", {"CreationToken": "kept"}),
        ("logs", "create_log_group", {"logGroupName": "kept"}),
        ("secretsmanager", "create_secret", {"Name": "kept"}),
        ("iam", "create_instance_profile", {"InstanceProfileName": "kept"}),
        ("route53", "create_hosted_zone", {"Name": "kept.internal", "CallerReference": "1"}),
        ("dynamodb", "list_tables", {}),
        ("events", "put_rule", {"Name": "kept", "ScheduleExpression": "rate(1 hour)"}),
        ("resourcegroupstaggingapi", "get_resources", {"ResourcesPerPage": 1}),
        ("cloudwatch", "put_metric_data", {"Namespace": "kept", "MetricData": [{"MetricName": "m", "Value": 1.0}]}),
    ):
        getattr(boxes.client(status, service), action)(**parameters)
    before = control.inventory(state_directory)
    control.stop(state_directory)
    control.start(state_directory)
    assert (len(before), control.inventory(state_directory)) == (12, before)


def test_a_bucket_name_stays_taken_after_a_restart(state_directory: Path) -> None:
    boxes.client(control.start(state_directory), "s3").create_bucket(Bucket="taken")
    control.stop(state_directory)
    s3 = boxes.client(control.start(state_directory), "s3")
    s3.put_object(Bucket="taken", Key="a", Body=b"1")
    assert s3.get_object(Bucket="taken", Key="a")["Body"].read() == b"1"
