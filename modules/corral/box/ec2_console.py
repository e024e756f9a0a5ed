"""What an instance printed: the console of its machine, as GetConsoleOutput gives it.

Source: EC2 API, GetConsoleOutput: base64, the last 64 KB, and kept after the instance has ended. What is no machine has
printed nothing.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow

SHOWN_BYTES = 64 << 10
directory: Path | None = None  # where the consoles of machines are, by the ids of the instances; set once they are


class ConsoleActions:
    """The action on consoles."""

    def get_console_output(self: Any) -> ActionResult:
        """GetConsoleOutput."""
        instance: Any = self.ec2_backend.get_instance(self._get_param("InstanceId"))
        printed, at = read_console(instance.id)
        output = base64.b64encode(printed).decode()
        return ActionResult({"InstanceId": instance.id, "Timestamp": at, "Output": output})


def read_console(instance_id: str) -> tuple[bytes, datetime]:
    """The end of what the instance has printed, and when it last did."""
    try:
        with ((directory or Path()) / instance_id).open("rb") as console:
            size = console.seek(0, 2)
            console.seek(max(0, size - SHOWN_BYTES))
            return console.read(), datetime.fromtimestamp(Path(console.name).stat().st_mtime, UTC)
    except OSError:
        return b"", utcnow()
