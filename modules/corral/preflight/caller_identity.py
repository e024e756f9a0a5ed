"""The caller's identity, the region, and the difference between this machine's clock and AWS's.

Sources: AWS Account Management Reference Guide, "Enable or disable AWS Regions in your account"; what a disabled region
answers: segmentio/aws-okta#225, turbot/steampipe-plugin-aws#75, ekristen/aws-nuke#774; tokens of STS's global endpoint:
IAM User Guide, "Manage AWS STS in an AWS Region".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from botocore.exceptions import ClientError

from corral.model.partitions import partition_of
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="identity")
# AWS rejects signatures that are more than five minutes off. Source: IAM User Guide, "Signature Version 4".
LATE_S, TOO_LATE_S = 60.0, 300.0


# AWS's codes for credentials that a region does not know: because it is not enabled, among other causes.
UNKNOWN_HERE = frozenset({"AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException"})


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityFacts:
    """`arn`: the owner of the credentials. `clock`: AWS's time; None if the response has none.

    `home`: the region that answered, if the environment's own does not know the credentials; otherwise empty.
    """

    account: str
    arn: str
    clock: datetime | None
    regions: frozenset[str]
    home: str = ""


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> IdentityFacts:
    """The caller, the time of the response, the enabled regions of the account.

    A region that is not enabled answers as to unknown credentials: then a region that every account has is queried.
    """
    home = partition_of(request.cluster.region).iam_region
    try:
        return _facts(aws, "", {})
    except ClientError as error:
        if str(error.response["Error"].get("Code", "")) not in UNKNOWN_HERE or request.cluster.region == home:
            raise
        unknown = error
    try:
        return _facts(aws, home, {"AllRegions": True})
    except ClientError:
        raise unknown from None


def _facts(aws: AwsQueryCache, home: str, which: Mapping[str, bool]) -> IdentityFacts:
    answer = aws.call("sts", "get_caller_identity", home or None)
    stamp = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    regions = aws.call("ec2", "describe_regions", home or None, **which)["Regions"]
    return IdentityFacts(
        account=str(answer["Account"]),
        arn=str(answer["Arn"]),
        clock=parsedate_to_datetime(stamp) if stamp else None,
        regions=frozenset(str(one["RegionName"]) for one in regions if one.get("OptInStatus") != "not-opted-in"),
        home=home,
    )


def evaluate(request: PreflightRequest, facts: IdentityFacts) -> Iterator[PreflightFinding]:
    """Account and caller, region, clock."""
    region, is_enabled = request.cluster.region, request.cluster.region in facts.regions
    if facts.home and is_enabled:
        text = f"{facts.arn} is known in {facts.home}, but not in {region}: tokens of STS's global endpoint are not"
        yield _FINDINGS.fail("credentials", text, "sign in again with AWS_STS_REGIONAL_ENDPOINTS=regional")
    elif facts.arn.endswith(":root"):
        yield _FINDINGS.warn("credentials", f"belong to the root user of {facts.account}", "use a role or a user")
    else:
        yield _FINDINGS.ok("credentials", f"{facts.arn}")
    if is_enabled:
        yield _FINDINGS.ok("region", region)
    else:
        command = f"`aws account enable-region --region-name {region}`"
        fix = f"ask an administrator of the account to enable it ({command}); AWS takes minutes to hours"
        yield _FINDINGS.fail("region", f"{region} is not enabled in account {facts.account}", fix)
    if facts.clock is not None:
        yield _clock((request.now - facts.clock).total_seconds())


def _clock(ahead_s: float) -> PreflightFinding:
    off = f"this machine's clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} AWS's"
    fix = "synchronize it: `sudo timedatectl set-ntp true`"
    if abs(ahead_s) >= TOO_LATE_S:
        return _FINDINGS.fail("clock", f"{off}; AWS rejects requests from 300 s on", fix)
    if abs(ahead_s) >= LATE_S:
        return _FINDINGS.warn("clock", f"{off}; AWS rejects requests from 300 s on", fix)
    return _FINDINGS.ok("clock", "agrees with AWS's")
