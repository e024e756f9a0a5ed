"""Turns the engine's diagnostics into readable errors: grouped by resource, without tracebacks, with hints. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from corral.engine.engine_errors import CANNOT_START
from corral.engine.progress.engine_events import Diagnostic
from corral.model.access_denials import ADVICE, AccessDenial, PolicyType, parse_access_denials, without_encoded_message

PYTHON_TRACE = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*", re.MULTILINE)
GO_TRACE = re.compile(r"^goroutine \d+ .*?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
PREFIXES = re.compile(r"(?:rpc error: code = \w+ desc = |(?:1 error occurred:|error:|warning:)\s+|\* )", re.IGNORECASE)
# Messages about the engine's own work, which the user cannot act on.
ENGINE_NOISE = re.compile(
    r"^using pulumi-(?:resource|language)-\S+ from \$PATH at "
    r"|^(?:update|preview|refresh|destroy) (?:failed|canceled)$"
    r"|^resource \S+ (?:was created|creation) .*(?:initialization|init) error"
    r"|^(?:refresh|resource) .* was not successful"
    r"|^Attempting to deploy or update resources with \d+ pending operations"
    r"|^\d+ resources? (?:has|have) failed"
)


# Errors of calls that end because the engine stops; they say nothing about the resource.
CANCELLED = re.compile(
    r"context canceled|cancell?ed|connection is closing|code = Unavailable|error reading from server|unexpected EOF"
    r"|shutting down|shut down",
    re.IGNORECASE,
)

# Errors of calls without a complete response: the request may have been carried out.
UNANSWERED = re.compile(
    CANCELLED.pattern
    + r"|does not answer|closed before we received|could not connect|connection (?:reset|refused|closed|timed out)"
    r"|request send failed|broken pipe|i/o timeout|timeout exceeded|deadline exceeded|no such host|: EOF\b"
    r"|deserialization failed",
    re.IGNORECASE,
)


class KnownError(NamedTuple):
    """A common cause, recognised by the text of messages; its sentence and hints."""

    pattern: re.Pattern[str]
    sentence: str
    hints: tuple[str, ...] = ()
    code: int = 1


def _known_error(pattern: str, sentence: str, *hints: str, code: int = 1) -> KnownError:
    return KnownError(re.compile(pattern, re.IGNORECASE), sentence, hints, code)


CONTINUES = "then run the same command again to continue"
BOX_DOWN = _known_error(
    r"the box at \S+ does not answer|(?:127\.0\.0\.1|localhost):\d+\S*:? .*(?:refused|reset)"
    r"|closed before we received|could not connect to the endpoint",
    "the box does not answer: its daemon has stopped or was killed",
    "run `corral box start`; the box resumes from its saved state",
    CONTINUES,
)
DAMAGED = _known_error(
    r"failed to load checkpoint: .*(?:end of JSON input|invalid character|cannot unmarshal|\bEOF\b)",
    "the state file of a stack is damaged",
)
FULL_DISK = _known_error(
    r"no space left on device|disk quota exceeded", "the disk is full", "free some space", CONTINUES
)
LINKED_ROLES = "`corral bootstrap`, run by an administrator, creates the service-linked roles"
# Source: KMS Developer Guide, "ABAC for AWS KMS": permissions follow a key's tags within five minutes.
YOUNG_KEY = "if the base was created less than five minutes ago, wait: KMS does not count the tags of its keys yet"
DENIED = "ask whoever manages these policies to remove the denial"
LATE_RULES = _known_error(
    r"do not permit Lustre LNET network traffic|Insufficient security group permissions to create an EFA-enabled",
    "FSx does not see the rules of the file system's security group yet",
    "wait a minute",
    CONTINUES,
)
KNOWN_ERRORS = (
    BOX_DOWN,
    FULL_DISK,
    _known_error(
        r"read-only file system|permission denied|operation not permitted",
        "the state of the stack cannot be written",
        "check the owner of the state backend's directory, and whether it is mounted read-only",
    ),
    _known_error(
        r"incorrect passphrase|passphrase must be set|PULUMI_CONFIG_PASSPHRASE",
        "the passphrase of the stack's secrets is missing or wrong",
        "export PULUMI_CONFIG_PASSPHRASE=...  (or PULUMI_CONFIG_PASSPHRASE_FILE=...)",
        code=2,
    ),
    _known_error(
        r"secrets \(code=\w+\): .*KMS: \w+,.*NotFoundException",
        "the key that encrypts the stack's secrets does not exist",
        "check `secretsprovider` in the stack file; `corral bootstrap` creates a key",
        code=3,
    ),
    _known_error(
        r"secrets \(code=\w+\): .*KMS: \w+,.*(?:DisabledException|KMSInvalidState|pending deletion|is disabled)",
        "the key that encrypts the stack's secrets is disabled or scheduled for deletion",
        "`aws kms describe-key` shows which; the state is intact as long as the key exists",
        code=3,
    ),
    _known_error(
        r"secrets \(code=\w+\): .*KMS: \w+,.*AccessDenied",
        "these credentials may not use the key that encrypts the stack's secrets",
        "if `corral bootstrap` created the key less than five minutes ago, wait and repeat this command",
        "`corral bootstrap --print-policy` prints the permissions",
        code=3,
    ),
    _known_error(
        r"(?:(?m:^\s*\d+\))|blob \(.*\(code=\w+\):) operation error S3: \w+,.*StatusCode: 403",
        "these credentials may not read and write the states in the bucket",
        "`corral bootstrap --print-policy` prints the permissions",
        CONTINUES,
        code=3,
    ),
    _known_error(
        r"\bBucketAlreadyExists\b",
        "another account has a bucket of the name that the base's bucket would have",
        "names of buckets are global: give the base another name, that of its file stacks/base/Pulumi.NAME.yaml",
    ),
    _known_error(
        r"no valid credential sources|unable to locate credentials|NoCredentialProviders|get credentials"
        r"|failed to refresh cached credentials|no EC2 IMDS role",
        "no AWS credentials were found",
        "sign in with `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        code=3,
    ),
    _known_error(
        r"ExpiredToken|token (?:included in the request )?(?:is|has) expired|RequestExpired",
        "the AWS credentials have expired",
        "sign in again",
        CONTINUES,
        code=3,
    ),
    _known_error(
        r"ServiceLinkedRoleCreationNotPermitted|to create the service-linked role for EC2 Spot",
        "the account has no service-linked role of spot instances, and these credentials may not create it",
        LINKED_ROLES,
        CONTINUES,
        code=CANNOT_START,
    ),
    _known_error(
        r"unable to create Service-Linked-Role to access the S3 bucket",
        "FSx may not create its role for the S3 bucket with these credentials",
        "allow iam:CreateServiceLinkedRole, iam:AttachRolePolicy and iam:PutRolePolicy on the roles of"
        " FSx's service for S3 (s3.data-source.lustre.fsx), as the policies of `corral bootstrap` do",
        CONTINUES,
        code=CANNOT_START,
    ),
    _known_error(
        r"CreateMountTarget\b.*User is not authorized to perform that action on the specified resource",
        "EFS does not say which permission for a mount target these credentials lack",
        f"if the account has no service-linked role of EFS: {LINKED_ROLES}",
        "otherwise allow ec2:CreateNetworkInterface, ec2:DescribeSubnets and ec2:DescribeNetworkInterfaces",
        "`corral check ENV --only service-roles --only permissions` shows which",
        CONTINUES,
        code=CANNOT_START,
    ),
    _known_error(
        r"InvalidClientTokenId|UnrecognizedClientException|AuthFailure|SignatureDoesNotMatch",
        "AWS does not accept these credentials, or the account has not enabled the region",
        "`corral check ENV --only identity` shows which",
        code=3,
    ),
    LATE_RULES,
    _known_error(
        r"plugin .*aws.* not found|no resource plugin 'pulumi-resource-aws|could not find (?:latest )?.*plugin",
        "the `aws` provider plugin of Pulumi is not installed",
        "pulumi plugin install resource aws",
    ),
    DAMAGED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceError:
    """An error of one resource; of the stack if `about` is empty."""

    about: str
    text: str


def resource_errors(diagnostics: Iterable[Diagnostic]) -> list[ResourceError]:
    """The errors without duplicates, cleaned, in order."""
    found: dict[tuple[str, str], ResourceError] = {}
    for one in diagnostics:
        text = clean_text(one.text)
        subject = one.resource
        about = f"{subject.type} {subject.name}" if subject and not subject.type.startswith("pulumi:pulumi:") else ""
        if text and not ENGINE_NOISE.search(text):
            found.setdefault((about, text), ResourceError(about=about, text=text))
    return list(found.values())


def without_cancellations(found: Iterable[ResourceError]) -> list[ResourceError]:
    """The errors of resources, without those that only say that the engine was stopped."""
    return [one for one in found if one.about and not CANCELLED.search(one.text)]


def are_rules_late(diagnostics: Iterable[Diagnostic]) -> bool:
    """True if the only errors of resources are that FSx does not see new rules of a security group yet."""
    found = without_cancellations(resource_errors(one for one in diagnostics if one.severity == "error"))
    return bool(found) and all(LATE_RULES.pattern.search(one.text) for one in found)


def unanswered_urns(diagnostics: Iterable[Diagnostic]) -> set[str]:
    """The URNs of resources with a call that got no response."""
    return {one.resource.urn for one in diagnostics if one.resource and UNANSWERED.search(one.text)}


def error_lines(found: Sequence[ResourceError]) -> list[str]:
    """The errors as lines, grouped by resource; continuation lines are indented."""
    by_resource: dict[str, list[str]] = {}
    for one in found:
        by_resource.setdefault(one.about, []).append(one.text)
    lines = []
    for about, texts in by_resource.items():
        for text in texts:
            first, *rest = text.splitlines()
            lines += [f"{about}: {first}" if about else first, *(f"    {line}" for line in rest)]
    return lines


def clean_text(text: str) -> str:
    """The message without tracebacks, protocol prefixes, blank lines, and EC2's encoded message if it adds nothing."""
    text = without_encoded_message(GO_TRACE.sub("", PYTHON_TRACE.sub("", text.strip() + "\n")))
    while (shorter := PREFIXES.sub("", text, count=1) if PREFIXES.match(text) else text) != text:
        text = shorter
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def find_known_error(texts: Iterable[str], known: Sequence[KnownError] = KNOWN_ERRORS) -> KnownError | None:
    """The known error that these texts match; None if there is none."""
    whole = "\n".join(texts)
    return next((one for one in known if one.pattern.search(whole)), None)


