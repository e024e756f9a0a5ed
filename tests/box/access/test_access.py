"""Authorization of calls with a role's credentials, by the policies of corral's roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from box.vpc_fixtures import Clients, LaunchNetwork, create_launch_network, node_template
from corral.box.account import ACCOUNT
from corral.box.client import BoxStatus
from corral.box.machines.imds_data import access_key
from corral.box.secret import read_secret
from corral.box.state.directory import StateDirectory
from corral.plan.iam.iam_policies import (
    ClusterArns,
    JobArns,
    artefacts_policy,
    boundary_policy,
    document,
    head_policy,
    job_policy,
    trust_roles,
    trust_service,
)

REGION = "us-east-1"
BUCKET = "artefacts"


@dataclass(frozen=True, kw_only=True)
class Account:
    """Roles with their policies, and their resources. `as_role`: creates the clients of a role."""

    aws: Clients
    launch_network: LaunchNetwork
    as_role: Callable[[str], Clients]
    arns: Mapping[str, str]
    own: str
    foreign: str


def role_arn(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def identity_arn(name: str) -> str:
    return role_arn(f"corral/identity-{name}")


def create_role(iam: Any, name: str, trust: Mapping[str, Any], **limits: str) -> None:
    """A role at corral's path."""
    text = json.dumps(trust)
    iam.create_role(RoleName=f"identity-{name}", Path="/corral/", AssumeRolePolicyDocument=text, **limits)


@pytest.fixture
def account(box: BoxStatus, aws: Clients) -> Account:
    launch_network = create_launch_network(aws)
    iam = aws("iam")
    boundary = iam.create_policy(PolicyName="most", PolicyDocument=json.dumps(boundary_policy(REGION, ACCOUNT)))[
        "Policy"
    ]["Arn"]
    zone = aws("route53").create_hosted_zone(Name="dev.corral.internal", CallerReference="1")["HostedZone"]["Id"]
    secret = aws("secretsmanager").create_secret(Name="corral/dev/munge", SecretString="key")["ARN"]
    aws("s3").create_bucket(Bucket=BUCKET)
    bucket, key = f"arn:aws:s3:::{BUCKET}", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
    named = {
        "account": ACCOUNT,
        "region": REGION,
        "cluster": "dev",
        "prefix": "clusters/dev",
        "bucket": bucket,
        "key": key,
        "compute_role": identity_arn("compute"),
        "job_role": identity_arn("job"),
        "munge_secret": secret,
        "hosted_zone": f"arn:aws:route53:::{zone.lstrip('/')}",
        "log_group": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/corral/dev",
        "topic": f"arn:aws:sns:{REGION}:{ACCOUNT}:watch-topic-dev",
    }
    policies = {
        "head": head_policy(ClusterArns(**named)),
        "job": job_policy(
            JobArns(
                region=REGION,
                bucket=bucket,
                key=key,
                cluster="dev",
                repositories=(f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/team/train",),
            )
        ),
    }
    trust = {"head": trust_service("ec2.amazonaws.com"), "job": trust_roles([identity_arn("head")])}
    for name, policy in policies.items():
        create_role(iam, name, trust[name], PermissionsBoundary=boundary)
        iam.put_role_policy(RoleName=f"identity-{name}", PolicyName="own", PolicyDocument=json.dumps(policy))
    create_role(iam, "lonely", trust["head"])
    return Account(
        aws=aws,
        launch_network=launch_network,
        as_role=lambda name: _clients(box, aws("sts"), name),
        arns={**named, "zone": zone.rpartition("/")[2]},
        own=_template(aws, launch_network, "dev"),
        foreign=_template(aws, launch_network, "other"),
    )


def _clients(box: BoxStatus, sts: Any, role: str) -> Clients:
    held = sts.assume_role(RoleArn=identity_arn(role), RoleSessionName="test")["Credentials"]
    return lambda service, region=REGION: client(box, service, held["AccessKeyId"], region)


def client(box: BoxStatus, service: str, key: str, region: str = REGION) -> Any:
    """A client with this access key; the box checks no signature."""
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=box.url,
        aws_access_key_id=key,
        aws_secret_access_key="x",
        aws_session_token="x",
    )


