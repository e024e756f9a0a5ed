"""ARNs of what a planned cluster's jobs and machines may access, of its topic; a check of the policy's size."""

import json

from corral.model.cluster import ClusterPlan
from corral.model.partitions import partition_of
from corral.plan.iam.iam_policies import JobArns, job_policy, secret_arn
from corral.spec.spec_errors import SpecError

POLICY_CHARACTERS = (
    10_240  # total of a role's inline policies, without whitespace. Source: IAM User Guide, "IAM and STS quotas"
)
_ACCOUNT = "123456789012"
_BUCKET = "b" * 63  # the longest bucket name
_KEY = "0" * 36


def job_arns(plan: ClusterPlan, account: str, bucket: str, key: str) -> JobArns:
    """Return the ARNs that a job may access. Data linked to Lustre is writable, since jobs write it through Lustre.

    `bucket`, `key`: the ARNs of the base's bucket and key.
    """
    aws = partition_of(plan.region).name
    s3 = f"arn:{aws}:s3:::"
    linked = {link.s3.replace("s3://", s3, 1).rstrip("/") for system in plan.lustre for link in system.data}
    write_access = {one.s3.replace("s3://", s3, 1): one.write for one in plan.jobs.buckets}
    return JobArns(
        region=plan.region,
        bucket=bucket,
        key=key,
        cluster=plan.name,
        writable=tuple(sorted(linked | {one for one, write in write_access.items() if write})),
        readable=tuple(sorted(one for one, write in write_access.items() if not write)),
        repositories=tuple(
            f"arn:{aws}:ecr:{plan.region}:{one.account or account}:repository/{one.name}"
            for one in plan.jobs.registries
        ),
        secrets=tuple(secret_arn(plan.region, account, name) for name in sorted(set(plan.jobs.secrets.values()))),
    )


def directory_secret_arn(plan: ClusterPlan, account: str) -> str:
    """Return the ARN pattern of the secret for the directory of people; empty without one."""
    directory = plan.access.directory
    return secret_arn(plan.region, account, directory.bind_secret) if directory else ""


def alert_secret_arns(plan: ClusterPlan, account: str) -> tuple[str, ...]:
    """Return the ARNs of the secrets with which the head notifies people, sorted."""
    if not plan.monitoring.alerts:
        return ()
    names = sorted(set(plan.monitoring.alerts.secrets.values()))
    return tuple(secret_arn(plan.region, account, name) for name in names)


def host_key_secret_arn(plan: ClusterPlan, account: str) -> str:
    """Return the ARN of the secret with the login nodes' host key; empty without a load balancer."""
    balanced = plan.login and plan.login.load_balancer
    return secret_arn(plan.region, account, plan.host_key_secret) if balanced else ""


def workspace_arn(plan: ClusterPlan, account: str) -> str:
    """Return the ARN of the workspace that Prometheus writes to; empty without one."""
    written = plan.monitoring.remote_write
    here = f"{plan.region}:{account}"
    return f"arn:{partition_of(plan.region).name}:aps:{here}:workspace/{written.workspace}" if written else ""


def topic_arn(plan: ClusterPlan, account: str) -> str:
    """Return the ARN of the cluster's topic."""
    return f"arn:{partition_of(plan.region).name}:sns:{plan.region}:{account}:watch-topic-{plan.name}"


def check_job_role(plan: ClusterPlan, *, file: str) -> tuple[SpecError, ...]:
    """Return an error if the job role's policy, which grows with every bucket and secret, exceeds IAM's limit."""
    aws = partition_of(plan.region).name
    key = f"arn:{aws}:kms:{plan.region}:{_ACCOUNT}:key/{_KEY}"
    arns = job_arns(plan, _ACCOUNT, f"arn:{aws}:s3:::{_BUCKET}", key)
    length = len(json.dumps(job_policy(arns), separators=(",", ":")))
    if length <= POLICY_CHARACTERS:
        return ()
    buckets, secrets = len(arns.writable) + len(arns.readable), len(arns.secrets)
    message = (
        f"{buckets} buckets, including those linked to Lustre, {secrets} secrets and {len(arns.repositories)}"
        f" repositories make a policy of {length:,} characters; AWS allows {POLICY_CHARACTERS:,} for a role"
    )
    fix = "declare fewer of them, or a bucket in place of its prefixes"
    return (SpecError(file=file, path="jobs", message=message, fix=fix),)
