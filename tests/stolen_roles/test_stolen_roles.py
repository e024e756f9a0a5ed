"""What stolen credentials reach: every call of `stolen_calls`, by everybody, decided by the box and by PMapper.

What is refused to a thief is allowed to somebody else, so that nothing is refused merely because it is badly asked.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from pmapper import allows, impossible_questions, principal, spelled_out
from stolen_account import OWNER, STOLEN, Account, stolen_account
from stolen_calls import StolenCall, stolen_calls

import boxes
from answer_shapes import DEPARTURES

pytestmark = [pytest.mark.pulumi, pytest.mark.long]
PAGE = Path(__file__).parents[2] / "docs/security.md"
CALLS = stolen_calls()
# Of the box, for each service: "..., not authorized to perform: s3:GetObject on resource: arn:... because ..."
REFUSED = re.compile(r"not authorized to perform: (?P<action>\S+) on resource: (?P<resource>\S+)")
Verdicts = Mapping[tuple[str, StolenCall], str | None]  # the refusal; None: allowed


@pytest.fixture(autouse=True)
def answers_of_the_model() -> Iterator[None]:
    """Not checked here: these calls are not corral's, and only whether they are refused counts."""
    yield
    DEPARTURES.clear()


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with stolen_account(tmp_path_factory.mktemp("stolen")) as made:
        yield made


@pytest.fixture(scope="module")
def second_verdicts(account: Account) -> Verdicts:
    return evaluated_by_pmapper(account)


@pytest.fixture(scope="module")
def verdicts(account: Account, second_verdicts: Verdicts) -> Verdicts:
    """Of the box. The calls change policies, so PMapper has read them before."""
    assert second_verdicts
    return evaluated(account)


def evaluated_by_pmapper(account: Account) -> Verdicts:
    """PMapper's verdicts on the thieves and on those roles that may."""
    iam = boxes.client(account.box, "iam")
    nodes = {name: principal(iam, role) for name, role in account.roles.items()}
    found: dict[tuple[str, StolenCall], str | None] = {}
    for call in CALLS:
        resource = call.resource.format(**account.names[call.owner])
        policy = resource_policy(account, resource, call.action)
        for who in (*STOLEN, *sorted(call.may - {OWNER, *STOLEN})):
            found[who, call] = None if allows(nodes[who], call.action, resource, call.keys, policy) else "denied"
    return found


def resource_policy(account: Account, resource: str, action: str) -> Mapping[str, Any] | None:
    """Whom the role trusts, or the policy of the base's bucket; None for other resources."""
    name = resource.rpartition(":")[2]
    if action == "sts:AssumeRole":
        role = boxes.client(account.box, "iam").get_role(RoleName=name.rpartition("/")[2])["Role"]
        return spelled_out(role["AssumeRolePolicyDocument"])
    if name.startswith("corral-dev-"):
        text = boxes.client(account.box, "s3").get_bucket_policy(Bucket=name.partition("/")[0])["Policy"]
        return spelled_out(json.loads(text))
    return None


def evaluated(account: Account) -> Verdicts:
    """The box's verdicts: first the thieves' calls that must fail, then those of who may, and is not an administrator
    unless nobody else may.
    """
    questions = [(who, call) for call in CALLS for who in STOLEN if who not in call.may]
    questions += [(who, call) for call in CALLS for who in sorted(call.may - {OWNER}) or (OWNER,)]
    return {(who, call): refusal(account, who, call) for who, call in questions}


def refusal(account: Account, who: str, call: StolenCall) -> str | None:
    try:
        call.run(account.names_for(who, call.owner))
    except ClientError as error:
        return error.response["Error"]["Message"] if REFUSED.search(str(error)) else None
    return None


def test_a_thief_is_refused_what_is_not_theirs(verdicts: Verdicts) -> None:
    allowed = [(who, call.title) for (who, call), reason in verdicts.items() if who not in call.may and reason is None]
    assert allowed == []


def test_each_refused_call_is_allowed_to_somebody(verdicts: Verdicts) -> None:
    refused = [(who, call.title, reason) for (who, call), reason in verdicts.items() if who in call.may and reason]
    assert refused == []


def test_the_refusal_is_for_the_reason_that_was_meant(account: Account, verdicts: Verdicts) -> None:
    """A call that is refused for another permission proves nothing about this one."""
    others = []
    for (who, call), reason in verdicts.items():
        found = REFUSED.search(reason or "")
        if found is not None and who not in call.may and found["action"] != call.action:
            others.append((call.title, found["action"]))
    # A launch needs many permissions, and a thief lacks the first of them.
    assert {(title, action) for title, action in others if action != "ec2:RunInstances"} == set()


def test_pmapper_agrees(second_verdicts: Verdicts) -> None:
    wrong = [
        (who, call.title, reason)
        for (who, call), reason in second_verdicts.items()
        if (reason is None) != (who in call.may)
    ]
    assert wrong == []


def test_each_question_is_one_that_aws_could_ask(account: Account) -> None:
    found = [
        problem
        for call in CALLS
        for problem in impossible_questions(call.action, call.resource.format(**account.names[call.owner]), call.keys)
    ]
    assert sorted(set(found)) == []


def counts() -> list[str]:
    """The rows of the table in docs/security.md: refused calls by role, and who else may make them."""
    rows = []
    for who in STOLEN:
        refused = [call for call in CALLS if who not in call.may]
        others = Counter("a role of corral" if call.may - {OWNER} else "an administrator alone" for call in refused)
        rows.append(f"| {who} | {len(refused)} | {others['a role of corral']} | {others['an administrator alone']} |")
    return rows


def test_the_page_has_the_counts() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(tuple(f"| {who} | " for who in STOLEN))]
    assert rows == counts()


def test_there_are_three_hundred_calls() -> None:
    assert sum(who not in call.may for call in CALLS for who in STOLEN) >= 300
