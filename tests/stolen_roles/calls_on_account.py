"""Calls on the account: roles and users, commands and shells on machines, logs, topics, alarms, budgets and tags."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from stolen_account import ADMIN
from stolen_call import (
    ADMINISTRATOR_ACCESS,
    ALARM,
    BOOTSTRAP,
    BOUNDARY,
    CLUSTER_TAGS,
    DEPLOYER,
    EC2,
    IAM,
    LOGS,
    NO_TAGS,
    NOBODY,
    OWNERS,
    POLICY,
    READERS,
    SNS,
    SSM,
    TRUST,
    Run,
    StolenCall,
    both,
    near,
    own,
    theirs,
)

from corral.box.account import ACCOUNT, REGION
from corral.model.tags import ADMINS_TAG

_METRIC = {"metricName": "x", "metricNamespace": "x", "metricValue": "1"}
# With what each document may be run.
_PARAMETERS = {
    "AWS-RunShellScript": {"commands": ["id"]},
    "corral-control": {"arguments": ["apply --json"]},
    "corral-query": {"arguments": ["status"]},
}


def calls_on_account() -> Iterator[StolenCall]:
    """All of these."""
    yield from _identity()
    yield from _shells()
    yield from _watching()


def _identity() -> Iterator[StolenCall]:
    of_a_cluster, of_others = f"{IAM}:role/corral/{{head_role}}", f"{IAM}:role/{{head_role}}"
    bounded = {"iam:PermissionsBoundary": BOUNDARY}
    tags = [{"Key": "corral:base", "Value": "dev"}]
    asked = {"aws:RequestTag/corral:base": "dev", "aws:TagKeys": "corral:base"}
    changes: tuple[tuple[str, Run, tuple[str, ...], Mapping[str, str]], ...] = (
        (
            "PutRolePolicy",
            lambda n: n.aws("iam").put_role_policy(RoleName=n.head_role, PolicyName="x", PolicyDocument=POLICY),
            DEPLOYER,
            bounded,
        ),
        ("GetRolePolicy", lambda n: n.aws("iam").get_role_policy(RoleName=n.head_role, PolicyName="x"), DEPLOYER, {}),
        (
            "AttachRolePolicy",
            lambda n: n.aws("iam").attach_role_policy(RoleName=n.head_role, PolicyArn=ADMINISTRATOR_ACCESS),
            NOBODY,
            {**bounded, "iam:PolicyARN": ADMINISTRATOR_ACCESS},
        ),
        (
            "UpdateAssumeRolePolicy",
            lambda n: n.aws("iam").update_assume_role_policy(RoleName=n.head_role, PolicyDocument=TRUST),
            NOBODY,
            {},
        ),
        (
            "PutRolePermissionsBoundary",
            lambda n: n.aws("iam").put_role_permissions_boundary(
                RoleName=n.head_role, PermissionsBoundary=ADMINISTRATOR_ACCESS
            ),
            NOBODY,
            {"iam:PermissionsBoundary": ADMINISTRATOR_ACCESS},
        ),
        (
            "DeleteRolePermissionsBoundary",
            lambda n: n.aws("iam").delete_role_permissions_boundary(RoleName=n.head_role),
            NOBODY,
            bounded,
        ),
        ("TagRole", lambda n: n.aws("iam").tag_role(RoleName=n.head_role, Tags=tags), DEPLOYER, asked),
        (
            "DetachRolePolicy",
            lambda n: n.aws("iam").detach_role_policy(RoleName=n.head_role, PolicyArn=ADMINISTRATOR_ACCESS),
            DEPLOYER,
            {**bounded, "iam:PolicyARN": ADMINISTRATOR_ACCESS},
        ),
        (
            "UpdateRole",
            lambda n: n.aws("iam").update_role(RoleName=n.head_role, MaxSessionDuration=43200),
            DEPLOYER,
            {},
        ),
        ("DeleteRole", lambda n: n.aws("iam").delete_role(RoleName=n.head_role), DEPLOYER, {}),
    )
    for name, run, may, keys in changes:
        yield near(f"iam:{name}", of_a_cluster, run, may, keys=keys)
        yield theirs(f"iam:{name}", of_others, run, keys=keys)
    yield from _new_roles(tags, asked)
    boundary = BOUNDARY
    account: tuple[tuple[str, str, Run, tuple[str, ...]], ...] = (
        (
            "CreatePolicyVersion",
            boundary,
            lambda n: n.aws("iam").create_policy_version(PolicyArn=boundary, PolicyDocument=POLICY, SetAsDefault=True),
            BOOTSTRAP,
        ),
        (
            "SetDefaultPolicyVersion",
            boundary,
            lambda n: n.aws("iam").set_default_policy_version(PolicyArn=boundary, VersionId="v1"),
            NOBODY,
        ),
        (
            "CreateLoginProfile",
            f"{IAM}:user/grace",
            lambda n: n.aws("iam").create_login_profile(UserName="grace", Password="Thief-2026-Thief"),
            OWNERS,
        ),
        (
            "PutUserPolicy",
            f"{IAM}:user/grace",
            lambda n: n.aws("iam").put_user_policy(UserName="grace", PolicyName="x", PolicyDocument=POLICY),
            OWNERS,
        ),
        ("CreateUser", f"{IAM}:user/thief", lambda n: n.aws("iam").create_user(UserName="thief"), NOBODY),
        (
            "CreateAccessKey",
            f"{IAM}:user/grace",
            lambda n: n.aws("iam").create_access_key(UserName="grace"),
            OWNERS,
        ),
        (
            "AttachUserPolicy",
            f"{IAM}:user/grace",
            lambda n: n.aws("iam").attach_user_policy(UserName="grace", PolicyArn=ADMINISTRATOR_ACCESS),
            OWNERS,
        ),
        (
            "CreatePolicy",
            f"{IAM}:policy/mine",
            lambda n: n.aws("iam").create_policy(PolicyName="mine", PolicyDocument=POLICY),
            BOOTSTRAP,
        ),
        ("ListUsers", "*", lambda n: n.aws("iam").list_users(), NOBODY),
        (
            "GetAccountAuthorizationDetails",
            "*",
            lambda n: n.aws("iam").get_account_authorization_details(),
            NOBODY,
        ),
    )
    for name, resource, run, may in account:
        yield theirs(f"iam:{name}", resource, run, may)
    for name, may in (("job", ("near-head", "near-compute")), ("people", ("near-login",))):
        yield near(
            "sts:AssumeRole",
            f"{IAM}:role/corral/{{{name}_role}}",
            lambda n, name=name: n.aws("sts").assume_role(
                RoleArn=f"{IAM}:role/corral/{n.known[f'{name}_role']}", RoleSessionName="thief"
            ),
            may,
        )
    yield theirs(
        "sts:AssumeRole",
        f"{IAM}:role/ops",
        lambda n: n.aws("sts").assume_role(RoleArn=f"{IAM}:role/ops", RoleSessionName="thief"),
    )


def _new_roles(tags: list[dict[str, str]], asked: Mapping[str, str]) -> Iterator[StolenCall]:
    """A role without a boundary, with another one, elsewhere, and as a deployer makes one."""

    def create(name: str, **more: str) -> Run:
        trusted = {"RoleName": name, "AssumeRolePolicyDocument": TRUST}
        return lambda n: n.aws("iam").create_role(**trusted, Tags=tags, **more)

    mine, at = f"{IAM}:role/corral/identity-mine", {"Path": "/corral/"}
    bounded = {**asked, "iam:PermissionsBoundary": BOUNDARY}
    wide = {**asked, "iam:PermissionsBoundary": ADMINISTRATOR_ACCESS}
    own_boundary, wide_boundary = ({"PermissionsBoundary": one["iam:PermissionsBoundary"]} for one in (bounded, wide))
    yield near("iam:CreateRole", f"{mine}-1", create("identity-mine-1", **at, **own_boundary), DEPLOYER, keys=bounded)
    yield near("iam:CreateRole", f"{mine}-2", create("identity-mine-2", **at), keys=asked)
    yield near("iam:CreateRole", f"{mine}-3", create("identity-mine-3", **at, **wide_boundary), keys=wide)
    yield near("iam:CreateRole", f"{IAM}:role/identity-mine", create("identity-mine", **own_boundary), keys=bounded)


def _shells() -> Iterator[StolenCall]:
    def send(machine: str, document: str) -> Run:
        return lambda n: n.aws("ssm").send_command(
            InstanceIds=[n.known[machine]],
            DocumentName=document,
            Parameters=_PARAMETERS[document],
        )

    def shell(machine: str, document: str = "") -> Run:
        named = {"DocumentName": document} if document else {}
        return lambda n: n.aws("ssm").start_session(Target=n.known[machine], **named)

    head = CLUSTER_TAGS
    only_admins = {**head, ADMINS_TAG: "only"}
    node = {**head, "corral:queue": "train"}
    anything = f"arn:aws:ssm:{REGION}::document/AWS-RunShellScript"
    for build in (own, near, theirs):
        yield build("ssm:SendCommand", anything, send("head", "AWS-RunShellScript"), NOBODY)
    instance, worker, gate = (f"{EC2}:instance/{{{machine}}}" for machine in ("head", "node", "login"))
    document = f"{SSM}:document/"
    yield near("ssm:SendCommand", instance, send("head", "corral-query"), READERS, head)
    yield near("ssm:SendCommand", worker, send("node", "corral-query"), DEPLOYER, node)
    yield theirs("ssm:SendCommand", instance, send("head", "corral-query"), NOBODY)
    yield near("ssm:SendCommand", f"{document}corral-control", send("head", "corral-control"), DEPLOYER)
    checked = {"ssm:SessionDocumentAccessCheck": "true"}
    yield near("ssm:StartSession", instance, shell("head", "corral-shell"), (ADMIN,), only_admins, keys=checked)
    yield near("ssm:StartSession", gate, shell("login", "corral-shell"), ("user", ADMIN), head, keys=checked)
    yield near("ssm:StartSession", worker, shell("node", "corral-shell"), (ADMIN,), node, keys=checked)
    yield theirs("ssm:StartSession", instance, shell("head", "corral-shell"), NOBODY, keys=checked)
    yield near(
        "ssm:StartSession", f"{document}corral-root-shell", shell("head", "corral-root-shell"), (ADMIN,), keys=checked
    )
    unchecked = {"ssm:SessionDocumentAccessCheck": "false"}
    yield near("ssm:StartSession", instance, shell("head"), NOBODY, head, keys=unchecked)
    content = json.dumps({"schemaVersion": "2.2", "mainSteps": []})
    documents: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        (
            "UpdateDocument",
            lambda n: n.aws("ssm").update_document(Name="corral-query", Content=content, DocumentVersion="$LATEST"),
            BOOTSTRAP,
        ),
        (
            "ModifyDocumentPermission",
            lambda n: n.aws("ssm").modify_document_permission(
                Name="corral-query", PermissionType="Share", AccountIdsToAdd=["all"]
            ),
            NOBODY,
        ),
    )
    for name, run, may in documents:
        yield near(f"ssm:{name}", f"{document}corral-query", run, may)
    yield near(
        "ssm:DeleteDocument",
        f"{document}corral-ssh",
        lambda n: n.aws("ssm").delete_document(Name="corral-ssh"),
        BOOTSTRAP,
    )


def _watching() -> Iterator[StolenCall]:
    stream = f"{LOGS}:{{log_group}}:log-stream:events"
    event = [{"timestamp": 1, "message": "all is well"}]

    def write(name: str) -> Run:
        return lambda n: n.aws("logs").put_log_events(logGroupName=n.log_group, logStreamName=name, logEvents=event)

    yield near("logs:PutLogEvents", stream, write("events"), ("near-head",))
    yield theirs("logs:PutLogEvents", stream, write("events"))
    yield own("logs:PutLogEvents", stream, write("events"), ("head",))
    yield own("logs:PutLogEvents", f"{LOGS}:{{log_group}}:log-stream:other", write("other"))
    yield from both(
        "logs:DeleteLogStream",
        stream,
        lambda n: n.aws("logs").delete_log_stream(logGroupName=n.log_group, logStreamName="events"),
        NOBODY,
        NO_TAGS,
    )
    group = f"{LOGS}:{{log_group}}"
    groups: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        (
            "PutMetricFilter",
            lambda n: n.aws("logs").put_metric_filter(
                logGroupName=n.log_group, filterName="x", filterPattern="", metricTransformations=[_METRIC]
            ),
            NOBODY,
        ),
        ("FilterLogEvents", lambda n: n.aws("logs").filter_log_events(logGroupName=n.log_group), NOBODY),
        (
            "PutSubscriptionFilter",
            lambda n: n.aws("logs").put_subscription_filter(
                logGroupName=n.log_group, filterName="x", filterPattern="", destinationArn=f"{SNS}:x"
            ),
            NOBODY,
        ),
        (
            "PutRetentionPolicy",
            lambda n: n.aws("logs").put_retention_policy(logGroupName=n.log_group, retentionInDays=1),
            DEPLOYER,
        ),
        ("DeleteLogGroup", lambda n: n.aws("logs").delete_log_group(logGroupName=n.log_group), DEPLOYER),
    )
    for name, run, may in groups:
        yield from both(f"logs:{name}", group, run, may, NO_TAGS)
    topic = f"{SNS}:{{topic}}"
    arn = lambda n: f"{SNS}:{n.topic}"  # noqa: E731
    topics: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        ("Publish", lambda n: n.aws("sns").publish(TopicArn=arn(n), Message="1"), ("near-head",)),
        (
            "Subscribe",
            lambda n: n.aws("sns").subscribe(TopicArn=arn(n), Protocol="email", Endpoint="thief@example.org"),
            DEPLOYER,
        ),
        (
            "SetTopicAttributes",
            lambda n: n.aws("sns").set_topic_attributes(TopicArn=arn(n), AttributeName="Policy", AttributeValue=POLICY),
            DEPLOYER,
        ),
        (
            "AddPermission",
            lambda n: n.aws("sns").add_permission(
                TopicArn=arn(n), Label="x", AWSAccountId=["999999999999"], ActionName=["Publish"]
            ),
            NOBODY,
        ),
        ("DeleteTopic", lambda n: n.aws("sns").delete_topic(TopicArn=arn(n)), DEPLOYER),
    )
    for name, run, may in topics:
        yield from both(f"sns:{name}", topic, run, may, NO_TAGS)
    yield own("sns:Publish", topic, lambda n: n.aws("sns").publish(TopicArn=arn(n), Message="1"), ("head",))
    alarm = f"{ALARM}:{{alarm}}"
    alarms: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        ("DisableAlarmActions", lambda n: n.aws("cloudwatch").disable_alarm_actions(AlarmNames=[n.alarm]), NOBODY),
        (
            "SetAlarmState",
            lambda n: n.aws("cloudwatch").set_alarm_state(AlarmName=n.alarm, StateValue="OK", StateReason="x"),
            NOBODY,
        ),
        ("DeleteAlarms", lambda n: n.aws("cloudwatch").delete_alarms(AlarmNames=[n.alarm]), DEPLOYER),
    )
    for name, run, may in alarms:
        yield from both(f"cloudwatch:{name}", alarm, run, may, NO_TAGS)
    budget = f"arn:aws:budgets::{ACCOUNT}:budget/{{budget}}"
    drop: Run = lambda n: n.aws("budgets").delete_budget(AccountId=ACCOUNT, BudgetName=n.budget)  # noqa: E731
    yield near("budgets:ModifyBudget", budget, drop, DEPLOYER)
    yield theirs("budgets:ModifyBudget", budget, drop)
    yield near("tag:GetResources", "*", lambda n: n.aws("resourcegroupstaggingapi").get_resources(), READERS)
    yield near(
        "tag:TagResources",
        "*",
        lambda n: n.aws("resourcegroupstaggingapi").tag_resources(
            ResourceARNList=[f"arn:aws:s3:::{n.bucket}"], Tags={"corral:base": "mine"}
        ),
    )
