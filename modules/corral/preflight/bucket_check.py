"""Whether the data buckets exist, are readable, and are in the cluster's region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from botocore.exceptions import ClientError

from corral.model.bucket_owner import ANY_OWNER
from corral.model.cluster import ClusterPlan
from corral.model.urls import bucket_of
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="buckets")
_ELSEWHERE = ("301", "PermanentRedirect", "400")


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAccess:
    """`region`: None if S3 does not return it. `refusal`: S3's error code, or ""."""

    region: str | None
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFacts:
    """The buckets by name."""

    found: Mapping[str, BucketAccess] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> BucketFacts:
    """One request for each bucket, whoever owns it: corral reads and writes none of its objects."""
    return BucketFacts(found={name: _bucket(aws, name) for name in linked(request.cluster)})


def linked(cluster: ClusterPlan) -> tuple[str, ...]:
    """The buckets that Lustre links to or jobs use, sorted."""
    links = {bucket_of(link.s3) for system in cluster.lustre for link in system.data}
    return tuple(sorted(links | {bucket_of(one.s3) for one in cluster.jobs.buckets}))


def evaluate(request: PreflightRequest, facts: BucketFacts) -> Iterator[PreflightFinding]:
    """One finding for each bucket. FSx imports automatically only from its own region; roles of jobs reach no other.

    Source: FSx for Lustre User Guide, "Region and account support for linked S3 buckets", from memory.
    """
    region = request.cluster.region
    imported = {bucket_of(link.s3) for system in request.cluster.lustre for link in system.data if link.imports}
    used = {bucket_of(one.s3) for one in request.cluster.jobs.buckets}
    for name, found in facts.found.items():
        about = f"s3://{name}"
        if found.refusal == "404":
            yield _FINDINGS.fail(about, "does not exist", "create it, or change the spec")
        elif found.refusal == "403":
            text = "cannot be read with these credentials, or belongs to another account"
            yield _FINDINGS.warn(about, text, "let the bucket's policy allow the cluster's roles")
        elif found.region and found.region != region and name in imported:
            text = f"is in {found.region}; FSx imports only from its own region, {region}"
            yield _FINDINGS.fail(about, text, f"copy it to {region}, or set `import: []` in the link")
        elif found.region and found.region != region and name in used:
            text = f"is in {found.region}; the boundary of roles keeps jobs in {region}"
            yield _FINDINGS.fail(about, text, f"copy it to {region}, or remove it from jobs.buckets")
        elif found.region and found.region != region:
            text = f"is in {found.region}; reads by Lustre cross regions, slowly and at a cost"
            yield _FINDINGS.warn(about, text, f"copy it to {region}")
        elif found.refusal:
            yield _FINDINGS.fail(about, f"cannot be checked: {found.refusal}", "check the bucket's policy")
        else:
            yield _FINDINGS.ok(about, f"is in {found.region or region}")


def _bucket(aws: AwsQueryCache, name: str) -> BucketAccess:
    try:
        answer = aws.call("s3", "head_bucket", Bucket=name, ExpectedBucketOwner=ANY_OWNER)
    except ClientError as error:
        code = str(error.response["Error"].get("Code", ""))
        headers = error.response["ResponseMetadata"].get("HTTPHeaders", {})
        region = headers.get("x-amz-bucket-region")
        return BucketAccess(region=region, refusal="" if code in _ELSEWHERE and region else code)
    headers = answer["ResponseMetadata"].get("HTTPHeaders", {})
    return BucketAccess(region=answer.get("BucketRegion") or headers.get("x-amz-bucket-region"))
