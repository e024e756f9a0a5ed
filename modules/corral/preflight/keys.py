"""Whether the KMS keys that data and machines lie behind can be used: a kept base's, data buckets', own images'.

Pure. A base makes its own key, with which all of corral's is encrypted. Other keys come with what a spec names.
Sources: KMS Developer Guide, "Key states of AWS KMS keys", "Key policies"; S3 User Guide, "Using SSE-KMS"; EC2 User
Guide, "Use encryption with EBS-backed AMIs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from corral.inventory.things import KEEP_TAG
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="keys")
_USABLE, _PENDING, _DISABLED = "Enabled", "PendingDeletion", "Disabled"
SYMMETRIC = "SYMMETRIC_DEFAULT"


class Reach(StrEnum):
    """Whom a key's policy lets decrypt: roles by itself, those whom the account's IAM policies let, or neither."""

    ROLES = "roles"
    ACCOUNT = "account"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as KMS describes it. `state`: "" where it does not exist, None where these credentials may not see it.

    `reach`: None where its policy may not be read.
    """

    id: str
    state: str | None
    spec: str = SYMMETRIC
    is_aws: bool = False
    region: str = ""
    reach: Reach | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The keys of the base's earlier lives, and by bucket or image those of things that the spec names."""

    kept: Sequence[Key] = ()
    others: Mapping[str, Key] = field(default_factory=dict)


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """The base's key, then each that something of the user's is encrypted with."""
    about = f"base {wanted.base.name}"
    if not facts.kept:
        yield _TELL.ok(about, "makes a key of its own")
    for key in facts.kept:
        problems = [*_state(about, key), *_base_policy(about, key, wanted.cluster.region)]
        yield from problems or [_TELL.ok(about, f"the key that it keeps, {key.id}, can be used")]
    for about, key in facts.others.items():
        problems = [*_state(about, key), *_own_policy(about, key)]
        yield from problems or [_TELL.ok(about, f"its key {key.id} can be used")]


def _state(about: str, key: Key) -> Iterator[Finding]:
    name = f"its key {key.id}"
    if key.state is None:
        fix = "allow kms:DescribeKey on it, or ask its owner whether it is enabled"
        yield _TELL.warn(about, f"{name} may not be looked at by these credentials", fix)
    elif key.state == "":
        yield _TELL.fail(about, f"{name} does not exist: what it encrypted cannot be read", "another bucket or image")
    elif key.state == _PENDING:
        saved = f"`aws kms cancel-key-deletion --key-id {key.id}`, then `aws kms enable-key --key-id {key.id}`"
        yield _TELL.fail(about, f"{name} waits for its deletion", saved)
    elif key.state == _DISABLED:
        yield _TELL.fail(about, f"{name} is disabled", f"`aws kms enable-key --key-id {key.id}`")
    elif key.state != _USABLE:
        yield _TELL.fail(about, f"{name} is in the state {key.state}", "see the KMS console")
    elif key.spec != SYMMETRIC:
        text = f"{name} is of the kind {key.spec}, and AWS encrypts storage with symmetric keys alone"
        yield _TELL.fail(about, text, "another key")


def _base_policy(about: str, key: Key, region: str) -> Iterator[Finding]:
    if key.region and key.region != region:
        text = f"the key that it keeps, {key.id}, is in {key.region}, and the base is in {region}"
        yield _TELL.fail(about, text, f"take the tag {KEEP_TAG} off it")
    if key.reach is Reach.NOBODY:
        text = f"the policy of its key {key.id} lets the account's own roles decrypt nothing"
        yield _TELL.fail(about, text, "let the account in: Principal arn:aws:iam::ACCOUNT:root, kms:*")


def _own_policy(about: str, key: Key) -> Iterator[Finding]:
    """Corral's roles are only allowed the base's key, so that another's own policy has to let them in."""
    if key.is_aws or not key.state:
        return
    fix = "let the account's roles identity-* use it in the key's policy, or encrypt with another key"
    if key.reach is None:
        yield _TELL.warn(about, f"the policy of its key {key.id} may not be read: it must let corral's roles in", fix)
    elif key.reach is Reach.NOBODY:
        yield _TELL.fail(about, f"the policy of its key {key.id} lets nobody of this account decrypt", fix)
    elif key.reach is Reach.ACCOUNT:
        text = f"the policy of its key {key.id} leaves it to IAM, and corral's roles are allowed the base's key alone"
        yield _TELL.warn(about, text, fix)
