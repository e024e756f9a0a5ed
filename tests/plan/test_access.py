"""The roles' policies, statement by statement: what they allow, on what, under which condition."""

from typing import Any

from corral.plan.access import ClusterArns, boundary_policy, compute_policy, head_policy, job_policy, key_policy

EC2 = "arn:aws:ec2:us-east-1:123456789012"
TEMPLATE = f"{EC2}:launch-template/lt-1"
ARNS = ClusterArns(
    account="123456789012",
    region="us-east-1",
    cluster="dev",
    prefix="clusters/dev",
    bucket="arn:aws:s3:::corral-dev",
    key="arn:aws:kms:us-east-1:123456789012:key/k",
    templates=(TEMPLATE,),
    compute_role="arn:aws:iam::123456789012:role/compute",
    job_role="arn:aws:iam::123456789012:role/job",
    munge_secret="arn:aws:secretsmanager:us-east-1:123456789012:secret:corral/dev/munge-abc",
    hosted_zone="arn:aws:route53:::hostedzone/Z1",
    log_group="arn:aws:logs:us-east-1:123456789012:log-group:/corral/dev",
    topic="arn:aws:sns:us-east-1:123456789012:topic",
    lustre=("arn:aws:fsx:us-east-1:123456789012:file-system/fs-1",),
)


def statement(policy: Any, sid: str) -> Any:
    """The one statement of this name."""
    return next(s for s in policy["Statement"] if s["Sid"] == sid)


def test_the_head_launches_new_machines_from_its_own_templates_only() -> None:
    assert statement(head_policy(ARNS), "LaunchNew") == {
        "Sid": "LaunchNew",
        "Effect": "Allow",
        "Action": ["ec2:RunInstances"],
        "Resource": [
            f"{EC2}:{kind}/*" for kind in ("instance", "network-interface", "volume", "spot-instances-request")
        ],
        "Condition": {"ArnEquals": {"ec2:LaunchTemplate": [TEMPLATE]}},
    }


def test_the_head_uses_only_subnets_groups_and_images_that_a_template_names() -> None:
    assert statement(head_policy(ARNS), "LaunchFromTemplates")["Condition"] == {
        "ArnEquals": {"ec2:LaunchTemplate": [TEMPLATE]},
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


def test_the_head_tags_only_while_it_launches() -> None:
    assert statement(head_policy(ARNS), "TagWhileLaunching")["Condition"] == {
        "StringEquals": {"ec2:CreateAction": "RunInstances"}
    }


def test_the_head_passes_only_the_compute_role_and_only_to_ec2() -> None:
    passed = statement(head_policy(ARNS), "PassCompute")
    assert (passed["Resource"], passed["Condition"]) == (
        ["arn:aws:iam::123456789012:role/compute"],
        {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    )


def test_the_head_grants_the_key_to_aws_services_only() -> None:
    assert statement(head_policy(ARNS), "GrantKey")["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}


def test_only_two_statements_of_the_head_reach_every_resource() -> None:
    wide = [s["Sid"] for s in head_policy(ARNS)["Statement"] if s["Resource"] == ["*"]]
    assert wide == ["See", "Measure"]


def test_a_compute_machine_reads_its_clusters_files_and_one_secret() -> None:
    policy = compute_policy(ARNS)
    assert (statement(policy, "Files")["Resource"], statement(policy, "Munge")["Resource"]) == (
        ["arn:aws:s3:::corral-dev/clusters/dev/*"],
        ["arn:aws:secretsmanager:us-east-1:123456789012:secret:corral/dev/munge-abc"],
    )


def test_a_compute_machine_cannot_call_ec2() -> None:
    actions = [a for s in compute_policy(ARNS)["Statement"] for a in s["Action"] if a.startswith("ec2:")]
    assert actions == []


def test_a_job_reaches_checkpoints_of_its_cluster_and_declared_buckets() -> None:
    policy = job_policy("arn:aws:s3:::corral-dev", "arn:key", "dev", ["arn:aws:s3:::corpus"])
    assert statement(policy, "Objects")["Resource"] == [
        "arn:aws:s3:::corral-dev/checkpoints/dev/*",
        "arn:aws:s3:::corpus/*",
    ]


def test_no_role_can_change_identities_whatever_its_policy_says() -> None:
    allowed = {a for s in boundary_policy("us-east-1")["Statement"] if s["Effect"] == "Allow" for a in s["Action"]}
    assert {a for a in allowed if a.startswith("iam:")} == {"iam:PassRole"}


def test_whoever_the_key_lets_in_by_a_star_is_held_to_one_role_of_the_account() -> None:
    stars = [s for s in key_policy("123456789012", "us-east-1")["Statement"] if s["Principal"] == {"AWS": "*"}]
    role = "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
    assert [s["Condition"]["ArnEquals"] for s in stars] == [{"aws:PrincipalArn": role}] * 2
