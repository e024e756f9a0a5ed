"""What the engine complained about, for a person: grouped by resource, without tracebacks, with the way out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from corral.engine.progress import Said

PYTHON_TRACE = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*", re.MULTILINE)
GO_TRACE = re.compile(r"^goroutine \d+ .*?(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
PREFIXES = re.compile(r"(?:rpc error: code = \w+ desc = |(?:1 error occurred:|error:|warning:)\s+|\* )", re.IGNORECASE)
# What the engine says about its own workings; none of it is the user's to act on.
ENGINE_TALK = re.compile(
    r"^using pulumi-(?:resource|language)-\S+ from \$PATH at "
    r"|^(?:update|preview|refresh|destroy) (?:failed|canceled)$"
    r"|^resource \S+ (?:was created|creation) .*(?:initialization|init) error"
    r"|^(?:refresh|resource) .* was not successful"
    r"|^Attempting to deploy or update resources with \d+ pending operations"
    r"|^\d+ resources? (?:has|have) failed"
)


# What a resource is told when the engine stops: the end of a call, not a fault of the resource.
CUT_SHORT = re.compile(
    r"context canceled|cancell?ed|connection is closing|code = Unavailable|error reading from server|unexpected EOF"
    r"|shutting down|shut down",
    re.IGNORECASE,
)

# What a resource is told when a call went out and no answer came back: what it asked for may have been done.
UNANSWERED = re.compile(
    CUT_SHORT.pattern
    + r"|does not answer|closed before we received|could not connect|connection (?:reset|refused|closed|timed out)"
    r"|request send failed|broken pipe|i/o timeout|timeout exceeded|deadline exceeded|no such host",
    re.IGNORECASE,
)


class Cause(NamedTuple):
    """A reason that many messages share, recognised by their text; its sentence and what helps."""

    pattern: re.Pattern[str]
    sentence: str
    hints: tuple[str, ...] = ()
    code: int = 1


def _cause(pattern: str, sentence: str, *hints: str, code: int = 1) -> Cause:
    return Cause(re.compile(pattern, re.IGNORECASE), sentence, hints, code)


CONTINUES = "then run the same command again: it continues where this one stopped"
BOX_GONE = _cause(
    r"the box at \S+ does not answer|(?:127\.0\.0\.1|localhost):\d+\S*:? .*(?:refused|reset)"
    r"|closed before we received|could not connect to the endpoint",
    "the box does not answer: its daemon has stopped or was killed",
    "`corral box start` starts it; it continues from the state that it saved",
    CONTINUES,
)
DAMAGED = _cause(
    r"failed to load checkpoint: .*(?:end of JSON input|invalid character|cannot unmarshal|\bEOF\b)",
    "the file of a stack's state is damaged",
)
FULL_DISK = _cause(r"no space left on device|disk quota exceeded", "the disk is full", "free some space", CONTINUES)
CAUSES = (
    BOX_GONE,
    FULL_DISK,
    _cause(
        r"read-only file system|permission denied|operation not permitted",
        "the state of the stack cannot be written",
        "see who owns the directory of the state backend, and whether it is mounted read-only",
    ),
    _cause(
        r"incorrect passphrase|passphrase must be set|PULUMI_CONFIG_PASSPHRASE",
        "the passphrase of the stack's secrets is missing or wrong",
        "export PULUMI_CONFIG_PASSPHRASE=...  (or PULUMI_CONFIG_PASSPHRASE_FILE=...)",
        code=2,
    ),
    _cause(
        r"secrets \(code=\w+\): .*KMS: \w+,.*NotFoundException",
        "the key that encrypts the stack's secrets does not exist",
        "see `secretsprovider` in the stack's file; `corral bootstrap` makes a key",
        code=3,
    ),
    _cause(
        r"secrets \(code=\w+\): .*KMS: \w+,.*(?:DisabledException|KMSInvalidState|pending deletion|is disabled)",
        "the key that encrypts the stack's secrets is disabled, or is to be deleted",
        "`aws kms describe-key` says which; nothing of the state is lost as long as the key is there",
        code=3,
    ),
    _cause(
        r"secrets \(code=\w+\): .*KMS: \w+,.*AccessDenied",
        "these credentials may not use the key that encrypts the stack's secrets",
        "`corral bootstrap --print-policy` prints what is needed",
        code=3,
    ),
    _cause(
        r"(?:(?m:^\s*\d+\))|blob \(.*\(code=\w+\):) operation error S3: \w+,.*StatusCode: 403",
        "these credentials may not read and write the states in the bucket",
        "`corral bootstrap --print-policy` prints what is needed",
        CONTINUES,
        code=3,
    ),
    _cause(
        r"no valid credential sources|unable to locate credentials|NoCredentialProviders|get credentials"
        r"|failed to refresh cached credentials|no EC2 IMDS role",
        "no AWS credentials were found",
        "sign in with `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        code=3,
    ),
    _cause(
        r"ExpiredToken|token (?:included in the request )?(?:is|has) expired|RequestExpired",
        "the AWS credentials have expired",
        "sign in again",
        CONTINUES,
        code=3,
    ),
    _cause(
        r"InvalidClientTokenId|UnrecognizedClientException|AuthFailure|SignatureDoesNotMatch",
        "AWS does not accept these credentials",
        code=3,
    ),
    _cause(
        r"plugin .*aws.* not found|no resource plugin 'pulumi-resource-aws|could not find (?:latest )?.*plugin",
        "the `aws` provider plugin of Pulumi is not installed",
        "pulumi plugin install resource aws",
    ),
    DAMAGED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What is wrong with one resource, or with the stack where it has no name."""

    about: str
    text: str


