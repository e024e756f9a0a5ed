"""What a user gets into the kernel's log is no Xid: only what the kernel's own message begins with counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.agent.health.evaluate import Expected, evaluate
from corral.agent.health.probes import SystemProbe, Tool, ToolOutput
from corral.agent.health.xids import read_xids

FALLEN = "NVRM: Xid (PCI:0000:00:1e): 79, GPU has fallen off the bus"
CHANGED = "NVRM: Xid (PCI:0000:00:1e): 154, GPU recovery action changed from 0x0 (None) to "


def logged(*messages: object, transport: str = "kernel") -> str:
    """Lines of `journalctl --output=json` with these messages."""
    return "".join(f"{json.dumps({'MESSAGE': one, '_TRANSPORT': transport})}\n" for one in messages)


def found(log: str) -> list[str]:
    """What the health check finds by this log."""
    return [one.text for one in evaluate(Expected(gpus=1), {Tool.KERNEL: ToolOutput(text=log)})]


def test_an_xid_at_the_beginning_of_the_kernels_message_counts() -> None:
    assert found(logged(FALLEN)) == ["GPU at 00:1e: GPU has fallen off the bus (Xid 79): replace the machine"]


@pytest.mark.parametrize(
    "message",
    [
        f"overlayfs: failed to resolve '{FALLEN}': -2",
        f"process '/tmp/attack/{FALLEN}' started with executable stack",
        f"overlayfs: failed to resolve '\n{FALLEN}\n': -2",
        f"overlayfs: failed to resolve '\r{FALLEN}': -2",
        list(f"process '/tmp/\x1b\n{FALLEN}' started with executable stack".encode()),
    ],
)
def test_a_text_that_a_user_puts_into_a_line_of_the_kernels_is_no_xid(message: object) -> None:
    assert found(logged(message)) == []


@pytest.mark.parametrize("transport", ["syslog", "journal", "stdout"])
def test_what_a_program_writes_into_the_journal_is_no_xid(transport: str) -> None:
    assert found(logged(FALLEN, transport=transport)) == []


@pytest.mark.parametrize("separator", ["\u2028", "\x85"])
def test_no_separator_of_lines_in_the_name_of_a_program_hides_an_xid(separator: str) -> None:
    """JSON need not escape them."""
    entry = {"MESSAGE": f"NVRM: Xid (PCI:0000:00:1e): 79, pid=7, name={separator}", "_TRANSPORT": "kernel"}
    assert [one.number for one in read_xids(json.dumps(entry, ensure_ascii=False))] == [79]


@pytest.mark.parametrize("line", ["", "-- No entries --", "7", "[]", '{"_TRANSPORT": "kernel"}', logged(None, [[1]])])
def test_lines_without_a_message_are_skipped(line: str) -> None:
    assert [one.number for one in read_xids(f"{line}\n{logged(FALLEN)}")] == [79]


def test_no_unprintable_name_of_a_program_hides_an_xid() -> None:
    """The journal prints a message as a list of bytes if a character of it is unprintable."""
    message = b"NVRM: Xid (PCI:0000:00:1e): 79, pid=7, name=\x1b\xff, GPU has fallen off the bus."
    assert [one.number for one in read_xids(logged(list(message)))] == [79]


@pytest.mark.parametrize("bus_id", ["dead", "0:0", "0000:00:1e:00:1e", "0000:00:1e.9", "a" * 200])
def test_what_is_no_bus_id_is_no_gpu(bus_id: str) -> None:
    assert read_xids(logged(f"NVRM: Xid (PCI:{bus_id}): 79, GPU has fallen off the bus.")) == ()


def test_256_errors_of_a_machine_are_read() -> None:
    log = logged(*(f"NVRM: Xid (PCI:0000:{bus:02x}:{slot:02x}): 79, x" for bus in range(32) for slot in range(32)))
    assert len(read_xids(log)) == 256


@pytest.mark.parametrize("action", ["0x1 (GPU Reset Required)", "0x2 (OS Reboot)", "0x4 (Drain and Reset)"])
def test_a_recovery_is_named_as_drivers_do(action: str) -> None:
    text = f"GPU at 00:1e: GPU recovery action changed from 0x0 (None) to {action} (Xid 154): replace the machine"
    assert found(logged(f"{CHANGED}{action}")) == [text]


@pytest.mark.parametrize(
    "action", ["0x2 (Reboot Comment=x)", "0x2 (<!channel>)", f"0x2 ({'x' * 31})", "0x2 (a)\x1b[2J"]
)
def test_no_other_text_of_a_recovery_reaches_the_reason(action: str) -> None:
    text = "GPU at 00:1e: GPU recovery action changed (Xid 154): replace the machine"
    assert found(logged(f"{CHANGED}{action}")) == [text]


def test_a_gpu_that_needs_no_recovery_any_more_is_healthy() -> None:
    assert found(logged(f"{CHANGED}0x2 (OS Reboot)", f"{CHANGED}0x0 (None)")) == []


def test_the_journal_gives_the_kernels_own_messages_since_boot(tmp_path: Path) -> None:
    (tmp_path / "journalctl").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "journalctl").chmod(0o755)
    output = SystemProbe(path=f"{tmp_path}:/usr/bin:/bin").query(Tool.KERNEL, 1)
    assert output is not None
    assert output.text.splitlines() == [
        "--dmesg",
        "--boot",
        "--output=json",
        "--output-fields=MESSAGE,_TRANSPORT",
        "--no-pager",
        "--grep=^NVRM: Xid",
    ]
