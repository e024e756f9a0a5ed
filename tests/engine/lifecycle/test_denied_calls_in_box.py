"""`corral up` in accounts whose limits come from elsewhere: an organization, a boundary, a region, a missing role."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import boxes
from cli_session import CliSession, copy_project
from corral.box import client, control
from corral.box.client import BoxStatus
from forked_corral import run_corral

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
POLICY = "arn:aws:organizations::210987654321:policy/o-box0example/service_control_policy/p-a9d4034d"


def document(**statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Resource": "*", **statement}]})


@pytest.fixture
def no_vpcs(cli: CliSession) -> Iterator[CliSession]:
    """An account in whose organization nobody creates a VPC."""
    policy = document(Effect="Deny", Action="ec2:CreateVpc")
    control.inject_fault(cli.box, "service-control-policy", name="guard", policy=policy)
    yield cli
    control.clear_faults(cli.box, "service-control-policy")


def up_as_role(cli: CliSession, *, boundary: str) -> subprocess.CompletedProcess[str]:
    """`corral up dev --no-check` of a role with all permissions, below this boundary."""
    box = BoxStatus(state="running", dir=cli.box, url=client.status(cli.box).url)
    iam = boxes.client(box, "iam")
    trust = document(Effect="Allow", Principal={"AWS": "*"}, Action="sts:AssumeRole").replace('"Resource": "*", ', "")
    arn = iam.create_policy(PolicyName="ceiling", PolicyDocument=boundary)["Policy"]["Arn"]
    role = iam.create_role(RoleName="ci", AssumeRolePolicyDocument=trust, PermissionsBoundary=arn)["Role"]["Arn"]
    iam.put_role_policy(RoleName="ci", PolicyName="all", PolicyDocument=document(Effect="Allow", Action="*"))
    held = boxes.client(box, "sts").assume_role(RoleArn=role, RoleSessionName="ann")["Credentials"]
    keys = {
        "AWS_ACCESS_KEY_ID": held["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": held["SecretAccessKey"],
        "AWS_SESSION_TOKEN": held["SessionToken"],
    }
    environment = {**cli.environ, **client.environment(cli.box), **keys}
    for name in ("CORRAL_BOX_DIR", "CORRAL_STACKS"):
        del environment[name]  # which mean the box's owner, and its copy of the project
    return run_corral("up", "dev", "--yes", "--no-check", "--project", str(cli.project), env=environment)


def test_up_refuses_to_start_what_an_organization_denies(no_vpcs: CliSession) -> None:
    done = no_vpcs.run("up", "dev", "--yes")
    assert (done.returncode, done.stderr.splitlines()[1]) == (
        3,
        "  permissions: deployer: a service control policy of the AWS organization does not allow ec2:CreateVpc - ask"
        " the administrators of the AWS organization to allow it; nothing in this account can",
    )


def test_the_error_of_up_names_the_organizations_policy(no_vpcs: CliSession) -> None:
    done = no_vpcs.run("up", "dev", "--yes", "--no-check")
    first, *middle, policy, advice, _ = done.stderr.splitlines()
    assert (done.returncode, first, policy, advice, len(middle)) == (
        3,
        "corral: base dev: a service control policy of the AWS organization denies ec2:CreateVpc",
        f"  policy: {POLICY}",
        "  ask the administrators of the AWS organization to allow it; nothing in this account can",
        1,
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("check", "dev"), "    fail  region: ap-east-1 is not enabled in account 123456789012"),
        (
            ("up", "dev", "--yes"),
            "corral: AWS does not know these credentials, or the account has not enabled this region"
            " - `corral check ENV --only identity` shows which (DescribeInstances: AuthFailure)",
        ),
    ],
    ids=["check", "up"],
)
def test_a_region_that_is_not_enabled_is_named(
    cli: CliSession, tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    there = CliSession(project=copy_project(tmp_path / "project", small=True), box=cli.box)
    for file in ("stacks/base/Pulumi.dev.yaml", "stacks/cluster/Pulumi.dev.yaml"):
        there.replace(file, "us-east-1", "ap-east-1")
        there.replace(file, "use1-az1, use1-az2", "ape1-az1, ape1-az2")
    control.inject_fault(cli.box, "disabled-region", region="ap-east-1")
    done = there.run(*words)
    control.clear_faults(cli.box, "disabled-region")
    assert (done.returncode, line in (*done.stdout.splitlines(), *done.stderr.splitlines())) == (3, True)


def test_the_error_of_up_names_the_boundary(cli: CliSession) -> None:
    done = up_as_role(cli, boundary=document(Effect="Allow", NotAction="ec2:CreateVpc"))
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[0], lines[-2]) == (
        3,
        "corral: base dev: the permissions boundary of arn:aws:sts::123456789012:assumed-role/ci/ann does not allow"
        " ec2:CreateVpc",
        "  ask whoever set the boundary to extend it; further policies of the caller do not help",
    )


def test_up_refuses_to_start_without_the_role_of_spot(cli: CliSession) -> None:
    iam = boxes.client(BoxStatus(state="running", dir=cli.box, url=client.status(cli.box).url), "iam")
    iam.create_service_linked_role(AWSServiceName="fsx.amazonaws.com")
    iam.delete_service_linked_role(RoleName="AWSServiceRoleForEC2Spot")
    done = cli.run("up", "dev", "--yes")
    iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    assert (done.returncode, done.stderr.splitlines()[1]) == (
        3,
        "  service-roles: spot.amazonaws.com: has no role in this account, and the head may not create it: spot"
        " launches fail - `corral bootstrap`, run by an administrator, creates it",
    )
