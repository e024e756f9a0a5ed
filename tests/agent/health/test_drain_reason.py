"""The drain reason of a sick node: the instance and the worst finding, on one line."""

from __future__ import annotations

from corral.agent.health.drain_reason import instance_in, reason_for
from corral.agent.health.findings import FindingKind, sick, warning

LOST = sick(FindingKind.GPU_MISSING, "7 of 8 GPUs answer")


def test_the_reason_names_the_instance_and_the_fault() -> None:
    assert reason_for("i-0abc", [LOST]) == "corral: i-0abc: 7 of 8 GPUs answer: replace the machine"


def test_further_faults_are_counted() -> None:
    assert reason_for("i-0abc", [LOST, LOST, LOST]).endswith(": replace the machine; 2 more")


def test_a_warning_gives_no_reason() -> None:
    assert reason_for("i-0abc", [warning(FindingKind.CLOCK, "the clock is not synchronised yet")]) == ""


def test_a_long_reason_is_cut() -> None:
    reason = reason_for("i-0123456789abcdef0", [sick(FindingKind.DCGM, "x" * 500), LOST])
    assert (len(reason), reason[-15:]) == (200, "xxxxx...; 1 more"[-15:])


def test_a_reason_stays_one_line_without_quotes() -> None:
    assert reason_for("i-0abc", [sick(FindingKind.DCGM, 'a "b"\n c', "")]) == "corral: i-0abc: a 'b' c"


def test_the_instance_is_read_back() -> None:
    assert instance_in(reason_for("i-0abc", [LOST])) == "i-0abc"


def test_other_reasons_are_about_no_instance() -> None:
    others = ["", "bad disk", "corral: spot, ends at 10:00:00", "corral: no node wants it", "x corral: i-0abc: y"]
    assert [instance_in(reason) for reason in others] == [None] * 5
