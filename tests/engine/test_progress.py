"""The engine's events as records, what they add up to, and the lines that people read."""

from __future__ import annotations

import io
import os
import pty
import re
import select
from typing import Any

import pytest
from states import step, urn

from corral.engine.printers import PlainPrinter, counts_text, end_text, printer
from corral.engine.progress import Deed, Said, Subject, progress_event, subject
from corral.engine.tally import Line, Tally

VPC = "aws:ec2/vpc:Vpc"


def told(*events: dict[str, Any], is_plan: bool = False) -> tuple[Tally, list[Line]]:
    """The tally of the events, one a second, and the lines that they gave."""
    tally, lines = Tally(is_plan=is_plan), []
    for second, event in enumerate(events):
        record = progress_event(event)
        line = tally.add(record, float(second)) if record else None
        lines += [line] if line else []
    return tally, lines


def test_a_subject_is_named_as_the_engine_itself_shows_it() -> None:
    nested = f"urn:pulumi:dev::corral-base::corral:aws:Network${VPC}::network-vpc"
    assert subject(nested) == Subject(urn=nested, type="aws:ec2:Vpc", name="network-vpc")


def test_a_creation_is_one_line_with_its_seconds() -> None:
    _, lines = told(step("resourcePreEvent", "create", VPC, "vpc"), step("resOutputsEvent", "create", VPC, "vpc"))
    out = io.StringIO()
    PlainPrinter(out).finished(lines[0])
    assert out.getvalue() == "  created   aws:ec2:Vpc  vpc  1.0s\n"


def test_a_replacement_counts_once() -> None:
    tally, lines = told(
        step("resourcePreEvent", "create-replacement", VPC, "vpc"),
        step("resOutputsEvent", "create-replacement", VPC, "vpc"),
        step("resourcePreEvent", "replace", VPC, "vpc"),
        step("resOutputsEvent", "replace", VPC, "vpc"),
        step("resourcePreEvent", "delete-replaced", VPC, "vpc"),
        step("resOutputsEvent", "delete-replaced", VPC, "vpc"),
    )
    assert tally.counts[Deed.REPLACED] == 1
    assert [line.deed for line in lines] == [Deed.REPLACED, Deed.DELETED]


def test_what_was_lost_outside_is_news_and_no_change_of_ours() -> None:
    tally, lines = told(
        step("resourcePreEvent", "refresh", VPC, "vpc"), step("resOutputsEvent", "refresh", VPC, "vpc", new=None)
    )
    assert [line.deed for line in lines] == [Deed.GONE]
    assert tally.changes == 0


def test_a_retained_deletion_is_kept() -> None:
    old = {"retainOnDelete": True}
    tally, _ = told(
        step("resourcePreEvent", "delete", VPC, "vpc", old=old), step("resOutputsEvent", "delete", VPC, "vpc", old=old)
    )
    assert counts_text(tally) == "1 kept"


def test_a_plan_is_told_in_what_would_be_done() -> None:
    tally, lines = told(
        step("resourcePreEvent", "create", VPC, "vpc", planning=True),
        step("resOutputsEvent", "create", VPC, "vpc", planning=True),
        is_plan=True,
    )
    assert (lines, counts_text(tally)) == ([], "1 to create")
    assert [one.subject.name for one in tally.planned] == ["vpc"]


def test_the_outputs_of_the_stack_are_remembered() -> None:
    new = {"outputs": {"vpc": "vpc-1"}}
    tally, _ = told(step("resOutputsEvent", "create", "pulumi:pulumi:Stack", "dev", new=new))
    assert tally.outputs == {"vpc": "vpc-1"}


def test_a_failure_is_a_line_that_says_so() -> None:
    _, lines = told(step("resourcePreEvent", "create", VPC, "vpc"), step("resOpFailedEvent", "create", VPC, "vpc"))
    assert [(line.failed, line.took_s) for line in lines] == [(True, 1.0)]


def test_a_creation_that_failed_is_remembered_as_a_state_would_hold_it() -> None:
    new = {"parent": urn("corral:base:Network", "net"), "inputs": {"cidrBlock": "10.0.0.0/16"}, "protect": False}
    tally, _ = told(
        step("resOpFailedEvent", "create", VPC, "vpc", new=new), step("resOpFailedEvent", "update", VPC, "other")
    )
    assert tally.not_created == [
        {"urn": urn(VPC, "vpc"), "type": VPC, "custom": True, "parent": new["parent"], "inputs": new["inputs"]}
    ]


def test_only_warnings_and_errors_are_kept_of_what_is_said() -> None:
    event = {"diagnosticEvent": {"severity": "error", "message": "no", "urn": urn(VPC, "vpc")}}
    assert progress_event(event) == Said(severity="error", text="no", subject=subject(urn(VPC, "vpc")))
    assert progress_event({"diagnosticEvent": {"severity": "debug", "message": "x"}}) is None


def test_progress_without_colour_has_no_bold_and_no_dim_either() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as out:
        shower = printer(out, {"NO_COLOR": "1", "TERM": "xterm"})
        failed = step("resOpFailedEvent", "create", VPC, "vpc")
        tally, lines = told(step("resourcePreEvent", "create", VPC, "vpc"), failed)
        shower.begin("base dev", "bringing up", tally)
        shower.finished(lines[0])
        shower.end("FAILED")
        seen = ""
        while "base dev: FAILED" not in seen and select.select([master], [], [], 5)[0]:
            seen += os.read(master, 1 << 16).decode()
    os.close(master)
    assert ("creating FAILED" in seen, re.findall(r"\x1b\[[0-9;]*m", seen)) == (True, [])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("done", "done: nothing to do in 1 s"),
        ("FAILED", "FAILED: nothing was done in 1 s"),
        ("interrupted", "interrupted: nothing was done in 1 s"),
    ],
)
def test_an_end_without_a_deed_says_so(result: str, text: str) -> None:
    assert end_text(result, Tally(), 1.2) == text
