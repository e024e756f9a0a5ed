"""What depends on Slurm's release: one table of keys and values with the releases that know them, and who says so.

A setting that is not listed is written for every release from the oldest, 22.05. What a setting that corral writes is
for stands where it is used; one that it does not write is listed because a user may, or because it was considered.
Sources are files of the repository SchedMD/slurm and the release in them under which the change stands.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

Release = tuple[int, int]

RELEASES: tuple[Release, ...] = ((22, 5), (23, 2), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11), (26, 5))
OLDEST, NEWEST = RELEASES[0], RELEASES[-1]


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
    place: Place = Place.CONF

    @property
    def text(self) -> str:
        """As it stands in the file: `SlurmctldParameters=rl_enable`, or the key alone."""
        return self.key if self.value is None else f"{self.key}={self.value}"

    def holds(self, release: Release) -> bool:
        """True if this release knows the setting."""
        return (self.since is None or release >= self.since) and (self.until is None or release < self.until)


_23_02, _23_11, _24_05 = "CHANGELOG/slurm-23.02.md", "CHANGELOG/slurm-23.11.md", "CHANGELOG/slurm-24.05.md"
_24_11, _25_05, _25_11 = "CHANGELOG/slurm-24.11.md", "CHANGELOG/slurm-25.05.md", "CHANGELOG/slurm-25.11.md"
_26_05 = "CHANGELOG/slurm-26.05.md"

SETTINGS: tuple[Setting, ...] = (
    # Addresses and messages
    Setting(
        key="SlurmctldParameters",
        value="cloud_reg_addrs",
        until=(23, 11),
        change="removed: what always happens",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    Setting(
        key="CommunicationParameters",
        value="NoAddrCache",
        until=(23, 11),
        change="removed: addresses travel with each message",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    Setting(
        key="TreeWidth",
        value="65533",
        until=(23, 11),
        change="not needed: messages to cloud nodes fan out; default 16, was 50",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    Setting(
        key="CommunicationParameters",
        value="disable_http",
        since=(25, 11),
        change="new: without it slurmctld and slurmd answer HTTP on their ports",
        source=f"{_25_11}, 25.11.0rc1",
    ),
    Setting(
        key="CommunicationParameters",
        value="host_unreach_retry_count",
        since=(25, 5),
        change="new",
        source=f"{_25_05}, 25.05.0rc1",
    ),
    Setting(
        key="PrivateData",
        value="cloud",
        until=(23, 2),
        change="not needed: powered-down cloud nodes show",
        source=f"{_23_02}, 23.02.0rc1; doc/man/man5/slurm.conf.5 of 22.05",
    ),
    Setting(
        key="SlurmctldParameters",
        value="rl_enable",
        since=(23, 2),
        change="new",
        source=f"{_23_02}, 23.02.0rc1",
    ),
    Setting(
        key="SlurmctldParameters",
        value="reconfig_on_restart",
        since=(25, 11),
        change="new: a restart of slurmctld reconfigures every slurmd",
        source=f"{_25_11}, 25.11.0rc1",
    ),
    Setting(
        key="SlurmctldParameters",
        value="enable_stepmgr",
        since=(24, 5),
        change="new",
        source=f"{_24_05}, 24.05.0rc1",
    ),
    Setting(
        key="SchedulerParameters",
        value="enable_job_state_cache",
        since=(23, 11),
        until=(26, 5),
        change="new, experimental; removed again",
        source=f"{_23_11}, 23.11.6; {_26_05}, 26.05.0rc1",
    ),
    # Power saving
    Setting(
        key="SlurmctldParameters",
        value="max_powered_nodes",
        since=(24, 5),
        change="new",
        source=f"{_24_05}, 24.05.0rc1",
    ),
    Setting(
        key="SuspendExcStates",
        since=(23, 2),
        change="new",
        source=f"{_23_02}, 23.02.0rc1",
    ),
    Setting(
        key="ReconfigFlags",
        value="KeepPowerSaveSettings",
        since=(23, 2),
        change="new: what scontrol changed of SuspendExc* stays",
        source=f"{_23_02}, 23.02.0rc1",
    ),
    Setting(
        key="ResumeTimeout",
        value="INFINITE",
        since=(25, 5),
        change="new value",
        source=f"{_25_05}, 25.05.0rc1",
    ),
    Setting(
        key="SchedulerParameters",
        value="requeue_on_resume_failure",
        since=(25, 5),
        change="new",
        source=f"{_25_05}, 25.05.0rc1; its name: doc/man/man5/slurm.conf.5 of 26.05",
    ),
    Setting(
        key="PowerAction",
        since=(26, 5),
        change="new: programs of power saving with arguments, also on nodes",
        source=f"{_26_05}, 26.05.0rc1",
    ),
    Setting(
        key="SuspendTime",
        since=(26, 5),
        change="new for a node",
        source=f"{_26_05}, 26.05.0rc1",
        place=Place.NODE,
    ),
    Setting(
        key="PowerDownOnIdle",
        since=(23, 2),
        change="new",
        source=f"{_23_02}, 23.02.0rc1",
        place=Place.PARTITION,
    ),
    Setting(
        key="all_nodes",
        until=(23, 2),
        change="became all_nodes_resume; within a job, nodes became nodes_resume",
        source=f"{_23_02}, 23.02.0rc1",
        place=Place.RESUME,
    ),
    # Scheduling
    Setting(
        key="SelectType",
        value="select/cons_res",
        until=(23, 11),
        change="removed: select/cons_tres is the default",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    Setting(
        key="OverSubscribe",
        value="EXCLUSIVE",
        until=(26, 5),
        change="deprecated for Exclusive=NODE",
        source="doc/man/man5/slurm.conf.5 of 26.05",
        place=Place.PARTITION,
    ),
    Setting(
        key="Exclusive",
        since=(26, 5),
        change="new",
        source=f"{_26_05}, 26.05.0rc1",
        place=Place.PARTITION,
    ),
    Setting(
        key="ExclusiveUser",
        until=(26, 5),
        change="deprecated for Exclusive=USER",
        source=f"{_26_05}, 26.05.0rc1",
        place=Place.PARTITION,
    ),
    Setting(
        key="ExclusiveTopo",
        since=(24, 5),
        until=(26, 5),
        change="new; then deprecated for Exclusive=TOPO",
        source=f"{_24_05}, 24.05.0rc1; {_26_05}, 26.05.0rc1",
        place=Place.PARTITION,
    ),
    Setting(
        key="MaxCPUsPerSocket",
        since=(23, 2),
        change="new",
        source=f"{_23_02}, 23.02.0rc1",
        place=Place.PARTITION,
    ),
    Setting(
        key="MaxBatchRequeue",
        since=(23, 2),
        change="new; it was always 5",
        source=f"{_23_02}, 23.02.0rc1",
    ),
    Setting(
        key="SchedulerParameters",
        value="requeue_delay",
        since=(25, 11),
        change="new",
        source=f"{_25_11}, 25.11.0rc2",
    ),
    Setting(
        key="SchedulerParameters",
        value="extra_constraints",
        since=(23, 11),
        change="new",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    # Jobs and their confinement
    Setting(
        key="TaskPlugin",
        value="task/none",
        until=(23, 11),
        change="removed like every plugin `none` but auth's and cred's: the key is left out",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    Setting(
        key="JobAcctGatherType",
        value="jobacct_gather/none",
        until=(23, 11),
        change="removed like every plugin `none` but auth's and cred's: the key is left out",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    Setting(
        key="PrologFlags",
        value="ForceRequeueOnFail",
        since=(23, 2),
        change="new",
        source=f"{_23_02}, 23.02.0rc1",
    ),
    Setting(
        key="PrologFlags",
        value="RunInJob",
        since=(24, 5),
        change="new",
        source=f"{_24_05}, 24.05.0rc1",
    ),
    Setting(
        key="PrologTimeout",
        since=(25, 5),
        change="new, with EpilogTimeout",
        source=f"{_25_05}, 25.05.0rc1",
    ),
    Setting(
        key="EpilogTimeout",
        since=(25, 5),
        change="new, with PrologTimeout",
        source=f"{_25_05}, 25.05.0rc1",
    ),
    Setting(
        key="TaskPluginParam",
        value="OOMKillStep",
        since=(24, 11),
        change="new",
        source=f"{_24_11}, 24.11.0rc1",
    ),
    Setting(
        key="JobContainerType",
        until=(25, 11),
        change="became NamespaceType",
        source=f"{_25_11}, 25.11.0rc1",
    ),
    Setting(
        key="NamespaceType",
        since=(25, 11),
        change="new name of JobContainerType",
        source=f"{_25_11}, 25.11.0rc1; doc/man/man5/slurm.conf.5 of 26.05",
    ),
    Setting(
        key="CgroupAutomount",
        until=(23, 11),
        change="removed",
        source=f"{_23_11}, 23.11.0rc1",
        place=Place.CGROUP,
    ),
    *(
        Setting(key=key, until=(23, 11), change="removed", source=f"{_23_11}, 23.11.0rc1", place=Place.CGROUP)
        for key in ("AllowedKmemSpace", "ConstrainKmemSpace", "MaxKmemPercent", "MinKmemSpace")
    ),
    Setting(
        key="CgroupPlugin",
        value="disabled",
        since=(24, 5),
        change="new value",
        source=f"{_24_05}, 24.05.0rc1",
        place=Place.CGROUP,
    ),
    Setting(
        key="EnableControllers",
        since=(23, 2),
        change="new",
        source=f"{_23_02}, 23.02.1",
        place=Place.CGROUP,
    ),
    Setting(
        key="SystemdTimeout",
        since=(24, 5),
        change="new",
        source=f"{_24_05}, 24.05.0rc1",
        place=Place.CGROUP,
    ),
    Setting(
        key="CgroupSlice",
        since=(25, 11),
        change="new",
        source=f"{_25_11}, 25.11.0rc1",
        place=Place.CGROUP,
    ),
    # Accelerators
    Setting(
        key="AutoDetect",
        value="nrt",
        since=(23, 11),
        change="new; not for cloud nodes",
        source=f"{_23_11}, 23.11.0rc1; doc/man/man5/gres.conf.5 of 26.05",
        place=Place.GRES,
    ),
    Setting(
        key="AutoDetect",
        value="nvidia",
        since=(24, 11),
        change="new; not for cloud nodes",
        source="doc/man/man5/gres.conf.5 of 26.05",
        place=Place.GRES,
    ),
    Setting(
        key="AutoDetect",
        value="full",
        since=(26, 5),
        change="new; not for cloud nodes",
        source=f"{_26_05}, 26.05.0rc1",
        place=Place.GRES,
    ),
    # Topology
    Setting(
        key="TopologyPlugin",
        value="topology/block",
        since=(23, 11),
        change="new",
        source=f"not in doc/man/man5/slurm.conf.5 of 22.05; named first in {_23_11}, 23.11.4",
    ),
    Setting(
        key="TopologyPlugin",
        value="topology/none",
        until=(23, 11),
        change="removed like every plugin `none` but auth's and cred's: the key is left out",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    Setting(
        key="RoutePlugin",
        until=(23, 11),
        change="became TopologyParam=RouteTree",
        source=f"{_23_11}, 23.11.0rc1",
    ),
    Setting(
        key="topology.yaml",
        since=(25, 5),
        change="new; sent to nodes from 25.05.2",
        source=f"{_25_05}, 25.05.0rc1 and 25.05.2",
        place=Place.TOPOLOGY,
    ),
    # Identity and accounting
    Setting(
        key="AuthType",
        value="auth/slurm",
        since=(23, 11),
        change="new",
        source=f"not in doc/man/man5/slurm.conf.5 of 22.05; named first in {_23_11}, 23.11.5",
    ),
    Setting(
        key="AccountingStorageUser",
        until=(25, 11),
        change="removed",
        source=f"{_25_11}, 25.11.0rc1",
    ),
)
_BY_TEXT: Mapping[str, Setting] = {setting.text: setting for setting in SETTINGS}


class ReleaseError(ValueError):
    """A Slurm that corral cannot write for; the text is one sentence for a person."""


def parse_release(version: str) -> Release:
    """The release that a version belongs to: `23.11.4` is of 23.11. Raises ReleaseError for what is no version."""
    numbers = version.split(".")[:2]
    if len(numbers) < 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise ReleaseError(f"{version!r} is no version of Slurm - write it as 23.11 or 23.11.4")
    return int(numbers[0]), int(numbers[1])


def written_release(version: str) -> Release:
    """The release that files for this version are written for: its own, or the newest known one before it.

    Raises ReleaseError for a version that is older than all that are known.
    """
    release = parse_release(version)
    if release < OLDEST:
        raise ReleaseError(
            f"Slurm {version} is too old: corral writes for {release_text(OLDEST)} and later - take a newer image"
        )
    return max(known for known in RELEASES if known <= release)


def release_note(version: str) -> str | None:
    """What the reader of a file should know where it is not written for its Slurm's own release."""
    written = written_release(version)
    if written == parse_release(version):
        return None
    return f"corral does not know this release: written as for {release_text(written)}."


