"""What stolen credentials reach: every call of `stolen_calls`, by everybody, decided by the box and by PMapper.

What is refused to a thief is done by somebody else, so that nothing is refused merely because it is badly asked: the
same call succeeds, or ends in the error that `late_errors` lists for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from late_errors import LATE_ERRORS, NOT_IN_BOX
from pmapper import allows, impossible_questions, principal, spelled_out
from stolen_account import ADMINISTRATOR, STOLEN, TEAM, Account, stolen_account
from stolen_calls import StolenCall, stolen_calls

import boxes
from answer_shapes import DEPARTURES

pytestmark = [pytest.mark.pulumi, pytest.mark.long]
PAGE = Path(__file__).parents[2] / "docs/security.md"
CALLS = stolen_calls()
# Of the box, for each service: "..., not authorized to perform: s3:GetObject on resource: arn:... because ..."
REFUSED = re.compile(r"not authorized to perform: (?P<action>\S+) on resource: (?P<resource>\S+)")
# Of an action that AWS has and that the box does not do, after it has judged it: a service that it does not know, or an
# action that it cannot judge, comes before.
NOT_DONE = re.compile(r"The box does not know the action \S+: (?!the service |.* in a policy$).*")
Verdicts = Mapping[tuple[str, StolenCall], str | None]  # the refusal; None: allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended. `refusal`: the text, None if it was allowed. `error`: the code of another error, or empty."""

    refusal: str | None = None
    error: str = ""


Outcomes = Mapping[tuple[str, StolenCall], Outcome]


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
def outcomes(account: Account, second_verdicts: Verdicts) -> Outcomes:
    """In the box. The calls change policies, so PMapper has read them before."""
    assert second_verdicts
    return made(account)


def evaluated_by_pmapper(account: Account) -> Verdicts:
    """PMapper's verdicts on the thieves and on those who may; on all roles of corral if only an administrator may."""
    iam = boxes.client(account.box, "iam")
    nodes = {name: principal(iam, role) for name, role in account.roles.items()}
    found: dict[tuple[str, StolenCall], str | None] = {}
    for call in CALLS:
        resource = call.resource.format(**account.names[call.owner])
        policy = resource_policy(account, resource, call.action)
        for who in dict.fromkeys((*STOLEN, *call.controls, *(() if call.may else account.roles.keys() - {TEAM}))):
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


def made(account: Account) -> Outcomes:
    """The calls in the box: first those of thieves, which must fail, then those of who may."""
    questions = [(who, call) for call in CALLS for who in STOLEN if who not in call.may]
    questions += [(who, call) for call in CALLS for who in call.controls]
    return {(who, call): outcome(account, who, call) for who, call in questions}


def outcome(account: Account, who: str, call: StolenCall) -> Outcome:
    try:
        call.run(account.names_for(who, call.owner))
    except ClientError as error:
        code, text = error.response["Error"]["Code"], error.response["Error"]["Message"]
        if REFUSED.search(text):
            return Outcome(refusal=text)
        return Outcome(error=NOT_IN_BOX if NOT_DONE.fullmatch(text) else code)
    return Outcome()


def test_a_thief_is_refused_what_is_not_theirs(outcomes: Outcomes) -> None:
    allowed = [
        (who, call.title) for (who, call), one in outcomes.items() if who not in call.controls and not one.refusal
    ]
    assert allowed == []


def test_each_refused_call_is_allowed_to_somebody(outcomes: Outcomes) -> None:
    refused = [
        (who, call.title, one.refusal) for (who, call), one in outcomes.items() if who in call.controls and one.refusal
    ]
    assert refused == []


def test_each_refused_call_succeeds_for_somebody_or_ends_in_an_error_that_comes_later(outcomes: Outcomes) -> None:
    """A nonsensical call would be "allowed" to everybody."""
    ended = {(call.action, call.resource, call.owner, one.error) for (_, call), one in outcomes.items() if one.error}
    listed = {(one.action, one.resource, owner, one.code) for one in LATE_ERRORS for owner in one.owners}
    assert ended == listed


def test_the_refusal_is_for_the_reason_that_was_meant(outcomes: Outcomes) -> None:
    """A call that is refused for another permission proves nothing about this one."""
    others = []
    for (who, call), one in outcomes.items():
        found = REFUSED.search(one.refusal or "")
        if found is not None and who not in call.controls and found["action"] != call.action:
            others.append((call.title, found["action"]))
    # A launch needs many permissions, and a thief lacks the first of them.
    assert {(title, action) for title, action in others if action != "ec2:RunInstances"} == set()


def test_pmapper_agrees(second_verdicts: Verdicts) -> None:
    wrong = [
        (who, call.title, reason)
        for (who, call), reason in second_verdicts.items()
        if (reason is None) != (who in call.controls)
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
        others = Counter("corral" if call.may - {TEAM} else TEAM if call.may else ADMINISTRATOR for call in refused)
        found = (who, len(refused), others["corral"], others[TEAM], others[ADMINISTRATOR])
        rows.append(f"| {' | '.join(map(str, found))} |")
    return rows


def test_the_page_has_the_counts() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(tuple(f"| {who} | " for who in STOLEN))]
    assert rows == counts()


def test_three_hundred_calls_differ_in_action_or_resource_and_each_is_refused_to_somebody() -> None:
    different = {(call.action, call.resource, call.owner) for call in CALLS if not set(STOLEN) <= call.may}
    assert len(different) >= 300


def test_the_page_has_the_number_of_calls_and_actions() -> None:
    assert f"a table of {len(CALLS)} calls, of {len({call.action for call in CALLS})} actions," in PAGE.read_text()
