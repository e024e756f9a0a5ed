"""KMS keys: those that a base kept, and those of buckets and images."""

from __future__ import annotations

from typing import Any

import pytest
from judging import bad, dev, said

from corral.preflight.key_facts import reach_of
from corral.preflight.keys import Facts, Key, Reach, judge

ACCOUNT = "123456789012"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"


def key(**changed: Any) -> Key:
    good = {"id": "k-1", "state": "Enabled", "region": "us-east-1", "reach": Reach.ACCOUNT}
    return Key(**{**good, **changed})


def kept(**changed: Any) -> list[str]:
    return said(judge(dev(), Facts(kept=[key(**changed)])))


def of_bucket(**changed: Any) -> list[str]:
    return said(judge(dev(), Facts(others={"s3://corpus": key(**{"reach": Reach.ROLES, **changed})})))[1:]


def test_a_new_base_makes_its_key() -> None:
    assert said(judge(dev(), Facts())) == ["ok base dev: makes a key of its own"]


def test_a_kept_key_that_the_account_may_use_is_ok() -> None:
    assert kept() == ["ok base dev: the key that it keeps, k-1, can be used"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"state": "PendingDeletion"}, "fail base dev: its key k-1 waits for its deletion"),
        ({"state": "Disabled"}, "fail base dev: its key k-1 is disabled"),
        ({"state": "PendingImport"}, "fail base dev: its key k-1 is in the state PendingImport"),
        ({"state": ""}, "fail base dev: its key k-1 does not exist: what it encrypted cannot be read"),
        ({"state": None}, "warn base dev: its key k-1 may not be looked at by these credentials"),
        (
            {"spec": "RSA_2048"},
            "fail base dev: its key k-1 is of the kind RSA_2048, and AWS encrypts storage with symmetric keys alone",
        ),
        (
            {"region": "us-west-2"},
            "fail base dev: the key that it keeps, k-1, is in us-west-2, and the base is in us-east-1",
        ),
        (
            {"reach": Reach.NOBODY},
            "fail base dev: the policy of its key k-1 lets the account's own roles decrypt nothing",
        ),
    ],
)
def test_what_is_wrong_with_a_kept_key_is_told(changed: dict[str, Any], told: str) -> None:
    assert kept(**changed) == [told]


def test_a_buckets_key_that_lets_roles_in_is_ok() -> None:
    assert of_bucket() == ["ok s3://corpus: its key k-1 can be used"]


def test_of_a_buckets_key_the_account_alone_is_not_enough() -> None:
    assert of_bucket(reach=Reach.ACCOUNT) == [
        "warn s3://corpus: the policy of its key k-1 leaves it to IAM, and corral's roles are allowed the base's key"
        " alone"
    ]


def test_a_buckets_key_that_lets_nobody_in_fails() -> None:
    assert of_bucket(reach=Reach.NOBODY) == [
        "fail s3://corpus: the policy of its key k-1 lets nobody of this account decrypt"
    ]


def test_a_policy_that_may_not_be_read_is_a_warning() -> None:
    (line,) = of_bucket(reach=None)
    assert line == "warn s3://corpus: the policy of its key k-1 may not be read: it must let corral's roles in"


def test_awss_own_key_needs_no_policy() -> None:
    assert bad(judge(dev(), Facts(others={"s3://corpus": key(is_aws=True, reach=None)}))) == []


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
        (statement({"AWS": f"arn:aws:iam::{ACCOUNT}:role/identity-job-1"}), "roles"),
        (statement("*"), "roles"),
    ],
)
def test_whom_a_policy_lets_in(policy: dict[str, Any], reach: str) -> None:
    assert reach_of(policy, ACCOUNT) == reach
