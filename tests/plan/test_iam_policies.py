"""The roles' policies, statement by statement: what they allow, on what, under which condition."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from corral.box.access.policy_evaluator import RequiredAction, evaluate
from corral.plan.iam.iam_policies import (
    ClusterArns,
    JobArns,
    artefacts_policy,
    boundary_policy,
    compute_policy,
    head_policy,
    job_policy,
    key_policy,
    login_policy,
    secret_arn,
    topic_policy,
)

EC2 = "arn:aws:ec2:us-east-1:123456789012"
TEMPLATES = f"{EC2}:launch-template/*"
ARNS = ClusterArns(
    account="123456789012",
    region="us-east-1",
    cluster="dev",
    prefix="clusters/dev",
    bucket="arn:aws:s3:::corral-dev",
    key="arn:aws:kms:us-east-1:123456789012:key/k",
    compute_role="arn:aws:iam::123456789012:role/compute",
    job_role="arn:aws:iam::123456789012:role/job",
    munge_secret="arn:aws:secretsmanager:us-east-1:123456789012:secret:corral/dev/munge-abc",
    hosted_zone="arn:aws:route53:::hostedzone/Z1",
    log_group="arn:aws:logs:us-east-1:123456789012:log-group:/corral/dev",
    topic="arn:aws:sns:us-east-1:123456789012:topic",
)


JOBS = JobArns(
    region="us-east-1",
    bucket="arn:aws:s3:::corral-dev",
    key="arn:key",
    cluster="dev",
    writable=("arn:aws:s3:::results/run-7",),
    readable=("arn:aws:s3:::corpus",),
    secrets=(secret_arn("us-east-1", "123456789012", "team/wandb"),),
    repositories=("arn:aws:ecr:us-east-1:123456789012:repository/team/train",),
)


def statement(policy: Any, sid: str) -> Any:
    """The one statement of this name."""
    return next(s for s in policy["Statement"] if s["Sid"] == sid)


def test_the_head_launches_from_templates_of_its_cluster_only() -> None:
    found = [
        (s["Sid"], s["Resource"], s["Condition"])
        for s in head_policy(ARNS)["Statement"]
        if "ec2:RunInstances" in s["Action"] and any("launch-template" in resource for resource in s["Resource"])
    ]
    tagged = {"StringEquals": {"aws:ResourceTag/corral:cluster": "dev"}}
    assert found == [("OwnTemplates", [TEMPLATES], tagged)]


def test_the_head_writes_the_histories_of_its_cluster_and_reads_none() -> None:
    found = [(s["Action"], s["Resource"]) for s in head_policy(ARNS)["Statement"] if "lives" in str(s)]
    assert found == [(["s3:PutObject"], ["arn:aws:s3:::corral-dev/lives/dev/*"])]


@pytest.mark.parametrize("policy", [compute_policy(ARNS), job_policy(JOBS)], ids=["compute", "job"])
def test_only_the_head_accesses_histories(policy: Any) -> None:
    assert "lives" not in str(policy)


def test_the_head_launches_new_machines_from_templates_only() -> None:
    assert statement(head_policy(ARNS), "LaunchNew") == {
        "Sid": "LaunchNew",
        "Effect": "Allow",
        "Action": ["ec2:RunInstances"],
        "Resource": [
            f"{EC2}:{kind}/*" for kind in ("instance", "network-interface", "volume", "spot-instances-request")
        ],
        "Condition": {"ArnLike": {"ec2:LaunchTemplate": TEMPLATES}},
    }


def test_the_head_uses_only_subnets_groups_and_images_that_a_template_names() -> None:
    assert statement(head_policy(ARNS), "LaunchFromTemplates")["Condition"] == {
        "ArnLike": {"ec2:LaunchTemplate": TEMPLATES},
        "Bool": {"ec2:IsLaunchTemplateResource": "true"},
    }


def test_the_head_ends_only_instances_of_its_cluster() -> None:
    assert statement(head_policy(ARNS), "EndOwn") == {
        "Sid": "EndOwn",
        "Effect": "Allow",
        "Action": ["ec2:TerminateInstances"],
        "Resource": [f"{EC2}:instance/*"],
        "Condition": {"StringEquals": {"ec2:ResourceTag/corral:cluster": "dev"}},
    }


def test_the_head_tags_only_while_it_launches_and_never_as_another_cluster_or_a_login_node() -> None:
    assert statement(head_policy(ARNS), "TagWhileLaunching")["Condition"] == {
        "StringEquals": {"ec2:CreateAction": "RunInstances"},
        "StringEqualsIfExists": {"aws:RequestTag/corral:cluster": "dev"},
        "Null": {"aws:RequestTag/corral:login": "true", "aws:RequestTag/corral:admins": "true"},
    }


def test_the_head_passes_only_the_compute_role_and_only_to_ec2() -> None:
    passed = statement(head_policy(ARNS), "PassCompute")
    assert (passed["Resource"], passed["Condition"]) == (
        ["arn:aws:iam::123456789012:role/compute"],
        {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    )


def test_the_head_grants_the_key_to_aws_services_and_through_ec2_only() -> None:
    assert statement(head_policy(ARNS), "GrantKey")["Condition"] == {
        "StringEquals": {"kms:ViaService": ["ec2.us-east-1.amazonaws.com"]},
        "Bool": {"kms:GrantIsForAWSResource": "true"},
    }


def test_only_what_takes_no_resource_reaches_every_resource() -> None:
    policies = (head_policy(ARNS), compute_policy(ARNS))
    wide = [[s["Sid"] for s in policy["Statement"] if s["Resource"] == ["*"]] for policy in policies]
    assert wide == [["See", "Shell"], ["Shell"]]


@pytest.mark.parametrize("policy", [head_policy, compute_policy])
def test_a_machine_opens_shells_in_session_manager(policy: Callable[[ClusterArns], Any]) -> None:
    assert [statement(policy(ARNS), sid) for sid in ("BeManaged", "Shell")] == [
        {
            "Sid": "BeManaged",
            "Effect": "Allow",
            "Action": ["ssm:UpdateInstanceInformation"],
            "Resource": [f"{EC2}:instance/*"],
        },
        {
            "Sid": "Shell",
            "Effect": "Allow",
            "Action": [
                "ssmmessages:CreateControlChannel",
                "ssmmessages:CreateDataChannel",
                "ssmmessages:OpenControlChannel",
                "ssmmessages:OpenDataChannel",
            ],
            "Resource": ["*"],
        },
    ]


def test_a_compute_machine_reads_its_clusters_files_and_one_secret() -> None:
    policy = compute_policy(ARNS)
    assert (statement(policy, "Files")["Resource"], statement(policy, "Munge")["Resource"]) == (
        ["arn:aws:s3:::corral-dev/clusters/dev/*"],
        ["arn:aws:secretsmanager:us-east-1:123456789012:secret:corral/dev/munge-abc"],
    )


DIRECTORY = secret_arn("us-east-1", "123456789012", "people/reader")


@pytest.mark.parametrize("policy", [head_policy, compute_policy, login_policy], ids=["head", "compute", "login"])
def test_a_machine_reads_the_directorys_password(policy: Callable[[ClusterArns], Any]) -> None:
    assert statement(policy(replace(ARNS, directory_secret=DIRECTORY)), "Directory") == {
        "Sid": "Directory",
        "Effect": "Allow",
        "Action": ["secretsmanager:GetSecretValue"],
        "Resource": ["arn:aws:secretsmanager:us-east-1:123456789012:secret:people/reader-??????"],
    }


@pytest.mark.parametrize("policy", [head_policy, compute_policy, login_policy], ids=["head", "compute", "login"])
def test_without_a_directory_no_machine_reads_another_secret(policy: Callable[[ClusterArns], Any]) -> None:
    assert [one["Sid"] for one in policy(ARNS)["Statement"] if "secretsmanager:GetSecretValue" in one["Action"]] == [
        "Munge"
    ]


def test_machines_write_no_code() -> None:
    policy = artefacts_policy("arn:aws:s3:::corral-dev", "us-east-1", "123456789012")
    assert statement(policy, "MachinesWriteNoCode") == {
        "Sid": "MachinesWriteNoCode",
        "Effect": "Deny",
        "Principal": "*",
        "Action": ["s3:DeleteObject*", "s3:PutObject*"],
        "Resource": ["arn:aws:s3:::corral-dev/clusters/*"],
        "Condition": {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::123456789012:role/corral/*"}},
    }


def test_a_head_reads_the_files_of_its_cluster_and_writes_none() -> None:
    written = [s["Resource"] for s in head_policy(ARNS)["Statement"] if "s3:PutObject" in s["Action"]]
    assert written == [
        ["arn:aws:s3:::corral-dev/accounting/dev.sql.gz"],
        ["arn:aws:s3:::corral-dev/lives/dev/*"],
    ]


def test_a_compute_machine_cannot_call_ec2() -> None:
    actions = [a for s in compute_policy(ARNS)["Statement"] for a in s["Action"] if a.startswith("ec2:")]
    assert actions == []


def test_a_job_reaches_checkpoints_of_its_cluster_and_declared_buckets() -> None:
    assert statement(job_policy(JOBS), "Objects")["Resource"] == [
        "arn:aws:s3:::corral-dev/checkpoints/dev/*",
        "arn:aws:s3:::results/run-7/*",
    ]


def test_a_job_only_reads_a_bucket_that_is_not_declared_for_writing() -> None:
    assert statement(job_policy(JOBS), "Read") == {
        "Sid": "Read",
        "Effect": "Allow",
        "Action": ["s3:GetObject"],
        "Resource": ["arn:aws:s3:::corpus/*"],
    }


def test_a_job_lists_whole_buckets_and_declared_prefixes() -> None:
    listing = [s for s in job_policy(JOBS)["Statement"] if "s3:ListBucket" in s["Action"]]
    assert [(s["Resource"], s.get("Condition")) for s in listing] == [
        (["arn:aws:s3:::corral-dev"], {"StringLike": {"s3:prefix": ["checkpoints/dev/*"]}}),
        (["arn:aws:s3:::corpus"], None),
        (["arn:aws:s3:::results"], {"StringLike": {"s3:prefix": ["run-7/*"]}}),
    ]


def is_allowed(policy: Any, action: str, resource: str, **context: str) -> bool:
    """Whether this policy alone allows the action. `context`: of condition keys in lower case."""
    return evaluate([policy], (), RequiredAction(action=action, resource=resource, context=context)).allowed


@pytest.mark.parametrize(("key", "allowed"), [("checkpoints/dev/1", True), ("clusters/dev/cluster.json", False)])
def test_a_job_never_reaches_what_machines_run_whatever_buckets_are_declared(key: str, allowed: bool) -> None:
    policy = job_policy(replace(JOBS, writable=(JOBS.bucket,)))
    assert is_allowed(policy, "s3:PutObject", f"{JOBS.bucket}/{key}") == allowed


@pytest.mark.parametrize(("stream", "allowed"), [("events", True), ("other", False)])
def test_the_head_writes_its_own_stream_of_the_log_group_and_no_other(stream: str, allowed: bool) -> None:
    resource = f"{ARNS.log_group}:log-stream:{stream}"
    assert is_allowed(head_policy(ARNS), "logs:PutLogEvents", resource) == allowed


def test_a_head_reads_the_secrets_of_alerts_that_the_spec_names_and_no_others() -> None:
    named = secret_arn("us-east-1", "123456789012", "team/slack")
    policy = head_policy(replace(ARNS, alert_secrets=(named,)))
    assert statement(policy, "Alerts")["Resource"] == [named]
    secrets = "arn:aws:secretsmanager:us-east-1:123456789012:secret:"
    read = "secretsmanager:GetSecretValue"
    allowed = [name for name in ("team/slack-AbCdEf", "team/wandb-AbCdEf") if is_allowed(policy, read, secrets + name)]
    assert allowed == ["team/slack-AbCdEf"]


WORKSPACE = "arn:aws:aps:us-east-1:123456789012:workspace/ws-1"


def test_a_head_writes_series_into_the_workspace_that_the_spec_names_and_no_other() -> None:
    found = [s for s in head_policy(replace(ARNS, workspace=WORKSPACE))["Statement"] if "aps:" in str(s["Action"])]
    assert found == [{"Sid": "Write", "Effect": "Allow", "Action": ["aps:RemoteWrite"], "Resource": [WORKSPACE]}]


@pytest.mark.parametrize(
    "policy",
    [
        head_policy(ARNS),
        compute_policy(replace(ARNS, workspace=WORKSPACE)),
        login_policy(replace(ARNS, workspace=WORKSPACE)),
        job_policy(JOBS),
    ],
    ids=["a head that writes nowhere", "compute", "login", "job"],
)
def test_nobody_else_writes_series(policy: Any) -> None:
    assert "aps:" not in str(policy)


@pytest.mark.parametrize(
    ("region", "allowed"), [("us-east-1", True), ("eu-west-1", False)], ids=["here", "in another region"]
)
def test_the_boundary_lets_a_head_write_series_in_its_region_alone(region: str, allowed: bool) -> None:
    here = boundary_policy("us-east-1", "123456789012")
    resource = f"arn:aws:aps:{region}:123456789012:workspace/ws-1"
    required = RequiredAction(action="aps:RemoteWrite", resource=resource, context={"aws:requestedregion": region})
    assert evaluate([here], (), required).allowed is allowed


def test_a_head_whose_alerts_need_no_secret_reads_the_munge_key_alone() -> None:
    reading = [s["Sid"] for s in head_policy(ARNS)["Statement"] if "secretsmanager:GetSecretValue" in s["Action"]]
    assert reading == ["Munge"]


@pytest.mark.parametrize("action", ["logs:CreateLogStream", "logs:PutLogEvents", "sns:Publish"])
def test_a_compute_machine_neither_logs_nor_notifies(action: str) -> None:
    assert action not in {one for s in compute_policy(ARNS)["Statement"] for one in s["Action"]}


def test_only_alarms_of_the_account_publish_by_the_topics_own_policy() -> None:
    found = topic_policy("us-east-1", "123456789012", ARNS.topic)["Statement"]
    assert [(s["Principal"], s["Action"], s["Condition"]["StringEquals"]) for s in found] == [
        ({"Service": "cloudwatch.amazonaws.com"}, ["sns:Publish"], {"aws:SourceAccount": "123456789012"})
    ]


USERS_OF_THE_KEY = [
    (head_policy(ARNS), ["ec2", "s3", "secretsmanager"]),
    (compute_policy(ARNS), ["s3", "secretsmanager"]),
    (login_policy(ARNS), ["s3", "secretsmanager"]),
    (job_policy(replace(JOBS, key=ARNS.key)), ["s3", "secretsmanager"]),
]


@pytest.mark.parametrize(("policy", "services"), USERS_OF_THE_KEY, ids=["head", "compute", "login", "job"])
def test_a_role_uses_the_key_through_the_services_that_hold_its_data_alone(policy: Any, services: list[str]) -> None:
    via = {one: {"kms:viaservice": f"{one}.us-east-1.amazonaws.com"} for one in (*services, "athena")}
    found = {one: is_allowed(policy, "kms:Decrypt", ARNS.key, **context) for one, context in via.items()}
    assert {**found, "itself": is_allowed(policy, "kms:Decrypt", ARNS.key)} == {
        **dict.fromkeys(services, True),
        "athena": False,
        "itself": False,
    }


def test_a_job_reads_the_secrets_that_the_spec_names_and_no_others() -> None:
    assert statement(job_policy(JOBS), "Secrets")["Resource"] == [
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:team/wandb-??????"
    ]


def test_a_job_pulls_images_of_the_declared_repositories_and_pushes_none() -> None:
    assert [statement(job_policy(JOBS), sid) for sid in ("Login", "Pull")] == [
        {"Sid": "Login", "Effect": "Allow", "Action": ["ecr:GetAuthorizationToken"], "Resource": ["*"]},
        {
            "Sid": "Pull",
            "Effect": "Allow",
            "Action": ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            "Resource": ["arn:aws:ecr:us-east-1:123456789012:repository/team/train"],
        },
    ]


def test_a_job_without_declared_buckets_and_secrets_has_its_checkpoints_alone() -> None:
    policy = job_policy(JobArns(region="us-east-1", bucket="arn:aws:s3:::corral-dev", key="arn:key", cluster="dev"))
    assert [s["Sid"] for s in policy["Statement"]] == ["Objects", "Checkpoints", "Key", "NoCode"]


def test_the_head_launches_into_reservations_that_its_templates_name_and_no_others() -> None:
    allowing = [s for s in head_policy(ARNS)["Statement"] if any("capacity-reservation" in r for r in s["Resource"])]
    assert [(s["Sid"], s["Condition"]["Bool"]) for s in allowing] == [
        ("LaunchFromTemplates", {"ec2:IsLaunchTemplateResource": "true"})
    ]


@pytest.mark.parametrize(
    ("interface", "allowed"), [("*", True), ("eni-1", False)], ids=["a new one", "one that exists"]
)
@pytest.mark.parametrize("policy", [head_policy(ARNS), boundary_policy("us-east-1", "123456789012")])
def test_a_head_launches_with_new_interfaces_alone(policy: Any, interface: str, allowed: bool) -> None:
    here = {"aws:requestedregion": "us-east-1", "ec2:launchtemplate": f"{EC2}:launch-template/lt-1"}
    found = is_allowed(policy, "ec2:RunInstances", f"{EC2}:network-interface/{interface}", **here)
    assert found == allowed


WEST = boundary_policy("eu-west-1", "123456789012")
ROLE = "arn:aws:iam::123456789012:role"


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
@pytest.mark.parametrize(
    ("action", "resource", "context"),
    [
        ("secretsmanager:GetSecretValue", "arn:aws:secretsmanager:{}:123456789012:secret:theirs-AbCdEf", {}),
        ("ec2:RunInstances", "arn:aws:ec2:{}:123456789012:instance/*", {}),
        (
            "ec2:TerminateInstances",
            "arn:aws:ec2:{}:123456789012:instance/i-1",
            {"ec2:resourcetag/corral:cluster": "prod"},
        ),
        ("ecr:BatchGetImage", "arn:aws:ecr:{}:123456789012:repository/theirs", {}),
        ("s3:GetObject", "arn:aws:s3:::theirs/1", {}),
    ],
)
def test_a_role_of_another_region_than_iams_reaches_no_other_region(
    action: str, resource: str, context: dict[str, str], region: str
) -> None:
    """us-east-1 is where IAM and Route 53 check their requests, and where others live as well."""
    where = {one: {"aws:requestedregion": one, **context} for one in (region, "eu-west-1")}
    found = {one: is_allowed(WEST, action, resource.format(one), **keys) for one, keys in where.items()}
    assert found == {region: False, "eu-west-1": True}


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1"])
@pytest.mark.parametrize(
    ("action", "resource", "context"),
    [
        ("route53:ListResourceRecordSets", "arn:aws:route53:::hostedzone/Z1", {}),
        ("iam:PassRole", f"{ROLE}/corral/identity-compute-1", {"iam:passedtoservice": "ec2.amazonaws.com"}),
        ("sts:AssumeRole", f"{ROLE}/corral/identity-job-1", {}),
    ],
)
def test_a_role_uses_services_without_a_region_wherever_they_check(
    action: str, resource: str, context: dict[str, str], region: str
) -> None:
    assert is_allowed(WEST, action, resource, **{"aws:requestedregion": region, **context})


BOUNDARY = boundary_policy("us-east-1", "123456789012")
HERE = {"aws:requestedregion": "us-east-1"}


@pytest.mark.parametrize(
    ("action", "resource", "context", "allowed"),
    [
        ("iam:PassRole", f"{ROLE}/corral/identity-compute-1", {"iam:passedtoservice": "ec2.amazonaws.com"}, True),
        ("iam:PassRole", f"{ROLE}/corral/identity-compute-1", {"iam:passedtoservice": "lambda.amazonaws.com"}, False),
        ("iam:PassRole", f"{ROLE}/admin", {"iam:passedtoservice": "ec2.amazonaws.com"}, False),
        ("sts:AssumeRole", f"{ROLE}/corral/identity-job-1", {}, True),
        ("sts:AssumeRole", f"{ROLE}/admin", {}, False),
        ("ec2:RunInstances", f"{EC2}:instance/*", {}, True),
        ("ec2:AssociateIamInstanceProfile", f"{EC2}:instance/i-1", {}, False),
        ("ec2:TerminateInstances", f"{EC2}:instance/i-1", {"ec2:resourcetag/corral:cluster": "dev"}, True),
        ("ec2:TerminateInstances", f"{EC2}:instance/i-1", {}, False),
        ("s3:GetObject", "arn:aws:s3:::corpus/1", {}, True),
        ("s3:PutBucketPolicy", "arn:aws:s3:::corpus", {}, False),
        ("s3:GetObject", "arn:aws:s3:::corral-state-123456789012-us-east-1/.pulumi/1", {}, False),
        ("ssm:SendCommand", f"{EC2}:instance/i-1", {}, False),
        ("kms:Decrypt", ARNS.key, {"kms:viaservice": "s3.us-east-1.amazonaws.com"}, True),
        ("kms:Decrypt", ARNS.key, {}, False),
        ("kms:PutKeyPolicy", ARNS.key, {}, False),
    ],
)
def test_no_role_does_more_than_heads_nodes_and_jobs_need(
    action: str, resource: str, context: dict[str, str], allowed: bool
) -> None:
    assert is_allowed(BOUNDARY, action, resource, **HERE, **context) == allowed


def test_whoever_the_key_lets_in_by_a_star_is_held_to_one_role_of_the_account() -> None:
    stars = [s for s in key_policy("123456789012", "us-east-1")["Statement"] if s["Principal"] == {"AWS": "*"}]
    role = "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
    assert [s["Condition"]["ArnEquals"] for s in stars] == [{"aws:PrincipalArn": role}] * 2


def test_login_nodes_behind_a_load_balancer_write_one_secret_and_no_other() -> None:
    policy = login_policy(replace(ARNS, people_role="arn:people", host_key_secret="arn:host-key"))
    writing = [s["Resource"] for s in policy["Statement"] if "secretsmanager:PutSecretValue" in s["Action"]]
    assert writing == [["arn:host-key"]]


def test_a_login_node_reads_its_clusters_files_and_one_secret_and_writes_its_own_log() -> None:
    policy = login_policy(replace(ARNS, people_role="arn:aws:iam::123456789012:role/people"))
    allowed = {s["Sid"]: (s["Action"], s["Resource"]) for s in policy["Statement"]}
    assert allowed == {
        "Files": (["s3:GetObject"], ["arn:aws:s3:::corral-dev/clusters/dev/*"]),
        "Munge": (["secretsmanager:GetSecretValue"], [ARNS.munge_secret]),
        "Key": (["kms:Decrypt"], [ARNS.key]),
        "People": (["sts:AssumeRole"], ["arn:aws:iam::123456789012:role/people"]),
        "Log": (["logs:CreateLogStream", "logs:PutLogEvents"], [f"{ARNS.log_group}:log-stream:login-*"]),
        "BeManaged": (["ssm:UpdateInstanceInformation"], [f"{EC2}:instance/*"]),
        "Shell": (statement(compute_policy(ARNS), "Shell")["Action"], ["*"]),
    }
