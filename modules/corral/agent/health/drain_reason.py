"""The drain reason of a sick node. It contains the instance id, so that it applies to that instance only.

A replacement machine has the same node name, so a reason without the id would apply to it too.
"""

import re
from collections.abc import Sequence
from typing import Protocol

LENGTH = 200  # characters; `sinfo -R` and `scontrol show node` stay readable
_REASON = re.compile(r"corral: (i-[0-9a-f]+): ")


class DrainCause(Protocol):
    """A finding that may cause a drain, as `health.findings.HealthFinding` is."""

    @property
    def is_sick(self) -> bool:
        """True if no job may run on the machine."""
        ...

    @property
    def text(self) -> str:
        """What is wrong and what to do, as in the drain reason."""
        ...


def reason_for(instance_id: str, findings: Sequence[DrainCause]) -> str:
    """The reason for these findings, `corral: i-0abc: GPU 3: ...; 2 more`, in at most LENGTH characters.

    Empty if no finding makes the machine sick. A new machine fixes each of them, so the node is replaced when idle.
    """
    sick = [finding.text for finding in findings if finding.is_sick]
    if not sick:
        return ""
    more = f"; {len(sick) - 1} more" if len(sick) > 1 else ""
    head = f"corral: {instance_id}: "
    # scontrol prints the reason on one line between other fields.
    text = " ".join(sick[0].replace('"', "'").split())
    limit = LENGTH - len(head) - len(more)
    return f"{head}{text if len(text) <= limit else text[: limit - 3] + '...'}{more}"


def instance_in(reason: str) -> str | None:
    """The id of the sick instance; None for any other reason."""
    found = _REASON.match(reason)
    return found[1] if found else None
