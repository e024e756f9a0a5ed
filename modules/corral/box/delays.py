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

NEW_RESOURCE = Delay(text="EC2, IAM and KMS do not find what they have just created", aws_s=5)
NEW_TEMPLATE = Delay(text="a launch does not find a new launch template or version", aws_s=5)
NEW_PROFILE = Delay(text="a launch does not find a new instance profile", aws_s=10)
KMS_TAGS = Delay(text="permissions on a key may follow its tags before a change", aws_s=300, instant_s=300)
KMS_ALIASES = Delay(text="permissions on a key may follow its aliases before a change", aws_s=300)
PENDING = Delay(text="an instance that starts is pending", aws_s=15)
BOOT = Delay(text="user data waits for the system to boot", aws_s=60)
NAT_CREATION = Delay(text="a new NAT gateway is pending", aws_s=120)
NAT_DELETION = Delay(text="a NAT gateway is deleting", aws_s=60)
TARGET_CREATION = Delay(text="a new EFS mount target is creating", aws_s=90)
FSX_CREATION = Delay(text="a new Lustre file system is creating", aws_s=360, instant_s=0.3)
DNS_CHANGE = Delay(text="a change of Route 53 is PENDING", aws_s=60)
FSX_RULES = Delay(text="FSx does not see a new rule of a security group", aws_s=30)
FSX_DELETION = Delay(text="a Lustre file system is deleting", aws_s=300, instant_s=0.3)
LINK_CREATION = Delay(text="a new link of Lustre to S3 is creating", aws_s=300, instant_s=0.3)
LINK_IMPORT = Delay(text="and for each million objects that it imports", aws_s=1000)
LINK_DELETION = Delay(text="a link of Lustre to S3 is deleting", aws_s=60, instant_s=0.3)

DELAYS = (
    *(TERMINATION, CLEANING, GPU_TERMINATION, STALE_TAGS),
    *(NEW_RESOURCE, NEW_TEMPLATE, NEW_PROFILE, KMS_TAGS, KMS_ALIASES),
    *(PENDING, BOOT, NAT_CREATION, NAT_DELETION, TARGET_CREATION),
    *(FSX_RULES, FSX_CREATION, FSX_DELETION, LINK_CREATION, LINK_IMPORT, LINK_DELETION),
    DNS_CHANGE,
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
