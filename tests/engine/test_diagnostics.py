"""What the engine complains about, as a person reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from states import urn

from corral.engine.complaint import damage, damage_named, raise_complaint
from corral.engine.diagnostics import cleaned, complaint_lines, complaints, unanswered
from corral.engine.errors import EngineError, Interrupted
from corral.engine.process import Answer
from corral.engine.progress import Said, subject

VPC = subject(urn("aws:ec2/vpc:Vpc", "vpc"))
PYTHON = """the program failed:
Traceback (most recent call last):
  File "/x.py", line 1, in <module>
    f()
KeyError: 3
"""
GO = "panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:3 +0x1d\n"


def error(text: str, about: bool = True) -> Said:
    return Said(severity="error", text=text, subject=VPC if about else None)


def failed(stderr: str = "", code: int = 255, interrupts: int = 0) -> Answer:
    return Answer(code=code, stdout="", stderr=stderr, interrupts=interrupts)


def test_a_python_traceback_is_left_out_and_its_reason_stays() -> None:
    assert cleaned(PYTHON) == "the program failed:\nKeyError: 3"


def test_a_go_traceback_is_left_out() -> None:
    assert cleaned(GO) == "panic: boom"


def test_the_protocols_prefix_is_left_out() -> None:
    assert cleaned("error: rpc error: code = Unknown desc = no such zone\n") == "no such zone"


def test_the_same_complaint_is_told_once_and_engine_talk_not_at_all() -> None:
    said = [
        error("no such zone"),
        error("no such zone"),
        error("update failed", about=False),
        error("using pulumi-resource-aws from $PATH at /box/bin/pulumi-resource-aws", about=False),
    ]
    assert complaint_lines(complaints(said)) == ["aws:ec2:Vpc vpc: no such zone"]


@pytest.mark.parametrize(
    ("text", "sentence", "code"),
    [
        ("the box at http://127.0.0.1:4 does not answer - corral box start", "the box does not answer", 1),
        ("write /s/dev.json: no space left on device", "the disk is full", 1),
        ("open /s/dev.json: read-only file system", "the state of the stack cannot be written", 1),
        ("incorrect passphrase, please set PULUMI_CONFIG_PASSPHRASE", "the passphrase of the stack's secrets", 2),
        ("no valid credential sources for found", "no AWS credentials were found", 3),
        ("ExpiredToken: The security token included in the request is expired", "the AWS credentials have expired", 3),
        ("api error InvalidClientTokenId: invalid", "AWS does not accept these credentials", 3),
    ],
)
def test_a_known_cause_has_its_sentence_and_exit_code(text: str, sentence: str, code: int) -> None:
    with pytest.raises(EngineError) as raised:
        raise_complaint("base dev", failed(), [error(text)])
    assert raised.value.sentence.startswith(f"base dev: {sentence}")
    assert raised.value.code == code


CUT = "failed to load checkpoint: place 1: unexpected end of JSON input"
WHOLE = '{"version": 3, "checkpoint": {"latest": null}}'


def states(root: Path, **contents: str) -> Path:
    """The state of `base` in a backend of files below this directory; `contents`: by what follows `dev`."""
    place = root / ".pulumi/stacks/corral-base"
    place.mkdir(parents=True)
    for ending, content in contents.items():
        (place / f"dev.{ending.replace('_', '.')}").write_text(content)
    return place / "dev.json"


def test_a_damaged_state_is_named_with_the_whole_one_beside_it(tmp_path: Path) -> None:
    file = states(tmp_path, json=WHOLE[:20], json_bak=WHOLE)
    with pytest.raises(EngineError) as caught, damage_named(f"file://{tmp_path}"):
        raise_complaint("base dev", failed(f"error: {CUT}"))
    assert str(caught.value).split("\n") == [
        "base dev: the file of a stack's state is damaged",
        f"  damaged: {file}",
        f"  whole, but for the last thing that was done: cp {file}.bak {file}",
        "  then run the same command again: it continues where this one stopped",
    ]


def test_where_the_one_beside_it_is_damaged_too_the_newest_backup_is_named(tmp_path: Path) -> None:
    file = states(tmp_path, json="", json_bak="[]")
    backups = tmp_path / ".pulumi/backups/corral-base/dev"
    backups.mkdir(parents=True)
    for number in (1, 2):
        (backups / f"dev.{number}.json").write_text(WHOLE)
    assert damage(f"file://{tmp_path}")[1:] == (
        f"whole, but for the last thing that was done: cp {backups}/dev.2.json {file}",
    )


def test_where_nothing_is_whole_that_is_said(tmp_path: Path) -> None:
    file = states(tmp_path, json="")
    assert damage(f"file://{tmp_path}") == (
        f"damaged: {file}",
        f"neither {file}.bak nor a file in {tmp_path}/.pulumi/backups is whole",
    )


def test_a_whole_state_is_not_damaged(tmp_path: Path) -> None:
    states(tmp_path, json=WHOLE, json_bak="")
    assert damage(f"file://{tmp_path}") == ()


def test_a_damaged_state_in_a_bucket_has_older_versions(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught, damage_named("s3://states?region=us-east-1"):
        raise_complaint("base dev", failed(f"error: {CUT}"))
    assert caught.value.hints[0] == (
        "a bucket that `corral bootstrap` made keeps its older versions: .pulumi/stacks/PROJECT/STACK.json in"
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
def test_another_failure_names_no_damage(text: str, tmp_path: Path) -> None:
    states(tmp_path, json="")
    with pytest.raises(EngineError) as caught, damage_named(f"file://{tmp_path}"):
        raise_complaint("base dev", failed(f"error: {text}"))
    assert str(caught.value) == f"base dev: {text}"


def test_a_single_complaint_is_the_sentence() -> None:
    with pytest.raises(EngineError) as raised:
        raise_complaint("base dev", failed(), [error("no such zone")])
    assert str(raised.value) == "base dev: aws:ec2:Vpc vpc: no such zone"


def test_an_engine_that_was_killed_is_said_so() -> None:
    with pytest.raises(EngineError) as raised:
        raise_complaint("base dev", failed(code=137))
    assert raised.value.sentence == "base dev: the engine was killed (signal 9)"


def test_an_interrupt_is_told_as_one() -> None:
    with pytest.raises(Interrupted) as raised:
        raise_complaint("base dev", failed(interrupts=1), [error("update canceled", about=False)])
    assert (str(raised.value).splitlines()[0], raised.value.code) == ("base dev: interrupted", 130)


def test_without_a_word_in_order_what_stands_behind_error_is_told() -> None:
    with pytest.raises(EngineError) as raised:
        raise_complaint("base dev", failed("some output\nerror: failed to load checkpoint: broken\n"))
    assert str(raised.value) == "base dev: failed to load checkpoint: broken"


def test_what_the_engine_says_of_an_interrupt_is_not_told() -> None:
    said = [
        error("an unhandled error occurred: the program ended with exit status -15", about=False),
        error("rpc error: code = Canceled desc = context canceled"),
        error("update canceled", about=False),
    ]
    with pytest.raises(Interrupted) as raised:
        raise_complaint("base dev", failed(interrupts=1), said)
    assert raised.value.hints == ("run the same command again: it continues where this one stopped",)


def test_a_fault_of_a_resource_is_told_in_spite_of_an_interrupt() -> None:
    with pytest.raises(Interrupted) as raised:
        raise_complaint("base dev", failed(interrupts=1), [error("VpcLimitExceeded: no more")])
    assert raised.value.hints[0] == "aws:ec2:Vpc vpc: VpcLimitExceeded: no more"


def test_a_full_disk_is_told_with_its_directory_and_what_is_needed(tmp_path: Path) -> None:
    text = f"failed to save snapshot: write {tmp_path}/dev.json.18ea.tmp: no space left on device"
    with pytest.raises(EngineError) as raised:
        raise_complaint("base dev", failed(), [error(text)])
    told = [hint for hint in raised.value.hints if hint.startswith(f"{tmp_path}: ")]
    assert [hint.partition(" KiB")[2] for hint in told] == [" are free on this disk, an update needs 16 MiB"]


def test_a_full_disk_that_is_not_named_is_told_with_what_is_needed() -> None:
    with pytest.raises(EngineError) as raised:
        raise_complaint("base dev", failed("error: no space left on device"))
    assert raised.value.hints[0] == "an update needs 16 MiB where the state of the stack is kept"


@pytest.mark.parametrize(
    ("text", "is_lost"),
    [
        ("https response error StatusCode: 0, request send failed, Post: dial tcp: connection refused", True),
        ("read tcp 10.0.0.1:5000->52.94.0.1:443: read: connection reset by peer", True),
        ("rpc error: code = Canceled desc = context canceled", True),
        ("creating subnet-0: the box at http://127.0.0.1:37799 does not answer - corral box start", True),
        ("api error VpcLimitExceeded: The maximum number of VPCs has been reached", False),
    ],
)
def test_whether_the_answer_to_a_call_was_lost(text: str, is_lost: bool) -> None:
    assert unanswered([error(text)]) == ({VPC.urn} if is_lost else set())
