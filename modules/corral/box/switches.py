"""The switches of a box: its provider, what its instances are, and how it behaves. Standard library alone.

A box keeps them, so that a later start needs no options.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Provider(StrEnum):
    """Which `aws` provider the engine runs."""

    STAND_IN = "stand-in"
    OFFICIAL = "official"


class Machines(StrEnum):
    """What instances are."""

    NONE = "none"
    NAMESPACE = "namespace"
    VM = "vm"


class Behaviour(StrEnum):
    """Whether what AWS does in time happens at once; `delays` lists what differs."""

    INSTANT = "instant"
    AWS_LIKE = "aws-like"


MAX_SPEED = 1000  # one day of AWS in less than 90 s


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The value of each switch; the defaults are those of a new box.

    `speed`: how many times faster than on AWS the times of an aws-like box pass; 1 in an instant one.
    """

    provider: Provider = Provider.STAND_IN
    machines: Machines = Machines.NAMESPACE
    behaviour: Behaviour = Behaviour.INSTANT
    speed: int = 1

    def document(self) -> dict[str, str]:
        """The names of the values, by switch."""
        return {name: str(value) for name, value in asdict(self).items()}

    def options_unlike(self, other: Switches) -> str:
        """The options of `corral box start` whose values the other does not have."""
        theirs = other.document()
        return " ".join(f"--{name} {value}" for name, value in self.document().items() if theirs[name] != value)


NEW_BOX = Switches()


def parse_switches(values: Mapping[str, str | None], rest: Switches) -> Switches:
    """The switches with these values, by switch; the `rest` has those that are missing or None.

    Raises ValueError for an unknown value, and for a speed of a box that is instant.
    """
    named = rest.document() | {name: value for name, value in values.items() if value is not None}
    behaviour = Behaviour(named["behaviour"])
    if behaviour is Behaviour.INSTANT and values.get("speed") is None:
        named["speed"] = "1"
    speed = int(named["speed"])
    if not 1 <= speed <= MAX_SPEED:
        raise ValueError(f"a speed is a whole number from 1 to {MAX_SPEED}, not {speed}")
    if behaviour is Behaviour.INSTANT and speed != 1:
        raise ValueError(f"--speed {speed} needs --behaviour {Behaviour.AWS_LIKE}: an instant box has no times")
    return Switches(
        provider=Provider(named["provider"]), machines=Machines(named["machines"]), behaviour=behaviour, speed=speed
    )


def switches_of(file: Path) -> Switches:
    """Those that a box keeps in this file; those of a new box where it is missing or damaged. Raises OSError."""
    try:
        return parse_switches(json.loads(file.read_text()), NEW_BOX)
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return NEW_BOX
