"""The engine's errors as users read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from states import urn

from corral.engine.engine_errors import EngineError, Interrupted
from corral.engine.progress.diagnostics import (
    are_rules_late,
    clean_text,
    error_lines,
    find_denied_calls,
    resource_errors,
    unanswered_urns,
)
from corral.engine.progress.engine_events import Diagnostic, parse_urn
from corral.engine.pulumi.error_report import damage_lines, raise_engine_error, report_damaged_state
from corral.engine.pulumi.pulumi_cli import CliResult

VPC = parse_urn(urn("aws:ec2/vpc:Vpc", "vpc"))
PYTHON = """the program failed:
Traceback (most recent call last):
  File "/x.py", line 1, in <module>
    f()
KeyError: 3
"""
GO = "panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3 +0x1d\n"


def error(text: str, about: bool = True) -> Diagnostic:
    return Diagnostic(severity="error", text=text, resource=VPC if about else None)


def failed(stderr: str = "", code: int = 255, interrupts: int = 0) -> CliResult:
    return CliResult(code=code, stdout="", stderr=stderr, interrupts=interrupts)


def test_python_traceback_is_reduced_to_its_last_line() -> None:
    assert clean_text(PYTHON) == "the program failed:\nKeyError: 3"


def test_a_young_key_that_a_deployer_may_not_delete_yet_has_a_hint_to_wait() -> None:
    denied = (
        "User: arn:aws:sts::1:assumed-role/d/s is not authorized to perform: {} on resource: arn:aws:kms:r:1:key/k"
        " because no identity-based policy allows the {} action"
    )
    texts = [denied.format(action, action) for action in ("kms:ScheduleKeyDeletion", "kms:TagResource")]
    assert [[hint[:21] for hint in found.hints] for text in texts if (found := find_denied_calls([text]))] == [
        ["if the base was creat", "attach the policies t", "then run the same com"],
        ["attach the policies t", "then run the same com"],
    ]


def test_go_traceback_is_omitted() -> None:
    assert clean_text(GO) == "panic: boom"


def test_rpc_prefix_is_omitted() -> None:
    assert clean_text("error: rpc error: code = Unknown desc = no such zone\n") == "no such zone"


def test_same_error_is_reported_once_without_engine_messages() -> None:
    events = [
        error("no such zone"),
        error("no such zone"),
        error("update failed", about=False),
        error("using pulumi-resource-aws from $PATH at /box/bin/pulumi-resource-aws", about=False),
    ]
    assert error_lines(resource_errors(events)) == ["aws:ec2:Vpc vpc: no such zone"]


@pytest.mark.parametrize(
    ("text", "sentence", "code"),
    [
        ("the box at http://127.0.0.1:4 does not answer - corral box start", "the box does not answer", 1),
        ("write /s/dev.json: no space left on device", "the disk is full", 1),
        ("open /s/dev.json: read-only file system", "the state of the stack cannot be written", 1),
        ("incorrect passphrase, please set PULUMI_CONFIG_PASSPHRASE", "the passphrase of the stack's secrets", 2),
        ("no valid credential sources for found", "no AWS credentials were found", 3),
        ("ExpiredToken: The security token included in the request is expired", "the AWS credentials have expired", 3),
        ("groups do not permit Lustre LNET network traffic on port 988", "FSx does not see the rules", 1),
        ("api error InvalidClientTokenId: invalid", "AWS does not accept these credentials", 3),
        (
            "creating S3 Bucket (corral-dev): operation error S3: CreateBucket, https response error StatusCode: 409,"
            " RequestID: 1, HostID: 2, BucketAlreadyExists: ",
            "another account has a bucket of the name",
            1,
        ),
        (
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted: The provided credentials do not have permission",
            "the account has no service-linked role of spot instances",
            3,
        ),
        (
            "BadRequest: Amazon FSx is unable to create Service-Linked-Role to access the S3 bucket.",
            "FSx may not create its role for the S3 bucket",
            3,
        ),
        (
            "operation error EFS: CreateMountTarget, api error AccessDeniedException: User is not authorized to"
            " perform that action on the specified resource",
            "EFS does not say which permission for a mount target these credentials lack",
            3,
        ),
    ],
)
def test_known_cause_has_its_sentence_and_exit_code(text: str, sentence: str, code: int) -> None:
    with pytest.raises(EngineError) as raised:
        raise_engine_error("base dev", failed(), [error(text)])
    assert raised.value.sentence.startswith(f"base dev: {sentence}")
    assert raised.value.code == code


LATE = "CreateFileSystem InvalidNetworkSettings: groups do not permit Lustre LNET network traffic on port 988"


@pytest.mark.parametrize(
    ("events", "late"),
    [
        ([error(LATE), error("update failed", about=False)], True),
        ([error(LATE), error("no such zone")], False),
        ([error("no such zone")], False),
        ([], False),
    ],
    ids=["alone", "with another", "another", "no errors"],
)
def test_rules_that_fsx_does_not_see_yet_are_late(events: list[Diagnostic], late: bool) -> None:
    assert are_rules_late(events) == late


CUT = "failed to load checkpoint: place 1: unexpected end of JSON input"
WHOLE = '{"version": 3, "checkpoint": {"latest": null}}'


def states(root: Path, **contents: str) -> Path:
    """The state of `base` in a file backend below this directory; `contents`: by the suffix after `dev`."""
    directory = root / ".pulumi/stacks/corral-base"
    directory.mkdir(parents=True)
    for ending, content in contents.items():
        (directory / f"dev.{ending.replace('_', '.')}").write_text(content)
    return directory / "dev.json"


def test_damaged_state_is_named_with_its_intact_bak_file(tmp_path: Path) -> None:
    file = states(tmp_path, json=WHOLE[:20], json_bak=WHOLE)
    with pytest.raises(EngineError) as caught, report_damaged_state(f"file://{tmp_path}"):
        raise_engine_error("base dev", failed(f"error: {CUT}"))
    assert str(caught.value).split("\n") == [
        "base dev: the state file of a stack is damaged",
        f"  damaged: {file}",
        f"  to restore the state before the last operation: cp {file}.bak {file}",
        "  then run the same command again to continue",
    ]


def test_newest_backup_is_named_if_the_bak_file_is_damaged(tmp_path: Path) -> None:
    file = states(tmp_path, json="", json_bak="[]")
    backups = tmp_path / ".pulumi/backups/corral-base/dev"
    backups.mkdir(parents=True)
    for number in (1, 2):
        (backups / f"dev.{number}.json").write_text(WHOLE)
    assert damage_lines(f"file://{tmp_path}")[1:] == (
        f"to restore the state before the last operation: cp {backups}/dev.2.json {file}",
    )


def test_missing_intact_backup_is_shown(tmp_path: Path) -> None:
    file = states(tmp_path, json="")
    assert damage_lines(f"file://{tmp_path}") == (
        f"damaged: {file}",
        f"no intact backup: neither {file}.bak nor a file in {tmp_path}/.pulumi/backups",
    )


def test_intact_state_is_not_damaged(tmp_path: Path) -> None:
    states(tmp_path, json=WHOLE, json_bak="")
    assert damage_lines(f"file://{tmp_path}") == ()


def test_a_damaged_state_in_a_bucket_has_older_versions(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught, report_damaged_state("s3://states?region=us-east-1"):
        raise_engine_error("base dev", failed(f"error: {CUT}"))
    assert caught.value.hints[0] == (
        "a bucket that `corral bootstrap` created has older versions of .pulumi/stacks/PROJECT/STACK.json:"
        " s3://states?region=us-east-1"
    )


@pytest.mark.parametrize(
    "text",
    [
        "failed to load checkpoint: unsupported checkpoint version 99",
        "failed to load checkpoint: broken",
        "no such vpc",
    ],
)
def test_other_failures_report_no_damage(text: str, tmp_path: Path) -> None:
    states(tmp_path, json="")
    with pytest.raises(EngineError) as caught, report_damaged_state(f"file://{tmp_path}"):
        raise_engine_error("base dev", failed(f"error: {text}"))
    assert str(caught.value) == f"base dev: {text}"


def test_single_error_is_the_message() -> None:
    with pytest.raises(EngineError) as raised:
        raise_engine_error("base dev", failed(), [error("no such zone")])
    assert str(raised.value) == "base dev: aws:ec2:Vpc vpc: no such zone"


def test_killed_engine_is_reported_with_its_signal() -> None:
    with pytest.raises(EngineError) as raised:
        raise_engine_error("base dev", failed(code=137))
    assert raised.value.sentence == "base dev: the engine was killed (signal 9)"


def test_interrupt_is_reported_as_such() -> None:
    with pytest.raises(Interrupted) as raised:
        raise_engine_error("base dev", failed(interrupts=1), [error("update canceled", about=False)])
    assert (str(raised.value).splitlines()[0], raised.value.code) == ("base dev: interrupted", 130)


def test_stderr_error_is_reported_if_there_are_no_events() -> None:
    with pytest.raises(EngineError) as raised:
        raise_engine_error("base dev", failed("some output\nerror: failed to load checkpoint: broken\n"))
    assert str(raised.value) == "base dev: failed to load checkpoint: broken"


def test_engine_messages_about_an_interrupt_are_omitted() -> None:
    events = [
        error("an unhandled error occurred: the program ended with exit status -15", about=False),
        error("rpc error: code = Canceled desc = context canceled"),
        error("update canceled", about=False),
    ]
    with pytest.raises(Interrupted) as raised:
        raise_engine_error("base dev", failed(interrupts=1), events)
    assert raised.value.hints == ("run the same command again to continue",)


def test_resource_error_is_reported_despite_an_interrupt() -> None:
    with pytest.raises(Interrupted) as raised:
        raise_engine_error("base dev", failed(interrupts=1), [error("VpcLimitExceeded: no more")])
    assert raised.value.hints[0] == "aws:ec2:Vpc vpc: VpcLimitExceeded: no more"


def test_full_disk_is_reported_with_its_directory_and_required_space(tmp_path: Path) -> None:
    text = f"failed to save snapshot: write {tmp_path}/dev.json.18ea.tmp: no space left on device"
    with pytest.raises(EngineError) as raised:
        raise_engine_error("base dev", failed(), [error(text)])
    hints = [hint for hint in raised.value.hints if hint.startswith(f"{tmp_path}: ")]
    assert [hint.partition(" KiB")[2] for hint in hints] == [" free on this disk, but an update needs 16 MiB"]


def test_full_disk_without_a_path_is_reported_with_required_space() -> None:
    with pytest.raises(EngineError) as raised:
        raise_engine_error("base dev", failed("error: no space left on device"))
    assert raised.value.hints[0] == "an update needs 16 MiB on the disk of the state backend"


@pytest.mark.parametrize(
    ("text", "is_lost"),
    [
        ("https response error StatusCode: 0, request send failed, Post: dial tcp: connection refused", True),
        ("read tcp 10.0.0.1:5000->52.94.0.1:443: read: connection reset by peer", True),
        ("rpc error: code = Canceled desc = context canceled", True),
        ("creating subnet-0: the box at http://127.0.0.1:37799 does not answer - corral box start", True),
        ("creating subnet-0: the box at http://127.0.0.1:37799 does not answer to the end: Unable to parse", True),
        ('https response error StatusCode: 0, RequestID: , Post "https://ec2.us-east-1.amazonaws.com/": EOF', True),
        ("https response error StatusCode: 200, deserialization failed, failed to decode response body", True),
        ("api error VpcLimitExceeded: The maximum number of VPCs has been reached", False),
    ],
)
def test_lost_answers_are_detected(text: str, is_lost: bool) -> None:
    assert unanswered_urns([error(text)]) == ({VPC.urn} if is_lost else set())


DEPLOYER = "arn:aws:sts::123456789012:assumed-role/deployer/ann"
SCP = "arn:aws:organizations::987654321098:policy/o-qv5af4abcd/service_control_policy/p-2kgnabcd"
NO_FILES = f"User: {DEPLOYER} is not authorized to perform: fsx:CreateFileSystem on resource: arn:aws:fsx:x"
NO_VPC = f"User: {DEPLOYER} is not authorized to perform: ec2:CreateVpc on resource: arn:aws:ec2:x"


def denied(*texts: str) -> EngineError:
    with pytest.raises(EngineError) as raised:
        raise_engine_error("cluster dev", failed(), [error(text) for text in texts])
    return raised.value


def test_a_denial_of_the_organization_names_calls_policy_and_who_can_change_it() -> None:
    found = denied(
        f"AccessDeniedException: {NO_FILES} with an explicit deny in a service control policy: {SCP}",
        f"UnauthorizedOperation: {NO_VPC} with an explicit deny in a service control policy: {SCP}."
        " Encoded authorization failure message: g4oZPBqZ4Bni8dE5dGjxYTnOZ",
    )
    assert (found.code, str(found).split("\n")) == (
        3,
        [
            "cluster dev: a service control policy of the AWS organization denies ec2:CreateVpc, fsx:CreateFileSystem",
            "  aws:ec2:Vpc vpc: AccessDeniedException: "
            f"{NO_FILES} with an explicit deny in a service control policy: {SCP}",
            f"  aws:ec2:Vpc vpc: UnauthorizedOperation: {NO_VPC} with an explicit deny in a service control policy:"
            f" {SCP}.",
            f"  policy: {SCP}",
            "  ask the administrators of the AWS organization to allow it; nothing in this account can",
            "  then run the same command again to continue",
        ],
    )


def test_a_denial_of_a_boundary_names_whose() -> None:
    found = denied(f"AccessDeniedException: {NO_FILES} because no permissions boundary allows the x action")
    assert (found.sentence, found.hints[1:]) == (
        f"cluster dev: the permissions boundary of {DEPLOYER} does not allow fsx:CreateFileSystem",
        (
            "ask whoever set the boundary to extend it; further policies of the caller do not help",
            "then run the same command again to continue",
        ),
    )


@pytest.mark.parametrize(
    ("end", "hint"),
    [
        (
            "because no identity-based policy allows the x action",
            "attach the policies that `corral bootstrap` creates (docs/bootstrap.md)",
        ),
        (
            "with an explicit deny in an identity-based policy",
            "ask whoever manages these policies to remove the denial",
        ),
    ],
)
def test_a_denial_of_the_callers_own_policies_names_what_to_attach(end: str, hint: str) -> None:
    assert denied(f"AccessDeniedException: {NO_FILES} {end}").hints[1] == hint


def test_an_organization_is_named_before_the_callers_own_policies() -> None:
    own, wide = "because no identity-based policy allows the x", "with an explicit deny in a service control policy"
    assert denied(f"{NO_VPC} {own}", f"{NO_FILES} {wide}").sentence == (
        "cluster dev: a service control policy of the AWS organization denies fsx:CreateFileSystem"
    )


def test_a_denied_service_linked_role_names_who_creates_it() -> None:
    may_not = f"User: {DEPLOYER} is not authorized to perform: iam:CreateServiceLinkedRole on resource: arn:aws:iam:x"
    found = denied(f"AccessDeniedException: {may_not} because no identity-based policy allows the x action")
    assert found.hints[1] == "`corral bootstrap`, run by an administrator, creates the service-linked roles"
