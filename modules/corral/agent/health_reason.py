"""The reason that a sick node is drained with. It carries the instance's id, so that it dies with the instance.

A node's name lives on when its machine is replaced; a reason without the id would hold the next machine guilty.
"""

import re
from collections.abc import Sequence
from typing import Protocol

LENGTH = 200  # characters; `sinfo -R` and `scontrol show node` stay readable
_REASON = re.compile(r"corral: (i-[0-9a-f]+): ")


class Said(Protocol):
    """What a reason is made of; `health.findings.Finding` is one."""

    @property
    def is_sick(self) -> bool:
        """Whether no job may run there."""
        ...

    @property
    def text(self) -> str:
        """The sentence."""
        ...


def reason_for(instance_id: str, findings: Sequence[Said]) -> str:
    """`corral: i-0abc: GPU 3: ...; 2 more`, of what makes the machine sick, in at most LENGTH characters.

    Every such finding is one that a new machine mends: the node is replaced when it is idle. Empty where nothing is.
    """
    sick = [finding.text for finding in findings if finding.is_sick]
    if not sick:
        return ""
    more = f"; {len(sick) - 1} more" if len(sick) > 1 else ""
    head = f"corral: {instance_id}: "
    # scontrol takes the reason as one word of a line, and shows it between other fields.
    said = " ".join(sick[0].replace('"', "'").split())
    room = LENGTH - len(head) - len(more)
    return f"{head}{said if len(said) <= room else said[: room - 3] + '...'}{more}"


def instance_in(reason: str) -> str | None:
    """The instance that was found sick; None where the reason is no finding about a machine."""
    found = _REASON.match(reason)
    return found[1] if found else None
