"""Commands to QEMU's monitor, against a monitor that is a thread."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from corral.box.vpc.qmp import QmpCommand, QmpError, execute

GREETING = {"QMP": {"version": {"qemu": {"major": 10}}, "capabilities": []}}
EVENT = {"event": "DEVICE_DELETED", "data": {"device": "vol-1"}}
DONE: dict[str, Any] = {"return": {}}


class Monitor:
    """A monitor that gives these answers, one list of lines per command, and then closes the connection."""

    def __init__(self, path: Path, answers: Sequence[Sequence[dict[str, Any]]]) -> None:
        self.path = path
        self.commands: list[dict[str, Any]] = []
        self.texts: list[str] = []  # of the files that came with commands
        self._answers = answers
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        caller, _ = self._listener.accept()
        with caller:
            send(caller, GREETING)
            for answer in self._answers:
                line, descriptors, _, _ = socket.recv_fds(caller, 65536, 1)
                if not line:
                    return
                self.commands.append(json.loads(line))
                for descriptor in descriptors:
                    with os.fdopen(descriptor) as file:
                        self.texts.append(file.read())
                for document in answer:
                    send(caller, document)


def send(caller: socket.socket, document: dict[str, Any]) -> None:
    caller.sendall(json.dumps(document).encode() + b"\r\n")


@pytest.fixture
def monitors(tmp_path: Path) -> Iterator[list[Monitor]]:
    started: list[Monitor] = []
    yield started
    for monitor in started:
        monitor.close()


def monitor(monitors: list[Monitor], tmp_path: Path, *answers: Sequence[dict[str, Any]]) -> Monitor:
    monitors.append(Monitor(tmp_path / "monitor", answers))
    return monitors[-1]


def test_capabilities_are_negotiated_before_the_commands(monitors: list[Monitor], tmp_path: Path) -> None:
    used = monitor(monitors, tmp_path, [DONE], [DONE], [DONE])
    execute(used.path, QmpCommand("cont"), QmpCommand("device_del", {"id": "vol-1"}))
    assert used.commands == [
        {"execute": "qmp_capabilities", "arguments": {}},
        {"execute": "cont", "arguments": {}},
        {"execute": "device_del", "arguments": {"id": "vol-1"}},
    ]


def test_events_between_answers_are_skipped(monitors: list[Monitor], tmp_path: Path) -> None:
    used = monitor(monitors, tmp_path, [EVENT, DONE], [EVENT, EVENT, DONE], [DONE])
    execute(used.path, QmpCommand("cont"), QmpCommand("stop"))
    assert [command["execute"] for command in used.commands] == ["qmp_capabilities", "cont", "stop"]


def test_refused_command_is_an_error_with_its_description(monitors: list[Monitor], tmp_path: Path) -> None:
    refusal = {"error": {"class": "GenericError", "desc": "Bus 'slot9' not found"}}
    used = monitor(monitors, tmp_path, [DONE], [refusal])
    with pytest.raises(QmpError, match=r"^QEMU refuses device_add: Bus 'slot9' not found$"):
        execute(used.path, QmpCommand("device_add", {"bus": "slot9"}))


def test_commands_after_a_refused_one_are_not_sent(monitors: list[Monitor], tmp_path: Path) -> None:
    used = monitor(monitors, tmp_path, [DONE], [{"error": {"desc": "no"}}], [DONE])
    with pytest.raises(QmpError):
        execute(used.path, QmpCommand("blockdev-add"), QmpCommand("device_add"))
    used.close()
    assert [command["execute"] for command in used.commands] == ["qmp_capabilities", "blockdev-add"]


def test_descriptor_goes_with_its_command(monitors: list[Monitor], tmp_path: Path) -> None:
    (tmp_path / "volume").write_text("data of the volume")
    used = monitor(monitors, tmp_path, [DONE], [DONE])
    with (tmp_path / "volume").open() as file:
        execute(used.path, QmpCommand("add-fd", {"fdset-id": 1}, file.fileno()))
    assert used.texts == ["data of the volume"]


def test_monitor_that_closes_during_a_command_is_an_error(monitors: list[Monitor], tmp_path: Path) -> None:
    used = monitor(monitors, tmp_path, [DONE], [])
    with pytest.raises(QmpError, match=r"^QEMU ended during cont$"):
        execute(used.path, QmpCommand("cont"))


def test_monitor_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(QmpError, match=r"^QEMU's monitor monitor does not answer: "):
        execute(tmp_path / "monitor", QmpCommand("cont"))
