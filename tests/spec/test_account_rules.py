"""Accounts and QOS of a spec: what is wrong, and what is planned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from corral.model.accounts import AccountPlan
from corral.plan.accounts import plan_accounts
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.rules import account_rules

MODEL = {
    "queues": [
        {"name": "train", "instance_type": "p4d.24xlarge", "nodes": {"max": 2}, "capacity": [{"market": "on-demand"}]}
    ]
}


def spec(**fields: Any) -> ClusterSpecInput:
    return ClusterSpecInput.model_validate_json(json.dumps({**MODEL, **fields}))


def found(fields: Mapping[str, Any]) -> list[str]:
    return [f"{'.'.join(map(str, one.loc))}: {one.message}" for one in account_rules.check(spec(**fields))]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"accounts": {"Vision": {}}}, "accounts.Vision: 'Vision' is not a valid name"),
        ({"accounts": {"root": {}}}, "accounts.root: 'root' is Slurm's own"),
        ({"accounts": {"a": {"parent": "b"}}}, "accounts.a.parent: 'b' is not an account"),
        ({"accounts": {"a": {"parent": "a"}}}, "accounts.a.parent: 'a' is below 'a'"),
        ({"accounts": {"a": {"qos": ["b"]}}}, "accounts.a.qos.0: 'b' is not a QOS"),
        ({"accounts": {"a": {"qos": ["normal", "normal"]}}}, "accounts.a.qos.1: 'normal' is listed twice"),
        ({"qos": {"a": {"preempts": ["b"]}}}, "qos.a.preempts.0: 'b' is not a QOS"),
        ({"qos": {"a": {"preempts": ["normal"]}}}, "qos.a.preempts.0: 'normal' is not a QOS"),
        ({"qos": {"a": {"preempts": ["a"]}}}, "qos.a.preempts.0: 'a' preempts 'a'"),
        ({"qos": {"a": {"preempts": ["b", "b"]}, "b": {}}}, "qos.a.preempts.1: 'b' is listed twice"),
        ({"qos": {"a": {"grace": "61m"}}}, "qos.a.grace: is longer than 1h"),
        (
            {"qos": {"a": {"preempts": ["b"]}, "b": {}}, "slurm": {"extra": {"preemptmode": "CANCEL"}}},
            "slurm.extra.preemptmode: conflicts with `preempts` of a QOS, which sets it",
        ),
        ({"access": {"users": {"ada": {"account": "a"}}}}, "access.users.ada.account: 'a' is not an account"),
    ],
)
def test_a_wrong_account_is_named(fields: Mapping[str, Any], expected: str) -> None:
    assert found(fields) == [expected]


def test_accounts_above_each_other_are_named_both() -> None:
    assert found({"accounts": {"a": {"parent": "b"}, "b": {"parent": "a"}}}) == [
        "accounts.a.parent: 'b' is below 'a'",
        "accounts.b.parent: 'a' is below 'b'",
    ]


def test_qos_that_preempt_each_other_by_way_of_others_are_named() -> None:
    assert found({"qos": {"a": {"preempts": ["b"]}, "b": {"preempts": ["c"]}, "c": {"preempts": ["a"]}}}) == [
        "qos.a.preempts.0: 'b' preempts 'a'",
        "qos.b.preempts.0: 'c' preempts 'b'",
        "qos.c.preempts.0: 'a' preempts 'c'",
    ]


def test_only_a_qos_that_is_preempted_has_a_grace_time() -> None:
    planned = plan_accounts(spec(qos={"day": {"preempts": ["night"]}, "night": {"grace": "5m"}}))
    assert [(one.name, one.preempts, one.grace_s) for one in planned.qos] == [
        ("day", ("night",), 0),
        ("night", (), 300),
    ]


def test_parents_come_first_and_everybody_has_an_account() -> None:
    planned = plan_accounts(spec(accounts={"a": {"parent": "z"}, "z": {"qos": ["normal"]}}))
    assert planned.accounts == (
        AccountPlan(name="everybody"),
        AccountPlan(name="z", qos=("normal",)),
        AccountPlan(name="a", parent="z"),
    )


def test_accounts_of_queues_need_no_declaration() -> None:
    queue = {**MODEL["queues"][0], "accounts": ["ml"]}
    planned = plan_accounts(spec(queues=[queue]))
    assert (sorted(planned.names), planned.enforced) == (["everybody", "ml"], True)


def test_people_without_accounts_share_one_and_nothing_is_enforced() -> None:
    planned = plan_accounts(spec(access={"users": {"ada": {}}}))
    assert (sorted(planned.names), planned.enforced) == (["everybody"], False)


def test_without_people_and_accounts_slurms_are_left_alone() -> None:
    assert plan_accounts(spec()).accounts == ()
