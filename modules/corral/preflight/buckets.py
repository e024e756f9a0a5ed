"""Whether the buckets with data are there, may be read, and are where the machines are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from botocore.exceptions import ClientError

from corral.model.cluster import ClusterPlan
from corral.model.urls import bucket_of
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="buckets")
_ELSEWHERE = ("301", "PermanentRedirect", "400")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """`region`: where it is; None where S3 does not say. `refusal`: what S3 answered instead, "" where it answered."""

    region: str | None
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The buckets by name."""

    found: Mapping[str, Bucket] = field(default_factory=dict)


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """One request for each."""
    return Facts(found={name: _bucket(answers, name) for name in linked(wanted.cluster)})


def linked(cluster: ClusterPlan) -> tuple[str, ...]:
    """The buckets whose data Lustre shows or jobs use, sorted."""
    links = {bucket_of(link.s3) for system in cluster.lustre for link in system.data}
    return tuple(sorted(links | {bucket_of(one.s3) for one in cluster.jobs.buckets}))


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """Each bucket. FSx imports by itself only from its own region; other uses cross regions slowly and at a price.

    Source: FSx for Lustre User Guide, "Region and account support for linked S3 buckets", from memory.
    """
    region = wanted.cluster.region
    imported = {bucket_of(link.s3) for system in wanted.cluster.lustre for link in system.data if link.imports}
    for name, found in facts.found.items():
        about = f"s3://{name}"
        if found.refusal == "404":
            yield _TELL.fail(about, "does not exist", "make it, or change the spec")
        elif found.refusal == "403":
            text = "may not be read by these credentials, or belongs to another account"
            yield _TELL.warn(about, text, "its owner's policy must allow the cluster's roles")
        elif found.region and found.region != region and name in imported:
            text = f"is in {found.region}, and FSx imports by itself from its own region, {region}, alone"
            yield _TELL.fail(about, text, f"copy it to {region}, or take its `import` out of the link")
        elif found.region and found.region != region:
            text = f"is in {found.region}: what jobs read crosses regions, slowly and at a price"
            yield _TELL.warn(about, text, f"copy it to {region}")
        elif found.refusal:
            yield _TELL.fail(about, f"cannot be asked: {found.refusal}", "see the bucket's policy")
        else:
            yield _TELL.ok(about, f"is in {found.region or region}")


def _bucket(answers: Answers, name: str) -> Bucket:
    try:
        answer = answers.ask("s3", "head_bucket", Bucket=name)
    except ClientError as error:
        code = str(error.response["Error"].get("Code", ""))
        headers = error.response["ResponseMetadata"].get("HTTPHeaders", {})
        region = headers.get("x-amz-bucket-region")
        return Bucket(region=region, refusal="" if code in _ELSEWHERE and region else code)
    headers = answer["ResponseMetadata"].get("HTTPHeaders", {})
    return Bucket(region=answer.get("BucketRegion") or headers.get("x-amz-bucket-region"))