def _template(aws: Clients, launch_network: LaunchNetwork, cluster: str, **more: Any) -> str:
    """Of this cluster. `more`: other data."""
    left_out = ("InstanceMarketOptions", "Placement", "CapacityReservationSpecification")
    data = {name: value for name, value in node_template(launch_network).items() if name not in left_out}
    data["TagSpecifications"] = [
        {"ResourceType": "instance", "Tags": [{"Key": "corral:cluster", "Value": cluster}]},
    ]
    made = aws("ec2").create_launch_template(
        LaunchTemplateName="-".join((cluster, *more)),
        LaunchTemplateData={**data, **more},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": [{"Key": "corral:cluster", "Value": cluster}]}],
    )
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def launch(ec2: Any, template: str, **more: Any) -> str:
    made = ec2.run_instances(LaunchTemplate={"LaunchTemplateId": template}, MinCount=1, MaxCount=1, **more)
    return str(made["Instances"][0]["InstanceId"])


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    """The error code of the refusal, and the action and resource in its message."""
    with pytest.raises(ClientError) as caught:
        call()
    error = caught.value.response["Error"]
    message = error["Message"].partition("is not authorized to perform: ")[2]
    return error["Code"], message.partition(" because ")[0].partition(" with ")[0]


@pytest.fixture
def wide(account: Account) -> Any:
    """S3 of a machine's role whose own policy allows everything, beside the policy of a base's bucket."""
    iam, everything = account.aws("iam"), {"Effect": "Allow", "Action": "*", "Resource": "*"}
    create_role(iam, "wide", trust_service("ec2.amazonaws.com"))
    iam.put_role_policy(RoleName="identity-wide", PolicyName="own", PolicyDocument=json.dumps(document([everything])))
    policy = artefacts_policy(f"arn:aws:s3:::{BUCKET}", REGION, ACCOUNT)
    account.aws("s3").put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(policy))
    return account.as_role("wide")("s3")


def test_a_machine_does_not_write_what_machines_run_whatever_its_role_allows(wide: Any) -> None:
    assert refusal(lambda: wide.put_object(Bucket=BUCKET, Key="clusters/dev/manifest.json", Body=b"x")) == (
        "AccessDenied",
        f"s3:PutObject on resource: arn:aws:s3:::{BUCKET}/clusters/dev/manifest.json",
    )


def test_a_machine_does_not_delete_what_machines_run_whatever_its_role_allows(wide: Any) -> None:
    assert refusal(lambda: wide.delete_object(Bucket=BUCKET, Key="clusters/dev/manifest.json"))[0] == "AccessDenied"


def test_a_machine_writes_elsewhere_in_the_bucket(wide: Any) -> None:
    wide.put_object(Bucket=BUCKET, Key="checkpoints/dev/1", Body=b"x")
    assert wide.get_object(Bucket=BUCKET, Key="checkpoints/dev/1")["Body"].read() == b"x"


def test_who_deploys_writes_what_machines_run(wide: Any, account: Account) -> None:
    account.aws("s3").put_object(Bucket=BUCKET, Key="clusters/dev/manifest.json", Body=b"x")
    assert wide.get_object(Bucket=BUCKET, Key="clusters/dev/manifest.json")["Body"].read() == b"x"


def test_a_head_launches_from_its_clusters_templates(account: Account) -> None:
    assert launch(account.as_role("head")("ec2"), account.own).startswith("i-")


def test_a_head_does_not_launch_from_another_clusters_templates(account: Account) -> None:
    code, message = refusal(lambda: launch(account.as_role("head")("ec2"), account.foreign))
    arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:launch-template/{account.foreign}"
    assert (code, message) == ("UnauthorizedOperation", f"ec2:RunInstances on resource: {arn}")


def test_a_head_launches_only_the_image_of_its_template(account: Account) -> None:
    code, message = refusal(lambda: launch(account.as_role("head")("ec2"), account.own, ImageId="ami-12345678"))
    assert (code, message) == (
        "UnauthorizedOperation",
        f"ec2:RunInstances on resource: arn:aws:ec2:{REGION}::image/ami-12345678",
    )


def test_a_refused_launch_creates_nothing(account: Account) -> None:
    refusal(lambda: launch(account.as_role("head")("ec2"), account.foreign))
    assert account.aws("ec2").describe_instances()["Reservations"] == []


@pytest.mark.parametrize("in_template", [False, True], ids=["in the call", "in the template"])
def test_a_head_launches_with_no_interface_that_exists(account: Account, in_template: bool) -> None:
    """It would have the address of a neighbour's head that is being replaced, or of somebody else's."""
    made = account.aws("ec2").create_network_interface(SubnetId=account.launch_network.subnet)["NetworkInterface"]
    attached = {"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkInterfaceId": made["NetworkInterfaceId"]}]}
    data, request = (attached, {}) if in_template else ({}, attached)
    template = _template(account.aws, account.launch_network, "dev", **data) if data else account.own
    code, message = refusal(lambda: launch(account.as_role("head")("ec2"), template, **request))
    arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:network-interface/{made['NetworkInterfaceId']}"
    assert (code, message) == ("UnauthorizedOperation", f"ec2:RunInstances on resource: {arn}")


