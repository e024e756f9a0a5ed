"""The checks by name, and how they are made: what each asks of the account is asked at the same time, then judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from corral.preflight import (
    buckets,
    file_systems,
    ground,
    groups,
    identity,
    images,
    key_facts,
    keys,
    offered,
    permissions,
    quota_use,
    quotas,
    reserved,
    service_roles,
    simulations,
    spot,
)
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Verdict, Wanted

AT_ONCE = 16  # no check waits for another one's silence; AWS's own limits of reads are 20 a second and more
_WHO, _ACCOUNT = "identity", "account"  # a check, and what a finding is about where it got no answer
_REFUSED = ("AccessDenied", "UnauthorizedOperation", "AccessDeniedException", "403")

# What AWS answers to credentials that are wrong or have expired, and to a clock that is off by more than 5 minutes.
_NOT_KNOWN = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`ask` reads facts of the account and changes nothing; `judge` is pure. `purpose`: what it looks at."""

    name: str
    purpose: str
    ask: Callable[[Answers, Wanted], Any]
    judge: Callable[[Wanted, Any], Iterable[Finding]]


CHECKS: Sequence[Check] = (
    Check(name="identity", purpose="credentials, account, clock", ask=identity.ask, judge=identity.judge),
    Check(name="permissions", purpose="what `up` and the head may call", ask=simulations.ask, judge=permissions.judge),
    Check(name="types", purpose="instance types in their zones", ask=offered.ask, judge=offered.judge),
    Check(name="quotas", purpose="service quotas, used and wanted", ask=quota_use.ask, judge=quotas.judge),
    Check(name="images", purpose="machine images", ask=images.ask, judge=images.judge),
    Check(name="reservations", purpose="reservations and capacity blocks", ask=reserved.ask, judge=reserved.judge),
    Check(name="spot", purpose="how likely spot machines are, and their price", ask=spot.ask, judge=spot.judge),
    Check(name="network", purpose="an adopted VPC and its subnets", ask=ground.ask, judge=ground.judge),
    Check(name="groups", purpose="rules of security groups", ask=groups.ask, judge=groups.judge),
    Check(name="file-systems", purpose="kept home and Lustre", ask=file_systems.ask, judge=file_systems.judge),
    Check(name="buckets", purpose="buckets with data", ask=buckets.ask, judge=buckets.judge),
    Check(name="keys", purpose="KMS keys of data and images", ask=key_facts.ask, judge=keys.judge),
    Check(name="service-roles", purpose="roles of AWS's services", ask=service_roles.ask, judge=service_roles.judge),
)


def run(checks: Iterable[Check], session: Any, wanted: Wanted) -> tuple[Finding, ...]:
    """The findings of all checks, in the order of the checks. What an account does not answer is a finding as well."""
    answers = Answers(session)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = tuple(checks)
        made = tuple(pool.map(lambda check: tuple(_made(check, answers, wanted)), asked))
    unanswered = [one for one in made if _is_unanswered(one)]
    if len(unanswered) > len(made) / 2 and unanswered[0][0].check == _WHO:
        return (*unanswered[0], *(skipped(check) for check in asked if check.name != _WHO))
    return tuple(finding for findings in made for finding in findings)


def _is_unanswered(findings: Sequence[Finding]) -> bool:
    """Whether the account said nothing to this check. Where it says nothing to most, they say all the same."""
    return any(one.about == _ACCOUNT and one.verdict is Verdict.FAIL for one in findings)


def skipped(check: Check, where: str = "") -> Finding:
    """The finding of a check that somebody does not want, or that is not made `where` the account is."""
    looked = f"not looked at {where}".rstrip()
    return Finding(check=check.name, about="-", verdict=Verdict.SKIPPED, text=f"{looked}: {check.purpose}")


def _made(check: Check, answers: Answers, wanted: Wanted) -> Iterator[Finding]:
    tell = Teller(check=check.name)
    try:
        yield from check.judge(wanted, check.ask(answers, wanted))
    except ClientError as error:
        yield _refused(tell, error)
    except (BotoCoreError, ResponseParserError) as error:
        yield tell.fail(_ACCOUNT, " ".join(str(error).split()), "see the credentials, the region and the network")


def _refused(tell: Teller, error: ClientError) -> Finding:
    code = str(error.response["Error"].get("Code", ""))
    message = " ".join(str(error.response["Error"].get("Message", "")).split())
    if code in _REFUSED:
        return tell.warn(
            _ACCOUNT,
            f"cannot be looked at: {error.operation_name} is not allowed to these credentials",
            f"allow {error.operation_name}, or leave it out by --skip {tell.check}",
        )
    sign_in = "sign in again (`aws sso login`, AWS_PROFILE), and see that this machine's clock is right"
    fix = sign_in if code in _NOT_KNOWN else "try again, or ask AWS"
    return tell.fail(_ACCOUNT, f"{error.operation_name}: {code}: {message}", fix)
