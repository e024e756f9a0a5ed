"""Commands to a running QEMU, over its monitor's socket.

Source: QEMU's documentation, "QEMU Machine Protocol Specification" and "QEMU QMP Reference Manual".
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any

_TIMEOUT_S = 60  # an emulated machine on a loaded host answers late


class QmpError(ValueError):
    """A command that QEMU refused, or a monitor that does not answer."""


@dataclass(frozen=True, slots=True)
class QmpCommand:
    """A command. `descriptor`: an open file that goes with it."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    descriptor: int | None = None


def execute(monitor: Path, *commands: QmpCommand) -> None:
    """Execute commands in order, in one connection. Raises QmpError for the first one that fails."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(str(monitor))
            with connection.makefile("r", encoding="utf-8") as lines:
                lines.readline()  # the greeting
                for command in (QmpCommand("qmp_capabilities"), *commands):
                    line = json.dumps({"execute": command.name, "arguments": command.arguments}).encode() + b"\n"
                    files = [] if command.descriptor is None else [command.descriptor]
                    socket.send_fds(connection, [line], files)
                    _require_success(command, lines)
    except OSError as error:
        raise QmpError(f"QEMU's monitor {monitor.name} does not answer: {error}") from error


def _require_success(command: QmpCommand, lines: TextIOWrapper) -> None:
    for line in lines:
        answer = json.loads(line)
        if "error" in answer:
            raise QmpError(f"QEMU refuses {command.name}: {answer['error']['desc']}")
        if "return" in answer:
            return
        # Anything else is an event.
    raise QmpError(f"QEMU ended during {command.name}")
