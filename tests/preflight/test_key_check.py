"""KMS keys: those that a base kept, and those of buckets and images."""

from __future__ import annotations

from typing import Any

import pytest
from finding_lines import bad, dev, finding_lines

from corral.preflight.key_check import Key, KeyFacts, Reach, evaluate, reach_of

ACCOUNT = "123456789012"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"


def key(**changed: Any) -> Key:
    good = {"id": "k-1", "state": "Enabled", "region": "us-east-1", "reach": Reach.ACCOUNT}
    return Key(**{**good, **changed})


def kept(**changed: Any) -> list[str]:
    return finding_lines(evaluate(dev(), KeyFacts(retained=[key(**changed)])))


def of_bucket(**changed: Any) -> list[str]:
    return finding_lines(evaluate(dev(), KeyFacts(others={"s3://corpus": key(**{"reach": Reach.ROLES, **changed})})))[
        1:
    ]


def test_a_new_base_makes_its_key() -> None:
    assert finding_lines(evaluate(dev(), KeyFacts())) == ["ok base dev: creates its key"]


def test_a_kept_key_that_the_account_may_use_is_ok() -> None:
    assert kept() == ["ok base dev: its retained key k-1 is usable"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"state": "PendingDeletion"}, "fail base dev: its key k-1 is pending deletion"),
        ({"state": "Disabled"}, "fail base dev: its key k-1 is disabled"),
        ({"state": "PendingImport"}, "fail base dev: its key k-1 is in the state PendingImport"),
        ({"state": ""}, "fail base dev: its key k-1 does not exist; what it encrypted cannot be read"),
        ({"state": None}, "warn base dev: its key k-1 cannot be read with these credentials"),
        (
            {"spec": "RSA_2048"},
            "fail base dev: its key k-1 has the spec RSA_2048; AWS encrypts storage only with symmetric keys",
        ),
        (
            {"region": "us-west-2"},
            "fail base dev: its retained key k-1 is in us-west-2, but the base is in us-east-1",
        ),
        (
            {"reach": Reach.NOBODY},
            "fail base dev: the policy of its key k-1 lets no role of the account decrypt",
        ),
    ],
)
def test_defects_of_a_retained_key_are_findings(changed: dict[str, Any], expected: str) -> None:
    assert kept(**changed) == [expected]


def test_a_buckets_key_that_lets_roles_in_is_ok() -> None:
    assert of_bucket() == ["ok s3://corpus: its key k-1 is usable"]


def test_a_buckets_key_that_allows_only_the_account_fails() -> None:
    assert of_bucket(reach=Reach.ACCOUNT) == [
        "warn s3://corpus: the policy of its key k-1 delegates to IAM, but corral's roles are allowed only the base's"
        " key"
    ]


def test_a_buckets_key_that_lets_nobody_in_fails() -> None:
    assert of_bucket(reach=Reach.NOBODY) == [
        "fail s3://corpus: the policy of its key k-1 lets nobody in this account decrypt"
    ]


def test_a_policy_that_may_not_be_read_is_a_warning() -> None:
    (line,) = of_bucket(reach=None)
    assert line == "warn s3://corpus: the policy of its key k-1 cannot be read; it must allow corral's roles"


def test_awss_own_key_needs_no_policy() -> None:
    assert bad(evaluate(dev(), KeyFacts(others={"s3://corpus": key(is_aws=True, reach=None)}))) == []


def statement(principal: Any, action: Any = "kms:*", effect: str = "Allow") -> dict[str, Any]:
    return {"Statement": [{"Effect": effect, "Principal": principal, "Action": action, "Resource": "*"}]}


@pytest.mark.parametrize(
    ("policy", "reach"),
    [
        (statement({"AWS": ROOT}), "account"),
        (statement({"AWS": [ACCOUNT]}, ["kms:Encrypt", "kms:Decrypt"]), "account"),
        (statement({"AWS": ROOT}, "kms:Encrypt"), "nobody"),
        (statement({"AWS": ROOT}, effect="Deny"), "nobody"),
        (statement({"AWS": "arn:aws:iam::999999999999:root"}), "nobody"),
        (statement({"Service": "logs.us-east-1.amazonaws.com"}), "nobody"),
        (statement({"AWS": f"arn:aws:iam::{ACCOUNT}:role/corral/identity-job-1"}), "roles"),
        (statement("*"), "roles"),
    ],
)
def test_who_may_decrypt_under_a_key_policy(policy: dict[str, Any], reach: str) -> None:
    assert reach_of(policy, ACCOUNT) == reach
