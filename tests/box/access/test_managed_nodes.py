"""Commands and sessions of Systems Manager need permission for their document and for each machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from test_access import client, role_arn

from box.vpc_fixtures import Clients, LaunchNetwork
from corral.box.account import ACCOUNT
from corral.box.client import BoxStatus

DOCUMENT = f"arn:aws:ssm:us-east-1:{ACCOUNT}:document/mine"
MACHINES = f"arn:aws:ec2:us-east-1:{ACCOUNT}:instance/*"
TAGGED = {"StringEquals": {"ssm:resourceTag/team": "a"}}
CHECKED = {"BoolIfExists": {"ssm:SessionDocumentAccessCheck": "true"}}


@pytest.fixture
def machine(aws: Clients, launch_network: LaunchNetwork) -> str:
    """The id of an instance with the tag team=a."""
    specification = [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "a"}]}]
    image = aws("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    made = aws("ec2").run_instances(
        ImageId=image, InstanceType="m7i.large", SubnetId=launch_network.subnet, MinCount=1, MaxCount=1,
        TagSpecifications=specification,
    )  # fmt: skip
    return str(made["Instances"][0]["InstanceId"])


@pytest.fixture
def allowed(box: BoxStatus, aws: Clients) -> Callable[..., Any]:
    """Makes a client of a role with these statements: an action, resources and a condition."""

    def create(*statements: tuple[str, list[str], Mapping[str, Any]]) -> Any:
        iam = aws("iam")
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
        text = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        iam.create_role(RoleName="person", AssumeRolePolicyDocument=text)
        listed = [
            {"Effect": "Allow", "Action": action, "Resource": resources, "Condition": condition}
            for action, resources, condition in statements
        ]
        policy = json.dumps({"Version": "2012-10-17", "Statement": listed})
        iam.put_role_policy(RoleName="person", PolicyName="own", PolicyDocument=policy)
        held = aws("sts").assume_role(RoleArn=role_arn("person"), RoleSessionName="ann")["Credentials"]
        return client(box, "ssm", held["AccessKeyId"])

    return create


def refusal(call: Callable[..., Any], **arguments: Any) -> str:
    """The resource for which the call is denied; or the error code, if permissions suffice."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    error = refused.value.response["Error"]
    _, denied, rest = error["Message"].partition(" on resource: ")
    return rest.partition(" ")[0] if denied else str(error["Code"])


@pytest.mark.parametrize(
    ("resources", "condition", "denied"),
    [
        ([DOCUMENT], {}, "instance"),
        ([MACHINES], {}, DOCUMENT),
        ([DOCUMENT, MACHINES], {}, "InvalidDocument"),
        ([DOCUMENT, MACHINES], TAGGED, DOCUMENT),
    ],
)
def test_a_command_needs_its_document_and_its_machine(
    allowed: Callable[..., Any], machine: str, resources: list[str], condition: Mapping[str, Any], denied: str
) -> None:
    ssm = allowed(("ssm:SendCommand", resources, condition))
    found = refusal(ssm.send_command, InstanceIds=[machine], DocumentName="mine")
    assert found == (f"{MACHINES[:-1]}{machine}" if denied == "instance" else denied)


def test_a_machine_is_authorized_by_its_tags(allowed: Callable[..., Any], machine: str) -> None:
    other = {"StringEquals": {"ssm:resourceTag/team": "b"}}
    ssm = allowed(("ssm:SendCommand", [DOCUMENT], {}), ("ssm:SendCommand", [MACHINES], other))
    assert refusal(ssm.send_command, InstanceIds=[machine], DocumentName="mine") == f"{MACHINES[:-1]}{machine}"


def test_a_document_of_aws_has_no_account(allowed: Callable[..., Any], machine: str) -> None:
    ssm = allowed(("ssm:SendCommand", [MACHINES], {}))
    found = refusal(ssm.send_command, InstanceIds=[machine], DocumentName="AWS-RunShellScript")
    assert found == "arn:aws:ssm:us-east-1::document/AWS-RunShellScript"


def test_the_default_shell_needs_no_document(allowed: Callable[..., Any], machine: str) -> None:
    ssm = allowed(("ssm:StartSession", [MACHINES], TAGGED))
    assert refusal(ssm.start_session, Target=machine) == "InvalidDocument"


def test_the_condition_refuses_the_default_shell(allowed: Callable[..., Any], machine: str) -> None:
    ssm = allowed(("ssm:StartSession", [MACHINES, DOCUMENT], CHECKED))
    assert refusal(ssm.start_session, Target=machine) == f"{MACHINES[:-1]}{machine}"


def test_the_condition_allows_a_session_with_a_document(allowed: Callable[..., Any], machine: str) -> None:
    ssm = allowed(("ssm:StartSession", [MACHINES, DOCUMENT], CHECKED))
    assert refusal(ssm.start_session, Target=machine, DocumentName="mine") == "InvalidDocument"


def test_a_session_needs_permission_for_its_document(allowed: Callable[..., Any], machine: str) -> None:
    ssm = allowed(("ssm:StartSession", [MACHINES], CHECKED))
    assert refusal(ssm.start_session, Target=machine, DocumentName="mine") == DOCUMENT


@pytest.fixture
def documents(aws: Clients) -> Any:
    """The owner's client of an account with a document of each type."""
    ssm = aws("ssm")
    step = {"action": "aws:runShellScript", "name": "one", "inputs": {"runCommand": ["id"]}}
    command = {"schemaVersion": "2.2", "description": "", "mainSteps": [step]}
    shell = {"commands": "id", "runAsElevated": True}
    session = {"schemaVersion": "1.0", "sessionType": "InteractiveCommands", "properties": {"linux": shell}}
    for name, kind, content in (("one", "Command", command), ("two", "Session", session)):
        ssm.create_document(Name=name, DocumentType=kind, Content=json.dumps(content))
    return ssm


def test_a_machine_that_does_not_run_gets_no_command(documents: Any, machine: str) -> None:
    assert refusal(documents.send_command, InstanceIds=[machine], DocumentName="one") == "InvalidInstanceId"


def test_a_machine_that_does_not_run_gets_no_session(documents: Any, machine: str) -> None:
    assert refusal(documents.start_session, Target=machine, DocumentName="two") == "TargetNotConnected"


def test_a_document_of_another_type_is_unknown(documents: Any, machine: str) -> None:
    assert refusal(documents.send_command, InstanceIds=[machine], DocumentName="two") == "InvalidDocument"
