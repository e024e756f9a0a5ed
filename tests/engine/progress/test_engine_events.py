"""The engine's events as records, counters and lines."""

from __future__ import annotations

import io
import os
import pty
import re
import select
from typing import Any

import pytest
from states import step, urn

from corral.engine.progress import progress_display
from corral.engine.progress.engine_events import Diagnostic, Operation, StackResource, parse_event, parse_urn
from corral.engine.progress.progress_counter import FinishedStep, ProgressCounter
from corral.engine.progress.progress_display import PlainDisplay, choose_display, counts_text, end_text

VPC = "aws:ec2/vpc:Vpc"


def counter_and_lines(*events: dict[str, Any], is_plan: bool = False) -> tuple[ProgressCounter, list[FinishedStep]]:
    """The counter after these events, one a second, and the lines shown."""
    tally, lines = ProgressCounter(is_preview=is_plan), []
    for second, event in enumerate(events):
        record = parse_event(event)
        line = tally.add(record, float(second)) if record else None
        lines += [line] if line else []
    return tally, lines


def test_resource_is_named_as_pulumi_shows_it() -> None:
    nested = f"urn:pulumi:dev::corral-base::corral:aws:Network${VPC}::network-vpc"
    assert parse_urn(nested) == StackResource(urn=nested, type="aws:ec2:Vpc", name="network-vpc")


def test_a_creation_is_one_line_with_its_seconds() -> None:
    _, lines = counter_and_lines(
        step("resourcePreEvent", "create", VPC, "vpc"), step("resOutputsEvent", "create", VPC, "vpc")
    )
    out = io.StringIO()
    PlainDisplay(out).finished(lines[0])
    assert out.getvalue() == "  created   aws:ec2:Vpc  vpc  1.0s\n"


def test_a_file_names_what_is_waited_for_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 59.0, 61.0, 61.0, 100.0])
    monkeypatch.setattr(progress_display.time, "monotonic", lambda: next(clock))
    tally, _ = counter_and_lines(step("resourcePreEvent", "delete", "aws:fsx/lustreFileSystem:Lustre", "scratch"))
    out = io.StringIO()
    display = PlainDisplay(out)
    display.begin("cluster dev", "deleting", tally)  # at 0 s
    for _ in range(3):  # at 59 s, 61 s, 100 s
        display.tick()
    assert out.getvalue().splitlines() == ["cluster dev: deleting", "  deleting  aws:fsx:Lustre  scratch  61 s"]


def test_a_replacement_counts_once() -> None:
    tally, lines = counter_and_lines(
        step("resourcePreEvent", "create-replacement", VPC, "vpc"),
        step("resOutputsEvent", "create-replacement", VPC, "vpc"),
        step("resourcePreEvent", "replace", VPC, "vpc"),
        step("resOutputsEvent", "replace", VPC, "vpc"),
        step("resourcePreEvent", "delete-replaced", VPC, "vpc"),
        step("resOutputsEvent", "delete-replaced", VPC, "vpc"),
    )
    assert tally.counts[Operation.REPLACED] == 1
    assert [line.operation for line in lines] == [Operation.REPLACED, Operation.DELETED]


def test_resource_deleted_outside_is_shown_and_not_counted_as_a_change() -> None:
    tally, lines = counter_and_lines(
        step("resourcePreEvent", "refresh", VPC, "vpc"), step("resOutputsEvent", "refresh", VPC, "vpc", new=None)
    )
    assert [line.operation for line in lines] == [Operation.MISSING]
    assert tally.changes == 0


def test_retained_deletion_is_counted_as_retained() -> None:
    old = {"retainOnDelete": True}
    tally, _ = counter_and_lines(
        step("resourcePreEvent", "delete", VPC, "vpc", old=old), step("resOutputsEvent", "delete", VPC, "vpc", old=old)
    )
    assert counts_text(tally) == "1 retained"


def test_preview_is_counted_as_planned_operations() -> None:
    tally, lines = counter_and_lines(
        step("resourcePreEvent", "create", VPC, "vpc", planning=True),
        step("resOutputsEvent", "create", VPC, "vpc", planning=True),
        is_plan=True,
    )
    assert (lines, counts_text(tally)) == ([], "1 to create")
    assert [one.resource.name for one in tally.planned] == ["vpc"]


def test_the_outputs_of_the_stack_are_remembered() -> None:
    new = {"outputs": {"vpc": "vpc-1"}}
    tally, _ = counter_and_lines(step("resOutputsEvent", "create", "pulumi:pulumi:Stack", "dev", new=new))
    assert tally.outputs == {"vpc": "vpc-1"}


def test_failure_is_one_line() -> None:
    _, lines = counter_and_lines(
        step("resourcePreEvent", "create", VPC, "vpc"), step("resOpFailedEvent", "create", VPC, "vpc")
    )
    assert [(line.failed, line.took_s) for line in lines] == [(True, 1.0)]


def test_failed_creation_is_recorded_as_in_a_state() -> None:
    new = {"parent": urn("corral:base:Network", "net"), "inputs": {"cidrBlock": "10.0.0.0/16"}, "protect": False}
    tally, _ = counter_and_lines(
        step("resOpFailedEvent", "create", VPC, "vpc", new=new), step("resOpFailedEvent", "update", VPC, "other")
    )
    assert tally.not_created == [
        {"urn": urn(VPC, "vpc"), "type": VPC, "custom": True, "parent": new["parent"], "inputs": new["inputs"]}
    ]


def test_only_warnings_and_errors_are_kept_of_messages() -> None:
    event = {"diagnosticEvent": {"severity": "error", "message": "no", "urn": urn(VPC, "vpc")}}
    assert parse_event(event) == Diagnostic(severity="error", text="no", resource=parse_urn(urn(VPC, "vpc")))
    assert parse_event({"diagnosticEvent": {"severity": "debug", "message": "x"}}) is None


def test_progress_without_colour_has_no_styles() -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as out:
        shower = choose_display(out, {"NO_COLOR": "1", "TERM": "xterm"})
        failed = step("resOpFailedEvent", "create", VPC, "vpc")
        tally, lines = counter_and_lines(step("resourcePreEvent", "create", VPC, "vpc"), failed)
        shower.begin("base dev", "deploying", tally)
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
        ("FAILED", "FAILED: nothing done in 1 s"),
        ("interrupted", "interrupted: nothing done in 1 s"),
    ],
)
def test_end_without_operations_is_shown(result: str, text: str) -> None:
    assert end_text(result, ProgressCounter(), 1.2) == text
