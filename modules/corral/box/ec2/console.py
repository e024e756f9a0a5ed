"""GetConsoleOutput: the console of an instance's machine.

Source: EC2 API, GetConsoleOutput: base64, the last 64 KB, retained after termination. An instance without a machine has
no output.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow

SHOWN_BYTES = 64 << 10
directory: Path | None = None  # machines' consoles, by instance id; set by the supervisor


class ConsoleActions:
    """The console actions of EC2."""

    def get_console_output(self: Any) -> ActionResult:
        """GetConsoleOutput."""
        instance: Any = self.ec2_backend.get_instance(self._get_param("InstanceId"))
        printed, at = read_console(instance.id)
        output = base64.b64encode(printed).decode()
        return ActionResult({"InstanceId": instance.id, "Timestamp": at, "Output": output})


def read_console(instance_id: str) -> tuple[bytes, datetime]:
    """The end of the console output, and the time of its last line."""
    try:
        with ((directory or Path()) / instance_id).open("rb") as console:
            size = console.seek(0, 2)
            console.seek(max(0, size - SHOWN_BYTES))
            return console.read(), datetime.fromtimestamp(Path(console.name).stat().st_mtime, UTC)
    except OSError:
        return b"", utcnow()