def release_text(release: Release) -> str:
    """As Slurm writes it: `23.02`."""
    return f"{release[0]}.{release[1]:02}"


def known(release: Release, key: str, values: Iterable[str]) -> tuple[str, ...]:
    """Those of the values of `key` that this release knows."""
    return tuple(value for value in values if is_known(release, f"{key}={value}"))


def is_known(release: Release, text: str) -> bool:
    """True if this release knows the setting, `KEY` or `KEY=VALUE`; one that is not listed is known to all."""
    setting = _BY_TEXT.get(text)
    return setting is None or setting.holds(release)


def misfits(release: Release, settings: Mapping[str, str], place: Place = Place.CONF) -> tuple[str, ...]:
    """What is wrong with settings for this release, one sentence each: a user's own keys are checked with it."""
    pairs = [(key.lower(), value.lower().split(",")) for key, value in settings.items()]
    found = (row for key, values in pairs for row in SETTINGS if row.place is place and _means(row, key, values))
    return tuple(_misfit(row, release) for row in found if not row.holds(release))


def _means(setting: Setting, key: str, values: list[str]) -> bool:
    """True if a user's key with these values, all in lower case, is this setting. A value may carry `=5`."""
    names = {value.split("=")[0] for value in values}
    return setting.key.lower() == key and (setting.value is None or setting.value.lower() in names)


def _misfit(setting: Setting, release: Release) -> str:
    if setting.since is not None and release < setting.since:
        known_to = f"from {release_text(setting.since)}"
    else:
        assert setting.until is not None
        known_to = f"before {release_text(setting.until)}"
    return f"{setting.text} is for Slurm {known_to}, this is {release_text(release)}: {setting.change}"
