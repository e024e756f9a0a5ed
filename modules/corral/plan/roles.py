"""What the roles of a planned cluster may reach, as ARNs, and whether IAM has room for it."""

import json

from corral.model.cluster import ClusterPlan
from corral.model.urls import bucket_of
from corral.plan.access import JobArns, job_policy, secret_arn
from corral.spec.errors import SpecError

POLICY_CHARACTERS = (
    10_240  # of a role's inline policies, without white space. Source: IAM User Guide, "IAM and STS quotas"
)
_ACCOUNT = "123456789012"
_BUCKET = "arn:aws:s3:::" + "b" * 63  # no name of a bucket is longer
_KEY = "0" * 36


def job_arns(plan: ClusterPlan, account: str, bucket: str, key: str) -> JobArns:
    """What a job reaches. Data that Lustre shows is written by jobs anyway; the rest may say that it is only read.

    `bucket`, `key`: the ARNs of the base's.
    """
    linked = {f"arn:aws:s3:::{bucket_of(link.s3)}" for system in plan.lustre for link in system.data}
    places = {place.s3.replace("s3://", "arn:aws:s3:::", 1): place.write for place in plan.jobs.buckets}
    return JobArns(
        bucket=bucket,
        key=key,
        cluster=plan.name,
        writable=tuple(sorted(linked | {place for place, write in places.items() if write})),
        readable=tuple(sorted(place for place, write in places.items() if not write)),
        secrets=tuple(secret_arn(plan.region, account, name) for name in sorted(set(plan.jobs.secrets.values()))),
    )


def check_job_role(plan: ClusterPlan, *, file: str) -> tuple[SpecError, ...]:
    """Whether the policy of the job role, which grows with every bucket and secret, is one that IAM takes."""
    key = f"arn:aws:kms:{plan.region}:{_ACCOUNT}:key/{_KEY}"
    arns = job_arns(plan, _ACCOUNT, _BUCKET, key)
    length = len(json.dumps(job_policy(arns), separators=(",", ":")))
    if length <= POLICY_CHARACTERS:
        return ()
    buckets, secrets = len(arns.writable) + len(arns.readable), len(arns.secrets)
    message = (
        f"{buckets} buckets, those that Lustre shows among them, and {secrets} secrets make a policy of {length:,}"
        f" characters, and AWS takes {POLICY_CHARACTERS:,} of a role - name fewer of them, or one bucket that holds"
        " more"
    )
    return (SpecError(file=file, path="jobs", message=message),)
