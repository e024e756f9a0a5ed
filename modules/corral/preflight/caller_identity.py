"""The caller's identity, the region, and the difference between this machine's clock and AWS's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="identity")
# AWS rejects signatures that are more than five minutes off. Source: IAM User Guide, "Signature Version 4".
LATE_S, TOO_LATE_S = 60.0, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityFacts:
    """`arn`: the owner of the credentials. `clock`: AWS's time; None if the response has none."""

    account: str
    arn: str
    clock: datetime | None
    regions: frozenset[str]


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> IdentityFacts:
    """The caller, the time of the response, the enabled regions of the account."""
    answer = aws.call("sts", "get_caller_identity")
    stamp = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    regions = aws.list_all("ec2", "describe_regions", "Regions")
    return IdentityFacts(
        account=str(answer["Account"]),
        arn=str(answer["Arn"]),
        clock=parsedate_to_datetime(stamp) if stamp else None,
        regions=frozenset(str(one["RegionName"]) for one in regions),
    )


def evaluate(request: PreflightRequest, facts: IdentityFacts) -> Iterator[PreflightFinding]:
    """Account and caller, region, clock."""
    if facts.arn.endswith(":root"):
        yield _FINDINGS.warn("credentials", f"belong to the root user of {facts.account}", "use a role or a user")
    else:
        yield _FINDINGS.ok("credentials", f"{facts.arn}")
    region = request.cluster.region
    if region in facts.regions:
        yield _FINDINGS.ok("region", region)
    else:
        yield _FINDINGS.fail(
            "region", f"{region} is not enabled in account {facts.account}", "enable it in the account's settings"
        )
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
