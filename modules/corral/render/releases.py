"""Which of the Slurm settings that we write depend on the release, and from which release to which.

A setting that is not listed is written for every release from the oldest that a profile names, 22.05. What a setting is
for stands where it is used. Source: SchedMD/slurm, CHANGELOG/slurm-23.02.md and slurm-23.11.md; for PrivateData also
slurm.conf(5) of 22.05 ("without this flag, cloud nodes will not appear").
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from corral.render.lines import Value, slurm_line

Release = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The releases that know a setting: from `since`, up to but without `until`. None: no such end."""

    since: Release | None = None
    until: Release | None = None

    def holds(self, release: Release) -> bool:
        """True if this release knows the setting."""
        return (self.since is None or release >= self.since) and (self.until is None or release < self.until)


SETTINGS: Mapping[str, Span] = {
    "SlurmctldParameters=cloud_reg_addrs": Span(until=(23, 11)),  # since then it is what always happens
    "SlurmctldParameters=rl_enable": Span(since=(23, 2)),
    "CommunicationParameters=NoAddrCache": Span(until=(23, 11)),  # since then addresses travel with each message
    "TreeWidth=65533": Span(until=(23, 11)),  # since then messages to cloud nodes fan out
    "PrivateData=cloud": Span(until=(23, 2)),  # since then cloud nodes show when powered down
}


def parse_release(version: str) -> Release:
    """The release that a version belongs to: `23.11.4` is of 23.11. Raises ValueError for anything else."""
    year, month = version.split(".")[:2]
    return int(year), int(month)


def known(release: Release, key: str, values: Iterable[str]) -> tuple[str, ...]:
    """Those of the values of `key` that this release knows."""
    return tuple(value for value in values if SETTINGS.get(f"{key}={value}", Span()).holds(release))


def line_if_known(release: Release, key: str, *values: str) -> str:
    """The line `key=values` without the values that this release does not know; empty if none is left."""
    kept: Mapping[str, Value] = {key: known(release, key, values)}
    return slurm_line(kept)
