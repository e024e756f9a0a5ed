"""What Slurm's files take, by release: the keys of slurm.conf and of its lines, and the settings that came and went.

What corral writes for which release is `render`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.slurm_releases import Release, parse_release, release_text
from corral.catalog.tables import read_toml

_DATA = "slurm_conf.toml"


class Place(StrEnum):
    """Where a setting stands."""

    CONF = "slurm.conf"
    NODE = "slurm.conf, a node"
    PARTITION = "slurm.conf, a partition"
    GRES = "gres.conf"
    CGROUP = "cgroup.conf"
    TOPOLOGY = "topology.yaml"
    RESUME = "SLURM_RESUME_FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A key, or one value of a key, and the releases that know it: from `since`, up to but without `until`.

    `since` None: older than 22.05. `until` None: still there. `change` says in a few words what happened.
    """

    key: str
    value: str | None = None
    since: Release | None = None
    until: Release | None = None
    change: str
    source: str
    place: Place

    @property
    def text(self) -> str:
        """As it stands in the file: `SlurmctldParameters=rl_enable`, or the key alone."""
        return self.key if self.value is None else f"{self.key}={self.value}"

    def holds(self, release: Release) -> bool:
        """True if this release knows the setting."""
        return (self.since is None or release >= self.since) and (self.until is None or release < self.until)

    def means(self, key: str, value: str) -> bool:
        """True if a line with this key and value has the setting; Slurm takes both in any case, and `value=5`."""
        if self.key.lower() != key.lower():
            return False
        return self.value is None or self.value.lower() in {word.split("=")[0] for word in value.lower().split(",")}


@cache
def slurm_changes() -> tuple[Setting, ...]:
    """The settings that not every known release has, in the order of the data."""
    return tuple(_setting(row) for row in read_toml(_DATA)["changes"])


@cache
def slurm_keys(place: Place) -> Mapping[str, str]:
    """The keys that some known release takes at this place of slurm.conf: as Slurm writes them, by small letters."""
    changed = [row.key for row in slurm_changes() if row.place is place and row.value is None]
    names = sorted([*read_toml(_DATA)["keys"][place.name.lower()], *changed])
    return MappingProxyType({name.lower(): name for name in names})


def misfits(release: Release, place: Place, key: str, value: str = "") -> tuple[Setting, ...]:
    """The settings in a line with this key and value that this release does not know; no unknown key is among them."""
    return tuple(
        row for row in slurm_changes() if row.place is place and row.means(key, value) and not row.holds(release)
    )


def span_beside(release: Release, misfit: Setting) -> str:
    """For which Slurm a setting is that this release does not know: `Slurm before 25.11 (became NamespaceType)`."""
    if misfit.since is not None and release < misfit.since:
        return f"Slurm from {release_text(misfit.since)}"
    assert misfit.until is not None  # otherwise the release knows it
    return f"Slurm before {release_text(misfit.until)} ({misfit.change})"


def known(release: Release, key: str, values: Iterable[str]) -> tuple[str, ...]:
    """Those of the values of `key` that this release knows."""
    return tuple(value for value in values if is_known(release, f"{key}={value}"))


def is_known(release: Release, text: str) -> bool:
    """True if this release knows the setting, `KEY` or `KEY=VALUE`; one that is not listed is known to all."""
    setting = _by_text().get(text)
    return setting is None or setting.holds(release)


@cache
def _by_text() -> Mapping[str, Setting]:
    return MappingProxyType({setting.text: setting for setting in slurm_changes()})


def _setting(row: Mapping[str, Any]) -> Setting:
    ends = {end: parse_release(row[end]) for end in ("since", "until") if end in row}
    return Setting(**{**row, **ends, "place": Place[row["place"].upper()]})
