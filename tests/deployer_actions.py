"""The deployer's policies: their length as IAM counts it, the actions that they allow, those that tests observe."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from corral.plan.iam.deployer_policy import POLICIES, Grant, Policy, permission

LONGEST = 6_144  # characters of a managed policy, white space not counted. Source: IAM User Guide, "IAM quotas"


def size(policy: Policy) -> int:
    """The policy's length as IAM counts it."""
    return len("".join(json.dumps(policy.document).split()))


def allows(policies: Sequence[Policy], action: str) -> bool:
    """True if a statement allows the action on any resource, under any condition."""
    statements = [one for policy in policies for one in policy.document["Statement"] if one["Effect"] == "Allow"]
    return any(fnmatchcase(action, pattern) for one in statements for pattern in one["Action"])


def denied(policies: Sequence[Policy], actions: Iterable[str]) -> list[str]:
    """The actions that no statement allows."""
    return sorted(action for action in actions if not allows(policies, action))


def seen_actions() -> frozenset[str]:
    """The actions that a cluster in the box must use."""
    return frozenset(action for grant in _grants() for action in grant.actions)


def called_actions(box: Path) -> frozenset[str]:
    """The actions of all calls that the box in this directory has got."""
    calls = map(json.loads, (box / "calls.jsonl").read_text().splitlines())
    return frozenset(permission(call["service"], call["action"]) for call in calls)


def uncalled(actions: Iterable[str], called: Iterable[str]) -> list[str]:
    """The actions, patterns among them, that no call has used."""
    return sorted(one for one in actions if not any(fnmatchcase(action, one) for action in called))


def unseen_actions() -> Mapping[str, str]:
    """The actions that no cluster in the box uses, with the reason for each."""
    return {action: reason for grant in _grants() for action, reason in grant.unseen.items()}


def _grants() -> Iterator[Grant]:
    return (grant for grants in POLICIES.values() for grant in grants)