def test_a_head_terminates_only_its_clusters_instances(account: Account) -> None:
    own, foreign = launch(account.aws("ec2"), account.own), launch(account.aws("ec2"), account.foreign)
    head = account.as_role("head")("ec2")
    head.terminate_instances(InstanceIds=[own])
    code, message = refusal(lambda: head.terminate_instances(InstanceIds=[foreign]))
    arn = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{foreign}"
    assert (code, message) == ("UnauthorizedOperation", f"ec2:TerminateInstances on resource: {arn}")


def test_a_head_changes_only_records_of_its_own_zone(account: Account) -> None:
    other = account.aws("route53").create_hosted_zone(Name="other.internal", CallerReference="2")["HostedZone"]["Id"]
    route53 = account.as_role("head")("route53")
    route53.list_resource_record_sets(HostedZoneId=account.arns["zone"])
    code, message = refusal(lambda: route53.list_resource_record_sets(HostedZoneId=other))
    assert (code, message) == (
        "AccessDenied",
        f"route53:ListResourceRecordSets on resource: arn:aws:route53:::{other.lstrip('/')}",
    )


def test_a_head_does_nothing_in_another_region(account: Account) -> None:
    code, _ = refusal(lambda: account.as_role("head")("ec2", "eu-west-1").describe_instances())
    assert code == "UnauthorizedOperation"


@pytest.mark.parametrize(
    ("service", "call", "code", "message"),
    [
        ("ec2", lambda ec2: ec2.describe_instances(), "UnauthorizedOperation", "ec2:DescribeInstances on resource: *"),
        (
            "s3",
            lambda s3: s3.get_object(Bucket=BUCKET, Key="clusters/dev/cluster.json"),
            "AccessDenied",
            f"s3:GetObject on resource: arn:aws:s3:::{BUCKET}/clusters/dev/cluster.json",
        ),
        (
            "s3",
            lambda s3: s3.list_objects_v2(Bucket=BUCKET, Prefix="clusters/dev/"),
            "AccessDenied",
            f"s3:ListBucket on resource: arn:aws:s3:::{BUCKET}",
        ),
        (
            "sts",
            lambda sts: sts.assume_role(RoleArn=identity_arn("head"), RoleSessionName="up"),
            "AccessDenied",
            f"sts:AssumeRole on resource: {identity_arn('head')}",
        ),
    ],
    ids=["instances", "the cluster's files", "their names", "the head's role"],
)
def test_a_job_is_denied(account: Account, service: str, call: Any, code: str, message: str) -> None:
    assert refusal(lambda: call(account.as_role("job")(service))) == (code, message)


def test_a_refusal_names_the_session_that_called(account: Account) -> None:
    with pytest.raises(ClientError) as caught:
        account.as_role("job")("ec2").describe_instances()
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/identity-job/test"
    named = f"User: {session} is not authorized to perform: ec2:DescribeInstances"
    assert named in caught.value.response["Error"]["Message"]


def test_a_job_does_not_read_the_munge_key(account: Account) -> None:
    secrets = account.as_role("job")("secretsmanager")
    code, message = refusal(lambda: secrets.get_secret_value(SecretId="corral/dev/munge"))
    arn = account.arns["munge_secret"]
    assert (code, message) == ("AccessDeniedException", f"secretsmanager:GetSecretValue on resource: {arn}")


def test_a_job_writes_and_lists_its_clusters_checkpoints(account: Account) -> None:
    s3 = account.as_role("job")("s3")
    s3.put_object(Bucket=BUCKET, Key="checkpoints/dev/step-1", Body=b"1")
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="checkpoints/dev/")["Contents"]
    assert [one["Key"] for one in listed] == ["checkpoints/dev/step-1"]


def test_a_job_pulls_from_a_declared_repository(account: Account) -> None:
    account.aws("ecr").create_repository(repositoryName="team/train")
    ecr = account.as_role("job")("ecr")
    token = ecr.get_authorization_token()["authorizationData"][0]["authorizationToken"]
    found = ecr.batch_get_image(repositoryName="team/train", imageIds=[{"imageTag": "v1"}])
    assert (bool(token), found["failures"][0]["failureCode"]) == (True, "ImageNotFound")


