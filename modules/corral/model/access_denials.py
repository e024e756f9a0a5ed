"""AWS's answer to a call that is not allowed: which policy decided, and who can change it. Pure.

Sources: IAM User Guide, "Troubleshoot access denied error messages"; AWS Security Blog, "Enhanced access denied error
messages with policy ARNs"; EC2's encoded messages: STS API reference, DecodeAuthorizationMessage. Some services answer
without this text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class PolicyType(StrEnum):
    """The types of policies that limit a caller, in AWS's words."""

    ORGANIZATION = "service control policy"
    RESOURCE_CONTROL = "resource control policy"
    BOUNDARY = "permissions boundary"
    SESSION = "session policy"
    ENDPOINT = "VPC endpoint policy"
    RESOURCE = "resource-based policy"
    IDENTITY = "identity-based policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessDenial:
    """A denied action. `caller`, `policy`: their ARNs, or "" where AWS does not name them.

    `explicit`: a statement denies the action; otherwise no statement allows it.
    """

    action: str
    policy_type: PolicyType
    caller: str = ""
    policy: str = ""
    explicit: bool = False

    @property
    def cause(self) -> str:
        """The policy that does not allow the action, as a sentence."""
        whose = _WHOSE[self.policy_type].format(caller=self.caller or "the caller")
        plural = self.policy_type is PolicyType.IDENTITY
        verb = ("deny" if plural else "denies") if self.explicit else f"{'do' if plural else 'does'} not allow"
        return f"{whose} {verb} {self.action}"


_WHOSE = {
    PolicyType.ORGANIZATION: "a service control policy of the AWS organization",
    PolicyType.RESOURCE_CONTROL: "a resource control policy of the AWS organization",
    PolicyType.BOUNDARY: "the permissions boundary of {caller}",
    PolicyType.SESSION: "the policy of the session {caller}",
    PolicyType.ENDPOINT: "the policy of the VPC endpoint",
    PolicyType.RESOURCE: "the policy of the resource",
    PolicyType.IDENTITY: "the identity-based policies of {caller}",
}
_BY_ORGANIZATION = "ask the administrators of the AWS organization to allow it; nothing in this account can"
ADVICE = {
    PolicyType.ORGANIZATION: _BY_ORGANIZATION,
    PolicyType.RESOURCE_CONTROL: _BY_ORGANIZATION,
    PolicyType.BOUNDARY: "ask whoever set the boundary to extend it; further policies of the caller do not help",
    PolicyType.SESSION: "sign in with another role or permission set; further policies of the role do not help",
    PolicyType.ENDPOINT: "ask whoever manages the VPC endpoint, or use another network",
    PolicyType.RESOURCE: "ask the owner of the resource to change its policy",
    PolicyType.IDENTITY: "attach the policies that `corral bootstrap` creates (docs/bootstrap.md)",
}
_TYPES = "|".join(map(re.escape, PolicyType))
_DENIAL = re.compile(
    r"(?:User: (?P<caller>\S+) is )?not authorized to perform: (?P<action>[\w-]+:\w+)(?: on resource: \S+)?"
    rf" (?:because no (?P<missing>{_TYPES}) allows|with an explicit deny in an? (?P<denying>{_TYPES}))"
    r"(?:: (?P<policy>arn:[^\s,]+))?"
)
_ENCODED = re.compile(r"\s*Encoded authorization failure message: [\w-]+={0,2}")


def parse_access_denials(text: str) -> tuple[AccessDenial, ...]:
    """The denials that a text reports, in order."""
    return tuple(
        AccessDenial(
            action=found["action"],
            policy_type=PolicyType(found["missing"] or found["denying"]),
            caller=found["caller"] or "",
            policy=(found["policy"] or "").rstrip("."),
            explicit=found["denying"] is not None,
        )
        for found in _DENIAL.finditer(text)
    )


def without_encoded_message(text: str) -> str:
    """The text without EC2's encoded message, if the text itself reports what that would."""
    return _ENCODED.sub("", text) if parse_access_denials(text) else text
