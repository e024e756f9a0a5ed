"""What has to be done so that new files count: nothing, word to slurmctld, or a daemon's restart. Pure.

docs/apply.md has the table. A restart of slurmctld ends no job: it reads its state back, and nodes go on meanwhile.
Sources: slurm.conf(5) of 22.05, "A restart of slurmctld is required"; scontrol(1) of 24.11, reconfigure; and trials.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from corral.agent.leaving import nodes_of, queues_of
from corral.agent.ssh import sshd_reads

SLURM = (
    *("slurm.conf", "host.conf", "own.conf", "gres.conf", "cgroup.conf", "first-job.conf"),
    *("topology.conf", "topology-plugin.conf"),
)
# From 23.11 on `scontrol reconfigure` makes new processes, which read everything but what the old ones' sockets are.
_ITSELF_FROM = (23, 11)
_NEVER_BY_ITSELF = frozenset({"SlurmctldPort", "SlurmdPort", "AuthType", "CredType", "StateSaveLocation"})
_RESTARTED_FOR = _NEVER_BY_ITSELF | {
    "AccountingStorageEnforce",
    "AccountingStorageHost",
    "AccountingStorageTRES",
    "AccountingStorageType",
    "ClusterName",
    "GresTypes",
    "JobContainerType",
    "MaxJobCount",
    "PluginDir",
    "ProctrackType",
    "SchedulerType",
    "SelectType",
    "SelectTypeParameters",
    "SlurmctldHost",
    "SlurmctldParameters",
    "SlurmUser",
    "TreeWidth",
}
_SETTING = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
_FREE = ("Weight", "Feature")  # of a node; a reconfigure takes them


class Step(StrEnum):
    """What can be done, in this order."""

    RELOAD_SSHD = "reload sshd"
    RESTART_MARIADB = "restart mariadb"
    RESTART_SLURMDBD = "restart slurmdbd"
    RESTART_SLURMCTLD = "restart slurmctld"
    RECONFIGURE = "scontrol reconfigure"
    RESTART_AGENT = "restart the agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """The texts below /etc/slurm that slurmctld reads, one after the other as it includes them, and gres.conf."""

    slurm: str
    gres: str


def steps(changed: Iterable[str], old: Conf, new: Conf, slurm_version: str, *, agent: bool = False) -> tuple[Step, ...]:
    """What must follow after these paths were written. `agent`: its own code is another."""
    paths = set(changed)
    found = []
    if sshd_reads(paths):
        found.append(Step.RELOAD_SSHD)
    if any(path.startswith("/etc/mysql/") for path in paths):
        found.append(Step.RESTART_MARIADB)
    if "/etc/slurm/slurmdbd.conf" in paths:
        found.append(Step.RESTART_SLURMDBD)
    if paths & {f"/etc/slurm/{name}" for name in SLURM}:
        if _needs_restart(old, new, _release(slurm_version)):
            found.append(Step.RESTART_SLURMCTLD)
        # Also after a restart: it is what makes slurmctld send the files to the nodes.
        found.append(Step.RECONFIGURE)
    if agent:
        found.append(Step.RESTART_AGENT)
    return tuple(found)


def _needs_restart(old: Conf, new: Conf, release: tuple[int, ...]) -> bool:
    by_itself = release >= _ITSELF_FROM
    keys = _NEVER_BY_ITSELF if by_itself else _RESTARTED_FOR
    if _settings(old.slurm, keys) != _settings(new.slurm, keys):
        return True
    if by_itself:
        return False
    # slurmctld before 23.11 ends when it is told to reconfigure itself with other nodes ("You have to restart").
    same_queues = queues_of(old.slurm).keys() == queues_of(new.slurm).keys()
    return _bodies(old.slurm) != _bodies(new.slurm) or not same_queues or nodes_of(old.gres) != nodes_of(new.gres)


def _settings(text: str, keys: frozenset[str]) -> list[tuple[str, str]]:
    known = {key.lower(): key for key in keys}
    return sorted((known[key.lower()], value) for key, value in _SETTING.findall(text) if key.lower() in known)


def _bodies(text: str) -> dict[str, dict[str, str]]:
    return {
        name: {key: value for key, value in fields.items() if key not in _FREE}
        for name, fields in nodes_of(text).items()
    }


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
