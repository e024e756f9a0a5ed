"""The IAM policies of people who use clusters and do not deploy them: reader, user, admin. As plain data.

Each includes the one before. A shell or a program on a machine needs two permissions, for the document and for the
machine, so a policy names the documents of `head_documents` and limits machines by their tags. Without a document,
StartSession opens AWS's default shell, whose document is only checked if each statement that allows the call has the
condition `ssm:SessionDocumentAccessCheck`.
Sources: Service Authorization Reference, "Actions, resources, and condition keys for AWS Systems Manager"; Systems
Manager User Guide, "Start a session with a document by specifying the session documents in IAM policies", "Sample IAM
policies for Session Manager" and "Additional sample IAM policies for Session Manager".
"""

from __future__ import annotations

from collections.abc import Mapping

from corral.model.partitions import partition_of
from corral.model.tags import ADMINS_TAG, CLUSTER_TAG, LOGIN_TAG, QUEUE_TAG, resource_tag
from corral.plan.iam.deployer_policy import HERE, STATE_ALIAS, Condition, Grant, Policy, statement_of
from corral.plan.iam.head_documents import QUERY, ROOT_SHELL, SHELL, SSH
from corral.plan.iam.iam_policies import VIA_SERVICE_KEY

PLUGIN = "the session-manager-plugin calls it, which the box does without"
DECRYPTION = "S3 decrypts histories with the caller's permissions, which the box does not check"
_INSTANCES = ("arn:{partition}:ec2:{region}:{account}:instance/*",)
_DOCUMENT = "arn:{partition}:ssm:{region}:{account}:document/"
_IN_CLUSTER: Condition = {"StringLike": {resource_tag(CLUSTER_TAG, "ssm"): "*"}}
_HEAD: Condition = {**_IN_CLUSTER, "Null": {resource_tag(tag, "ssm"): "true" for tag in (QUEUE_TAG, LOGIN_TAG)}}
# Login nodes, and the head of a cluster without any.
_GATE: Condition = {**_IN_CLUSTER, "Null": {resource_tag(tag, "ssm"): "true" for tag in (QUEUE_TAG, ADMINS_TAG)}}
_WITH_DOCUMENT: Condition = {"BoolIfExists": {"ssm:SessionDocumentAccessCheck": "true"}}
_OWN_SESSIONS: Condition = {"StringLike": {"ssm:resourceTag/aws:ssmmessages:session-id": "${{aws:userid}}"}}

READER = (
    Grant(
        sid="See",
        actions=("ec2:Describe*", "elasticfilesystem:DescribeFileSystems", "fsx:DescribeFileSystems"),
        condition=HERE,
    ),
    Grant(
        sid="Lists",
        actions=(
            *("elasticloadbalancing:DescribeLoadBalancers", "route53:ListHostedZones", "ssm:GetCommandInvocation"),
            *("sts:GetCallerIdentity", "tag:GetResources"),
        ),
    ),
    Grant(
        sid="Ends",
        actions=("ssm:GetParameter",),
        resources=("arn:{partition}:ssm:{region}:{account}:parameter/corral/*/ends-at",),
    ),
    Grant(sid="AskHeads", actions=("ssm:SendCommand",), resources=_INSTANCES, condition=_HEAD),
    Grant(sid="Questions", actions=("ssm:SendCommand",), resources=(f"{_DOCUMENT}{QUERY.name}",)),
    Grant(
        sid="HistoryNames",
        actions=("s3:ListBucket",),
        resources=("arn:{partition}:s3:::corral-*-{account}-{region}",),
        condition={"StringLike": {"s3:prefix": "lives/*"}},
    ),
    Grant(
        sid="Histories",
        actions=("s3:GetObject",),
        resources=("arn:{partition}:s3:::corral-*-{account}-{region}/lives/*",),
    ),
    Grant(
        sid="HistoryKeys",
        unseen={"kms:Decrypt": DECRYPTION},
        resources=("arn:{partition}:kms:{region}:{account}:key/*",),
        condition={"StringEquals": {VIA_SERVICE_KEY: "s3.{region}.{domain}"}},
    ),
)
USER = (
    *READER,
    Grant(
        sid="ConnectToGates", actions=("ssm:StartSession",), resources=_INSTANCES, condition={**_GATE, **_WITH_DOCUMENT}
    ),
    Grant(
        sid="OwnShell",
        actions=("ssm:StartSession",),
        resources=tuple(f"{_DOCUMENT}{one.name}" for one in (SHELL, SSH)),
        condition=_WITH_DOCUMENT,
    ),
    Grant(
        sid="OwnChannels",
        unseen={"ssmmessages:OpenDataChannel": PLUGIN},
        resources=("arn:{partition}:ssm:*:*:session/${{aws:userid}}-*",),
    ),
    Grant(
        sid="OwnSessions",
        unseen=dict.fromkeys(("ssm:ResumeSession", "ssm:TerminateSession"), PLUGIN),
        condition=_OWN_SESSIONS,
    ),
)
ADMIN = (
    *USER,
    Grant(
        sid="ConnectToAll",
        actions=("ssm:StartSession",),
        resources=_INSTANCES,
        condition={**_IN_CLUSTER, **_WITH_DOCUMENT},
    ),
    Grant(
        sid="RootShell",
        actions=("ssm:StartSession",),
        resources=(f"{_DOCUMENT}{ROOT_SHELL.name}",),
        condition=_WITH_DOCUMENT,
    ),
)
ACCESS: Mapping[str, tuple[Grant, ...]] = {"reader": READER, "user": USER, "admin": ADMIN}


def access_policies(*, account: str, region: str, alias: str = STATE_ALIAS) -> tuple[Policy, ...]:
    """Return the policies of a reader, a user and an admin of the region's clusters, in this order.

    Policies for a key alias other than the default have that alias in their names, as those of deployers.
    """
    partition = partition_of(region)
    facts = {"partition": partition.name, "domain": partition.dns_suffix, "region": region, "account": account}
    name = "corral" if alias == STATE_ALIAS else alias.removeprefix("alias/")
    return tuple(
        Policy(
            name=f"{name}-{topic}-{region}",
            document={"Version": "2012-10-17", "Statement": [statement_of(grant, facts) for grant in grants]},
        )
        for topic, grants in ACCESS.items()
    )