def complaints(said: Iterable[Said]) -> list[Complaint]:
    """Each thing that was said once, cleaned, in order."""
    found: dict[tuple[str, str], Complaint] = {}
    for one in said:
        text = cleaned(one.text)
        subject = one.subject
        about = f"{subject.type} {subject.name}" if subject and not subject.type.startswith("pulumi:pulumi:") else ""
        if text and not ENGINE_TALK.search(text):
            found.setdefault((about, text), Complaint(about=about, text=text))
    return list(found.values())


def faults(found: Iterable[Complaint]) -> list[Complaint]:
    """What is wrong with resources themselves, of what was said while the engine was being stopped."""
    return [one for one in found if one.about and not CUT_SHORT.search(one.text)]


def unanswered(said: Iterable[Said]) -> set[str]:
    """The URNs of the resources of which a call went out and no answer came back."""
    return {one.subject.urn for one in said if one.subject and UNANSWERED.search(one.text)}


def complaint_lines(found: Sequence[Complaint]) -> list[str]:
    """One line per complaint, those of one resource together, further lines of a text indented."""
    by_resource: dict[str, list[str]] = {}
    for one in found:
        by_resource.setdefault(one.about, []).append(one.text)
    lines = []
    for about, texts in by_resource.items():
        for text in texts:
            first, *rest = text.splitlines()
            lines += [f"{about}: {first}" if about else first, *(f"    {line}" for line in rest)]
    return lines


def cleaned(text: str) -> str:
    """The message without tracebacks, protocol prefixes and blank lines."""
    text = GO_TRACE.sub("", PYTHON_TRACE.sub("", text.strip() + "\n"))
    while (shorter := PREFIXES.sub("", text, count=1) if PREFIXES.match(text) else text) != text:
        text = shorter
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def cause(texts: Iterable[str], known: Sequence[Cause] = CAUSES) -> Cause | None:
    """The known reason that these texts show."""
    whole = "\n".join(texts)
    return next((one for one in known if one.pattern.search(whole)), None)


def counts_by_verb(counts: Mapping[str, int]) -> str:
    """`2 to create, 1 to update` for the summary of a preview."""
    verbs = {"create": "to create", "update": "to update", "replace": "to replace", "delete": "to delete"}
    return ", ".join(f"{counts[operation]} {verb}" for operation, verb in verbs.items() if counts.get(operation))
