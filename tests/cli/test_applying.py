"""What a head says of a new configuration, as the sentence that `corral up` prints."""

from __future__ import annotations

import json

import pytest

from corral.cli.applying import told_of
from corral.cli.on_head import Answer

LOG = "2026-11-22 00:30:13,892 corral-agent INFO configuration-refused taken back: no\n"


def document(result: str, why: str = "", leaving: tuple[str, ...] = ()) -> str:
    return json.dumps({"result": result, "changed": [], "steps": [], "leaving": leaving, "why": why}) + "\n"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(code=0, out=document("applied"), err=LOG), "the head has the new configuration"),
        (
            Answer(code=0, out=document("applied", leaving=("train-5", "train-6")), err=""),
            "the head has the new configuration; still in use: train-5, train-6",
        ),
        (Answer(code=0, out=document("nothing"), err=""), "the head has this configuration already"),
        (
            Answer(code=4, out=document("refused", why="scontrol reconfigure failed"), err=LOG),
            "the head did not take the new configuration: scontrol reconfigure failed",
        ),
        (
            Answer(code=1, out="", err="corral-agent ERROR apply: no way to the bucket\n"),
            "the head did not take the new configuration: corral-agent ERROR apply: no way to the bucket",
        ),
        (Answer(code=1, out="", err=""), "the head did not take the new configuration: exit code 1"),
        (
            Answer(code=2, out="", err="invalid choice: 'apply'"),
            "the head's agent is older than this command and cannot apply a new configuration: replace the head",
        ),
    ],
)
def test_a_heads_answer_is_one_sentence(answer: Answer, told: str) -> None:
    assert told_of(answer) == told
