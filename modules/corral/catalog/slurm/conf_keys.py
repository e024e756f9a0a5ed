"""Slurm's configuration keys by release: those of slurm.conf and its lines, and settings added or removed since 22.05.

`render` decides what corral writes for each release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.loader.data_files import read_toml
from corral.catalog.slurm.releases import Release, parse_release, release_text

_DATA = "slurm_conf.toml"


class ConfSection(StrEnum):
    """The file, or the kind of line in it, that a setting belongs to."""

    CONF = "slurm.conf"
    NODE = "slurm.conf, a node"
    PARTITION = "slurm.conf, a partition"
    GRES = "gres.conf"
    CGROUP = "cgroup.conf"
    TOPOLOGY = "topology.yaml"
    RESUME = "SLURM_RESUME_FILE"
    DBD = "slurmdbd.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfSetting:
    """A key, or one value of a key, and the releases that support it: from `since`, up to but excluding `until`.

    `since` None: older than 22.05. `until` None: still supported. `change`: a short description.
    """

    key: str
    value: str | None = None
    since: Release | None = None
    until: Release | None = None
    change: str
    source: str
    section: ConfSection

    @property
    def text(self) -> str:
        """As written in the file: `SlurmctldParameters=rl_enable`, or the key alone."""
        return self.key if self.value is None else f"{self.key}={self.value}"

    def holds(self, release: Release) -> bool:
        """Return whether this release supports the setting."""
        return (self.since is None or release >= self.since) and (self.until is None or release < self.until)

    def means(self, key: str, value: str) -> bool:
        """Return whether a line with this key and value has the setting; Slurm ignores case, and accepts `value=5`."""
        if self.key.lower() != key.lower():
            return False
        return self.value is None or self.value.lower() in {word.split("=")[0] for word in value.lower().split(",")}


@cache
def slurm_changes() -> tuple[ConfSetting, ...]:
    """Return the settings that not every known release supports, in the order of the data."""
    return tuple(_setting(row) for row in read_toml(_DATA)["changes"])


@cache
def slurm_keys(section: ConfSection) -> Mapping[str, str]:
    """Return the keys that some known release accepts in this section: Slurm's spelling by lowercase key."""
    changed = [row.key for row in slurm_changes() if row.section is section and row.value is None]
    names = sorted([*read_toml(_DATA)["keys"][section.name.lower()], *changed])
    return MappingProxyType({name.lower(): name for name in names})


def unsupported_settings(release: Release, section: ConfSection, key: str, value: str = "") -> tuple[ConfSetting, ...]:
    """Return the settings in this line that this release does not support; unknown keys are not included."""
    return tuple(
        row for row in slurm_changes() if row.section is section and row.means(key, value) and not row.holds(release)
    )


def supported_releases(release: Release, misfit: ConfSetting) -> str:
    """Return the releases that support a setting, as text: `Slurm before 25.11 (became NamespaceType)`."""
    if misfit.since is not None and release < misfit.since:
        return f"Slurm from {release_text(misfit.since)}"
    assert misfit.until is not None  # otherwise the release supports it
    return f"Slurm before {release_text(misfit.until)} ({misfit.change})"


def known(release: Release, key: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return the values of `key` that this release supports."""
    return tuple(value for value in values if is_known(release, f"{key}={value}"))


def is_known(release: Release, text: str) -> bool:
    """Return whether this release supports the setting, `KEY` or `KEY=VALUE`; every release supports unlisted ones."""
    setting = _by_text().get(text)
    return setting is None or setting.holds(release)


@cache
def _by_text() -> Mapping[str, ConfSetting]:
    return MappingProxyType({setting.text: setting for setting in slurm_changes()})


def _setting(row: Mapping[str, Any]) -> ConfSetting:
    ends = {end: parse_release(row[end]) for end in ("since", "until") if end in row}
    return ConfSetting(**{**row, **ends, "section": ConfSection[row["section"].upper()]})
