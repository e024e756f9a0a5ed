"""The API calls of a cluster's head, to check its policy with IAM.

Listed from the agent's code, not from the policy, so that a test can compare the two. Condition keys are those of the
Service Authorization Reference for each action.
"""

from __future__ import annotations

from corral.model.accounting_paths import accounting_backup_key
from corral.model.cluster import ClusterPlan
from corral.model.deployed import LOG_STREAM
from corral.model.history import history_prefix
from corral.model.partitions import partition_of, service_principal
from corral.model.tags import CLUSTER_TAG, resource_tag
from corral.plan.iam.api_permissions import Calls
from corral.plan.iam.iam_policies import VIA_SERVICE_KEY, ClusterArns
from corral.plan.iam.role_arns import directory_secret_arn, topic_arn, workspace_arn

_ANY_ID = "0" * 17
_ANY_KEY = "00000000-0000-0000-0000-000000000000"
REGION = "aws:RequestedRegion"


def planned_arns(plan: ClusterPlan, account: str) -> ClusterArns:
    """Return the ARNs in the policies of the cluster's roles, with placeholders for ids that AWS assigns later."""
    here, name, aws = f"{plan.region}:{account}", plan.name, partition_of(plan.region).name
    return ClusterArns(
        account=account,
        region=plan.region,
        cluster=name,
        prefix=plan.prefix,
        bucket=f"arn:{aws}:s3:::corral-{plan.base}-{account}-{plan.region}",
        key=f"arn:{aws}:kms:{here}:key/{_ANY_KEY}",
        compute_role=f"arn:{aws}:iam::{account}:role/corral/identity-compute-0000000",
        job_role=f"arn:{aws}:iam::{account}:role/corral/identity-job-0000000",
        munge_secret=f"arn:{aws}:secretsmanager:{here}:secret:corral/{name}/munge-000000",
        hosted_zone=f"arn:{aws}:route53:::hostedzone/Z0000000000000",
        log_group=f"arn:{aws}:logs:{here}:log-group:/corral/{name}",
        topic=topic_arn(plan, account),
        directory_secret=directory_secret_arn(plan, account).replace("-??????", "-000000"),
        workspace=workspace_arn(plan, account),
    )


def head_calls(arns: ClusterArns) -> tuple[Calls, ...]:
    """Return the calls of the agent on the head, from boot to shutdown."""
    return (*_machines(arns), *_files(arns), *_others(arns))


def _machines(arns: ClusterArns) -> tuple[Calls, ...]:
    aws = partition_of(arns.region).name
    ec2 = f"arn:{aws}:ec2:{arns.region}:{arns.account}"
    here = {REGION: arns.region}
    via_ec2 = {**here, VIA_SERVICE_KEY: f"ec2.{arns.region}.{partition_of(arns.region).dns_suffix}"}
    template = f"{ec2}:launch-template/lt-{_ANY_ID}"
    launched = {**here, "ec2:LaunchTemplate": template}
    used = ("subnet/subnet-", "security-group/sg-", "placement-group/group-", "capacity-reservation/cr-")
    # An interface that a launch makes has no id yet, and one that exists is denied.
    new = ("instance/i-", "network-interface/", "volume/vol-", "spot-instances-request/sir-")
    instance = f"{ec2}:instance/i-{_ANY_ID}"
    run = ("ec2:RunInstances",)
    key_use = "Decrypt DescribeKey GenerateDataKey GenerateDataKeyWithoutPlaintext ReEncryptFrom ReEncryptTo"
    seen = "CapacityReservations InstanceTopology Instances"
    return (
        Calls(actions=run, resources=(template,), context={**here, resource_tag(CLUSTER_TAG): arns.cluster}),
        Calls(
            actions=run,
            resources=(
                *(f"{ec2}:{kind}{_ANY_ID}" for kind in used),
                f"arn:{aws}:ec2:{arns.region}::image/ami-{_ANY_ID}",
            ),
            context={**launched, "ec2:IsLaunchTemplateResource": "true"},
        ),
        Calls(actions=run, resources=tuple(f"{ec2}:{kind}{_ANY_ID}" for kind in new), context=launched),
        Calls(actions=("ec2:CreateTags",), resources=(instance,), context={**here, "ec2:CreateAction": "RunInstances"}),
        Calls(
            actions=("iam:PassRole",),
            resources=(arns.compute_role,),
            context={**here, "iam:PassedToService": service_principal("ec2", arns.region)},
        ),
        Calls(actions=tuple(f"kms:{verb}" for verb in key_use.split()), resources=(arns.key,), context=via_ec2),
        Calls(
            actions=("kms:CreateGrant",),
            resources=(arns.key,),
            context={**via_ec2, "kms:GrantIsForAWSResource": "true"},
        ),
        Calls(
            actions=("ec2:TerminateInstances",),
            resources=(instance,),
            context={**here, resource_tag(CLUSTER_TAG, "ec2"): arns.cluster},
        ),
        Calls(actions=tuple(f"ec2:Describe{what}" for what in seen.split()), context=here),
    )


def _files(arns: ClusterArns) -> tuple[Calls, ...]:
    here, dump = {REGION: arns.region}, accounting_backup_key(arns.cluster)
    backup, history = f"{arns.bucket}/{dump}", f"{arns.bucket}/{history_prefix(arns.cluster)}life.json.gz"
    return (
        Calls(actions=("s3:GetObject",), resources=(f"{arns.bucket}/{arns.prefix}/cluster.json", backup), context=here),
        Calls(actions=("s3:PutObject",), resources=(backup, history), context=here),
        Calls(actions=("s3:ListBucket",), resources=(arns.bucket,), context={**here, "s3:prefix": dump}),
    )


def _others(arns: ClusterArns) -> tuple[Calls, ...]:
    account, here = f"{arns.region}:{arns.account}", {REGION: arns.region}
    partition = partition_of(arns.region)
    aws, names = partition.name, {REGION: partition.route53_region}
    channels = tuple(f"ssmmessages:{verb}{kind}Channel" for verb in ("Create", "Open") for kind in ("Control", "Data"))
    return (
        Calls(
            actions=("secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"),
            resources=(arns.munge_secret,),
            context=here,
        ),
        *(
            Calls(actions=("secretsmanager:GetSecretValue",), resources=(secret,), context=here)
            for secret in (arns.directory_secret,)
            if secret
        ),
        Calls(
            actions=("route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets"),
            resources=(arns.hosted_zone,),
            context=names,
        ),
        Calls(actions=("sts:AssumeRole",), resources=(arns.job_role,), context=here),
        Calls(
            actions=("logs:CreateLogStream", "logs:PutLogEvents"),
            resources=(f"{arns.log_group}:log-stream:{LOG_STREAM}",),
            context=here,
        ),
        Calls(actions=("sns:Publish",), resources=(arns.topic,), context=here),
        *([Calls(actions=("aps:RemoteWrite",), resources=(arns.workspace,), context=here)] if arns.workspace else []),
        Calls(
            actions=("ssm:UpdateInstanceInformation",),
            resources=(f"arn:{aws}:ec2:{account}:instance/i-{_ANY_ID}",),
            context=here,
        ),
        Calls(actions=channels, context=here),
    )