class DeniedCalls(NamedTuple):
    """What a policy does not allow: a sentence about it, and who can change it."""

    sentence: str
    hints: tuple[str, ...]
    code: int = CANNOT_START


def find_denied_calls(texts: Iterable[str]) -> DeniedCalls | None:
    """The calls that AWS denied by one type of policy, the widest first; None if no text reports the policy."""
    found = parse_access_denials("\n".join(texts))
    kind = next((one for one in PolicyType if any(each.policy_type is one for each in found)), None)
    if kind is None:
        return None
    denials = [one for one in found if one.policy_type is kind]
    actions = sorted({one.action for one in denials})
    merged = AccessDenial(
        action=", ".join(actions), policy_type=kind, caller=denials[0].caller, explicit=denials[0].explicit
    )
    policies = tuple(f"policy: {one}" for one in sorted({one.policy for one in denials if one.policy}))
    advice = DENIED if kind is PolicyType.IDENTITY and merged.explicit else ADVICE[kind]
    if kind is PolicyType.IDENTITY and actions == ["iam:CreateServiceLinkedRole"]:
        advice = LINKED_ROLES
    young = (YOUNG_KEY,) if kind is PolicyType.IDENTITY and "kms:ScheduleKeyDeletion" in actions else ()
    return DeniedCalls(merged.cause, (*policies, *young, advice, CONTINUES))
