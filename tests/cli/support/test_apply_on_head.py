"""The head's answer to a new configuration, as the sentence that `corral up` prints."""

from __future__ import annotations

import json

import pytest

from corral.cli.support.apply_on_head import apply_summary
from corral.cli.support.remote import CommandResult

LOG = "2026-11-22 00:30:13,892 corral-agent INFO configuration-refused taken back: no\n"


def document(result: str, reason: str = "", pending_removal: tuple[str, ...] = ()) -> str:
    return (
        json.dumps({"result": result, "changed": [], "steps": [], "pending_removal": pending_removal, "reason": reason})
        + "\n"
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (CommandResult(code=0, out=document("applied"), err=LOG), "the head has the new configuration"),
        (
            CommandResult(code=0, out=document("applied", pending_removal=("train-5", "train-6")), err=""),
            "the head has the new configuration; still in use: train-5, train-6",
        ),
        (CommandResult(code=0, out=document("nothing"), err=""), "the head already has this configuration"),
        (
            CommandResult(code=4, out=document("refused", reason="scontrol reconfigure failed"), err=LOG),
            "the head rejected the new configuration: scontrol reconfigure failed",
        ),
        (
            CommandResult(code=1, out="", err="corral-agent ERROR apply: no way to the bucket\n"),
            "the head rejected the new configuration: corral-agent ERROR apply: no way to the bucket",
        ),
        (
            CommandResult(code=4, out=document("refused", reason="\x1b[2J"), err=""),
            r"the head rejected the new configuration: \x1b[2J",
        ),
        (CommandResult(code=1, out="", err="\x1b[2J"), r"the head rejected the new configuration: \x1b[2J"),
        (CommandResult(code=1, out="", err=""), "the head rejected the new configuration: exit code 1"),
        (
            CommandResult(code=2, out="", err="invalid choice: 'apply'"),
            "the head's agent is too old to apply a new configuration: replace the head",
        ),
    ],
)
def test_a_heads_answer_is_one_sentence(answer: CommandResult, expected: str) -> None:
    assert apply_summary(answer) == expected
