"""The table of checks, and the function that runs them: all fetch at the same time, then each evaluates its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from corral.model.access_denials import ADVICE, PolicyType, parse_access_denials
from corral.preflight import (
    bucket_check,
    caller_identity,
    container_image_check,
    existing_vpc_check,
    existing_vpc_facts,
    file_system_check,
    image_check,
    key_check,
    permission_check,
    quota_check,
    reservation_check,
    security_groups,
    service_role_check,
    spot_check,
    type_availability,
)
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest, PreflightVerdict

AT_ONCE = 16  # no check waits for another one's timeout; AWS allows 20 reads a second and more
_WHO, _ACCOUNT = "identity", "account"  # the check of credentials; the subject of a finding about a failed request
_SUBJECTS = (_ACCOUNT, "region", "credentials")  # nothing answers if one of these fails
_DENIED = ("AccessDenied", "UnauthorizedOperation", "AccessDeniedException", "403")

# AWS's error codes for invalid or expired credentials, and for a clock that is off by more than 5 minutes.
_BAD_CREDENTIALS = frozenset(
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
    """A preflight check. `fetch` reads facts of the account and changes nothing; `evaluate` is pure."""

    name: str
    purpose: str
    fetch: Callable[[AwsQueryCache, PreflightRequest], Any]
    evaluate: Callable[[PreflightRequest, Any], Iterable[PreflightFinding]]


CHECKS: Sequence[Check] = (
    Check(
        name="identity",
        purpose="credentials, account, clock",
        fetch=caller_identity.fetch,
        evaluate=caller_identity.evaluate,
    ),
    Check(
        name="permissions",
        purpose="permissions of the caller and of the head",
        fetch=permission_check.fetch,
        evaluate=permission_check.evaluate,
    ),
    Check(
        name="types",
        purpose="instance types in their zones",
        fetch=type_availability.fetch,
        evaluate=type_availability.evaluate,
    ),
    Check(
        name="quotas", purpose="service quotas and their use", fetch=quota_check.fetch, evaluate=quota_check.evaluate
    ),
    Check(name="images", purpose="machine images", fetch=image_check.fetch, evaluate=image_check.evaluate),
    Check(
        name="containers",
        purpose="container images of jobs",
        fetch=container_image_check.fetch,
        evaluate=container_image_check.evaluate,
    ),
    Check(
        name="reservations",
        purpose="reservations and capacity blocks",
        fetch=reservation_check.fetch,
        evaluate=reservation_check.evaluate,
    ),
    Check(
        name="spot",
        purpose="spot capacity and prices",
        fetch=spot_check.fetch,
        evaluate=spot_check.evaluate,
    ),
    Check(
        name="network",
        purpose="adopted VPC and subnets",
        fetch=existing_vpc_facts.fetch,
        evaluate=existing_vpc_check.evaluate,
    ),
    Check(
        name="groups",
        purpose="security group rules",
        fetch=security_groups.fetch,
        evaluate=security_groups.evaluate,
    ),
    Check(
        name="file-systems",
        purpose="retained home and Lustre",
        fetch=file_system_check.fetch,
        evaluate=file_system_check.evaluate,
    ),
    Check(name="buckets", purpose="data buckets", fetch=bucket_check.fetch, evaluate=bucket_check.evaluate),
    Check(name="keys", purpose="KMS keys", fetch=key_check.fetch, evaluate=key_check.evaluate),
    Check(
        name="service-roles",
        purpose="service-linked roles",
        fetch=service_role_check.fetch,
        evaluate=service_role_check.evaluate,
    ),
)


def run(checks: Iterable[Check], session: Any, request: PreflightRequest) -> tuple[PreflightFinding, ...]:
    """The findings of all checks, in their order. A failed request becomes a finding too."""
    aws = AwsQueryCache(session)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        selected = tuple(checks)
        made = tuple(pool.map(lambda check: tuple(_findings(check, aws, request)), selected))
    unanswered = [one for one in made if _is_unanswered(one)]
    if len(unanswered) > len(made) / 2 and unanswered[0][0].check == _WHO:
        return (*unanswered[0], *(skipped(check) for check in selected if check.name != _WHO))
    return tuple(finding for findings in made for finding in findings)


def _is_unanswered(findings: Sequence[PreflightFinding]) -> bool:
    """Whether no request of this check succeeded. If most checks have none, they share one cause."""
    return any(one.about in _SUBJECTS and one.verdict is PreflightVerdict.FAIL for one in findings)


def skipped(check: Check, where: str = "") -> PreflightFinding:
    """The finding of a check that the user skips, or that does not run `where` the account is."""
    looked = f"not checked {where}".rstrip()
    return PreflightFinding(
        check=check.name, about="-", verdict=PreflightVerdict.SKIPPED, message=f"{looked}: {check.purpose}"
    )


def _findings(check: Check, aws: AwsQueryCache, request: PreflightRequest) -> Iterator[PreflightFinding]:
    builder = FindingBuilder(check=check.name)
    try:
        yield from check.evaluate(request, check.fetch(aws, request))
    except ClientError as error:
        yield _client_error(builder, error)
    except (BotoCoreError, ResponseParserError) as error:
        yield builder.fail(_ACCOUNT, " ".join(str(error).split()), "check the credentials, the region and the network")


def _client_error(builder: FindingBuilder, error: ClientError) -> PreflightFinding:
    code = str(error.response["Error"].get("Code", ""))
    message = " ".join(str(error.response["Error"].get("Message", "")).split())
    limits = [one for one in parse_access_denials(message) if one.policy_type is not PolicyType.IDENTITY]
    if limits:
        fix = f"{ADVICE[limits[0].policy_type]}, or add --skip {builder.check}"
        return builder.warn(_ACCOUNT, f"cannot be checked: {limits[0].cause}", fix)
    if code in _DENIED:
        return builder.warn(
            _ACCOUNT,
            f"cannot be checked: these credentials may not call {error.operation_name}",
            f"allow {error.operation_name}, or add --skip {builder.check}",
        )
    sign_in = "sign in again (`aws sso login`, AWS_PROFILE), and check this machine's clock"
    fix = sign_in if code in _BAD_CREDENTIALS else "try again, or contact AWS"
    return builder.fail(_ACCOUNT, f"{error.operation_name}: {code}: {message}", fix)
