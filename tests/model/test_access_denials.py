"""AWS's texts of denials."""

from __future__ import annotations

import pytest

from corral.model.access_denials import AccessDenial, PolicyType, parse_access_denials, without_encoded_message

ADA = "arn:aws:iam::123456789012:user/ada"
FILES = "arn:aws:fsx:us-east-1:123456789012:file-system/*"
START = f"User: {ADA} is not authorized to perform: fsx:CreateFileSystem on resource: {FILES}"
SCP = "arn:aws:organizations::987654321098:policy/o-qv5af4abcd/service_control_policy/p-2kgnabcd"
ENCODED = " Encoded authorization failure message: g4oZPBqZ4Bni8dE5dGjxYTnOZ_-w"


def denial(policy_type: PolicyType, *, explicit: bool = True, policy: str = "") -> AccessDenial:
    return AccessDenial(
        action="fsx:CreateFileSystem", policy_type=policy_type, caller=ADA, policy=policy, explicit=explicit
    )


@pytest.mark.parametrize(
    ("end", "found"),
    [
        ("with an explicit deny in a service control policy", denial(PolicyType.ORGANIZATION)),
        (f"with an explicit deny in a service control policy: {SCP}", denial(PolicyType.ORGANIZATION, policy=SCP)),
        (
            "because no service control policy allows the fsx:CreateFileSystem action",
            denial(PolicyType.ORGANIZATION, explicit=False),
        ),
        (
            "because no permissions boundary allows the fsx:CreateFileSystem action",
            denial(PolicyType.BOUNDARY, explicit=False),
        ),
        ("with an explicit deny in an identity-based policy", denial(PolicyType.IDENTITY)),
        ("because no session policy allows the x action", denial(PolicyType.SESSION, explicit=False)),
    ],
)
def test_the_policy_that_decided_is_found(end: str, found: AccessDenial) -> None:
    assert parse_access_denials(f"creating scratch: AccessDeniedException: {START} {end}") == (found,)


def test_a_denial_without_its_policy_is_not_read() -> None:
    assert parse_access_denials(f"AccessDenied: {START}") == ()


def test_all_denials_of_a_text_are_found() -> None:
    text = f"{START} with an explicit deny in a service control policy\n{START} because no permissions boundary allows"
    assert [one.policy_type for one in parse_access_denials(text)] == [PolicyType.ORGANIZATION, PolicyType.BOUNDARY]


@pytest.mark.parametrize(
    ("policy_type", "explicit", "sentence"),
    [
        (PolicyType.ORGANIZATION, True, "a service control policy of the AWS organization denies fsx:CreateFileSystem"),
        (PolicyType.BOUNDARY, False, f"the permissions boundary of {ADA} does not allow fsx:CreateFileSystem"),
        (PolicyType.IDENTITY, False, f"the identity-based policies of {ADA} do not allow fsx:CreateFileSystem"),
    ],
)
def test_the_cause_is_a_sentence(policy_type: PolicyType, explicit: bool, sentence: str) -> None:
    assert denial(policy_type, explicit=explicit).cause == sentence


def test_an_encoded_message_is_omitted_where_the_text_has_the_cause() -> None:
    text = f"{START} with an explicit deny in a service control policy."
    assert without_encoded_message(f"{text}{ENCODED}") == text


def test_an_encoded_message_stays_where_nothing_else_has_the_cause() -> None:
    text = f"UnauthorizedOperation: You are not authorized to perform this operation.{ENCODED}"
    assert without_encoded_message(text) == text
