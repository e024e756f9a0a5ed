"""The checks by name, and how they are made: what each asks of the account is asked at the same time, then judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from corral.preflight import (
    buckets,
    ground,
    identity,
    images,
    offered,
    quota_use,
    quotas,
    reserved,
    service_roles,
    spot,
)
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Verdict, Wanted

AT_ONCE = 12  # requests to one account; AWS's own limits of reads are 20 a second and more
_REFUSED = ("AccessDenied", "UnauthorizedOperation", "AccessDeniedException", "403")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`ask` reads facts of the account and changes nothing; `judge` is pure. `purpose`: what it looks at."""

    name: str
    purpose: str
    ask: Callable[[Answers, Wanted], Any]
    judge: Callable[[Wanted, Any], Iterable[Finding]]


CHECKS: Sequence[Check] = (
    Check(name="identity", purpose="credentials, account, clock", ask=identity.ask, judge=identity.judge),
    Check(name="types", purpose="instance types in their zones", ask=offered.ask, judge=offered.judge),
    Check(name="quotas", purpose="service quotas, used and wanted", ask=quota_use.ask, judge=quotas.judge),
    Check(name="images", purpose="machine images", ask=images.ask, judge=images.judge),
    Check(name="reservations", purpose="reservations and capacity blocks", ask=reserved.ask, judge=reserved.judge),
    Check(name="spot", purpose="how likely spot machines are, and their price", ask=spot.ask, judge=spot.judge),
    Check(name="network", purpose="an adopted VPC and its subnets", ask=ground.ask, judge=ground.judge),
    Check(name="buckets", purpose="buckets with data", ask=buckets.ask, judge=buckets.judge),
    Check(name="service-roles", purpose="roles of AWS's services", ask=service_roles.ask, judge=service_roles.judge),
)


def run(checks: Iterable[Check], session: Any, wanted: Wanted) -> tuple[Finding, ...]:
    """The findings of all checks, in the order of the checks. What an account does not answer is a finding as well."""
    answers = Answers(session)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = pool.map(lambda check: tuple(_made(check, answers, wanted)), checks)
        return tuple(finding for findings in made for finding in findings)


def skipped(check: Check) -> Finding:
    """The finding of a check that somebody does not want."""
    return Finding(check=check.name, about="-", verdict=Verdict.SKIPPED, text=f"not looked at: {check.purpose}")


def _made(check: Check, answers: Answers, wanted: Wanted) -> Iterator[Finding]:
    tell = Teller(check=check.name)
    try:
        yield from check.judge(wanted, check.ask(answers, wanted))
    except ClientError as error:
        yield _refused(tell, error)
    except BotoCoreError as error:
        yield tell.fail("account", " ".join(str(error).split()), "see the credentials, the region and the network")


def _refused(tell: Teller, error: ClientError) -> Finding:
    code = str(error.response["Error"].get("Code", ""))
    message = " ".join(str(error.response["Error"].get("Message", "")).split())
    if code in _REFUSED:
        return tell.warn(
            "account",
            f"cannot be looked at: {error.operation_name} is not allowed to these credentials",
            f"allow {error.operation_name}, or leave it out by --skip {tell.check}",
        )
    return tell.fail("account", f"{error.operation_name}: {code}: {message}", "try again, or ask AWS")
