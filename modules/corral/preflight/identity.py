"""Who asks, in which region, and whether this machine's clock agrees with AWS's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="identity")
# AWS refuses what was signed more than five minutes ago or ahead. Source: IAM User Guide, "Signature Version 4".
LATE_S, TOO_LATE_S = 60.0, 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`arn`: of whoever the credentials belong to. `clock`: AWS's, None where the answer has none."""

    account: str
    arn: str
    clock: datetime | None
    regions: frozenset[str]


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """The caller, the time of the answer, the regions that the account has turned on."""
    answer = answers.ask("sts", "get_caller_identity")
    stamp = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    regions = answers.every("ec2", "describe_regions", "Regions")
    return Facts(
        account=str(answer["Account"]),
        arn=str(answer["Arn"]),
        clock=parsedate_to_datetime(stamp) if stamp else None,
        regions=frozenset(str(one["RegionName"]) for one in regions),
    )


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """Account and caller, region, clock."""
    if facts.arn.endswith(":root"):
        yield _TELL.warn("credentials", f"they are those of the root user of {facts.account}", "use a role or a user")
    else:
        yield _TELL.ok("credentials", f"{facts.arn}")
    region = wanted.cluster.region
    if region in facts.regions:
        yield _TELL.ok("region", region)
    else:
        yield _TELL.fail(
            "region", f"{region} is not turned on in account {facts.account}", "turn it on in its settings"
        )
    if facts.clock is not None:
        yield _clock((wanted.now - facts.clock).total_seconds())


def _clock(ahead_s: float) -> Finding:
    off = f"this machine's clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} AWS's"
    fix = "let it follow a time server: `sudo timedatectl set-ntp true`"
    if abs(ahead_s) >= TOO_LATE_S:
        return _TELL.fail("clock", f"{off}, and AWS refuses what is 300 s off", fix)
    if abs(ahead_s) >= LATE_S:
        return _TELL.warn("clock", f"{off}; AWS refuses from 300 s on", fix)
    return _TELL.ok("clock", "agrees with AWS's")