def test_a_job_of_a_cluster_without_repositories_does_not_log_in_to_ecr(account: Account) -> None:
    named = JobArns(region=REGION, bucket=account.arns["bucket"], key=account.arns["key"], cluster="dev")
    policy = json.dumps(job_policy(named))
    account.aws("iam").put_role_policy(RoleName="identity-job", PolicyName="own", PolicyDocument=policy)
    ecr = account.as_role("job")("ecr")
    assert refusal(ecr.get_authorization_token) == (
        "AccessDeniedException",
        "ecr:GetAuthorizationToken on resource: *",
    )


def test_a_job_does_not_pull_from_another_repository(account: Account) -> None:
    ecr = account.as_role("job")("ecr")
    code, message = refusal(lambda: ecr.batch_get_image(repositoryName="other", imageIds=[{"imageTag": "v1"}]))
    assert (code, message.endswith("on resource: " + f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/other")) == (
        "AccessDeniedException",
        True,
    )


def test_a_head_assumes_the_job_role(account: Account) -> None:
    held = account.as_role("head")("sts").assume_role(RoleArn=identity_arn("job"), RoleSessionName="ada")
    assert held["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/identity-job/ada"


def test_a_role_that_does_not_trust_the_caller_is_not_assumed(account: Account) -> None:
    account.aws("iam").put_role_policy(
        RoleName="identity-lonely",
        PolicyName="all",
        PolicyDocument=json.dumps(document([{"Effect": "Allow", "Action": "*", "Resource": "*"}])),
    )
    sts = account.as_role("lonely")("sts")
    code, message = refusal(lambda: sts.assume_role(RoleArn=identity_arn("job"), RoleSessionName="xx"))
    assert (code, message) == ("AccessDenied", f"sts:AssumeRole on resource: {identity_arn('job')}")


def test_get_caller_identity_is_always_allowed(account: Account) -> None:
    arn = account.as_role("lonely")("sts").get_caller_identity()["Arn"]
    assert arn == f"arn:aws:sts::{ACCOUNT}:assumed-role/identity-lonely/test"


def test_an_instance_calls_in_the_role_of_its_profile(box: BoxStatus, account: Account) -> None:
    account.aws("iam").create_instance_profile(InstanceProfileName="head")
    account.aws("iam").add_role_to_instance_profile(InstanceProfileName="head", RoleName="identity-head")
    instance = launch(account.aws("ec2"), account.own, IamInstanceProfile={"Name": "head"})
    arn = client(
        box, "sts", access_key(read_secret(StateDirectory(box.dir)), instance, "identity-head")
    ).get_caller_identity()["Arn"]
    assert arn == f"arn:aws:sts::{ACCOUNT}:assumed-role/identity-head/{instance}"


def test_a_launch_with_a_role_needs_pass_role(account: Account) -> None:
    account.aws("iam").create_instance_profile(InstanceProfileName="lonely")
    account.aws("iam").add_role_to_instance_profile(InstanceProfileName="lonely", RoleName="identity-lonely")
    profile = {"Name": "lonely"}
    code, message = refusal(lambda: launch(account.as_role("head")("ec2"), account.own, IamInstanceProfile=profile))
    assert (code, message) == ("UnauthorizedOperation", f"iam:PassRole on resource: {identity_arn('lonely')}")


def test_a_caller_without_a_role_may_do_everything(account: Account) -> None:
    assert len(account.aws("iam").list_roles()["Roles"]) == 3


def test_a_role_that_may_simulate_only_itself_cannot_simulate_others(account: Account) -> None:
    own = [{"Effect": "Allow", "Action": "iam:SimulatePrincipalPolicy", "Resource": identity_arn("lonely")}]
    account.aws("iam").put_role_policy(
        RoleName="identity-lonely",
        PolicyName="own",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": own}),
    )
    iam = account.as_role("lonely")("iam")
    result = iam.simulate_principal_policy(PolicySourceArn=identity_arn("lonely"), ActionNames=["ec2:RunInstances"])
    other = {"PolicySourceArn": identity_arn("head"), "ActionNames": ["ec2:RunInstances"]}
    assert (
        result["EvaluationResults"][0]["EvalDecision"],
        refusal(lambda: iam.simulate_principal_policy(**other)),
    ) == (
        "implicitDeny",
        ("AccessDenied", f"iam:SimulatePrincipalPolicy on resource: {identity_arn('head')}"),
    )
