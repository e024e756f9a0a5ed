"""The switches of a box: which provider deploys into it, and what its instances are. Pure; standard library alone.

A box keeps them, so that a later start needs no options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum


class Provider(StrEnum):
    """Which `aws` provider the engine runs."""

    STAND_IN = "stand-in"
    OFFICIAL = "official"


class Machines(StrEnum):
    """What instances are."""

    NONE = "none"
    NAMESPACE = "namespace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The value of each switch; the defaults are those of a new box."""

    provider: Provider = Provider.STAND_IN
    machines: Machines = Machines.NAMESPACE

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

    Raises ValueError for an unknown value.
    """
    named = rest.document() | {name: value for name, value in values.items() if value is not None}
    return Switches(provider=Provider(named["provider"]), machines=Machines(named["machines"]))
