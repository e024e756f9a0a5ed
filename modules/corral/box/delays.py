"""The times that AWS needs and an instant box does not: a record for each, and how long it is in a box.

An aws-like box divides each by its speed. docs/fidelity.md has the sources; a test compares both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from corral.box.switches import NEW_BOX, Behaviour, Switches

switches: Switches = NEW_BOX  # of this process; the daemon sets it at its start


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """A time that AWS needs. `text`: what takes it; `aws_s`: seconds on AWS; `instant_s`: seconds in an instant box."""

    text: str
    aws_s: float
    instant_s: float = 0.0


TERMINATION = Delay(text="an instance that ends is stopping or shutting-down", aws_s=60)
CLEANING = Delay(text="one in a reservation or Capacity Block is, and uses its place", aws_s=300)
GPU_TERMINATION = Delay(text="one of the families P4, P5 and P6 is", aws_s=600)
STALE_TAGS = Delay(text="the tagging API lists a deleted resource", aws_s=1200)

DELAYS = (
    TERMINATION,
    CLEANING,
    GPU_TERMINATION,
    STALE_TAGS,
)


def seconds(delay: Delay, held: Switches | None = None) -> float:
    """How long it takes in a box with these switches (default: those of this process)."""
    held = held or switches
    return delay.instant_s if held.behaviour is Behaviour.INSTANT else delay.aws_s / held.speed


def duration(delay: Delay) -> timedelta:
    """How long it takes in the box of this process."""
    return timedelta(seconds=seconds(delay))


def is_aws_like() -> bool:
    """True if the box of this process behaves in time as AWS does."""
    return switches.behaviour is Behaviour.AWS_LIKE


def delay_lines(held: Switches) -> Iterator[str]:
    """A line for each time of an aws-like box; none for an instant one."""
    if held.behaviour is Behaviour.AWS_LIKE:
        for delay in DELAYS:
            yield f"{delay.text} for {seconds(delay, held):g} s"
