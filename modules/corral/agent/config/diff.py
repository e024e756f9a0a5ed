"""The steps that changed files require: none, a reconfigure, or restarts of daemons. Pure.

docs/apply.md has the table. A restart of slurmctld ends no job: it restores its state, and nodes continue meanwhile.
Sources: slurm.conf(5) of 22.05, "A restart of slurmctld is required"; scontrol(1) of 24.11, reconfigure; and tests.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from corral.agent.config.file_placements import ACCOUNTS, CONTAINERS, SSHD_CONF
from corral.agent.config.merge import nodes_of, queues_of
from corral.agent.directory import directory_reads
from corral.agent.ssh import sshd_reads
from corral.agent.user_rights import ADMINS
from corral.model.monitoring import ALERTMANAGER_DIR, PROMETHEUS_DIR
from corral.model.users import USERS_CONF

SLURM = (
    *("slurm.conf", "host.conf", "own.conf", "gres.conf", "cgroup.conf", "first-job.conf"),
    *("topology.conf", "topology-plugin.conf", USERS_CONF, "job_submit.lua", "plugstack.conf"),
)
# From 23.11 on `scontrol reconfigure` starts new processes, which apply everything but the settings of open sockets.
_RECONFIGURES_FROM = (23, 11)
_ALWAYS_RESTARTED_FOR = frozenset({"SlurmctldPort", "SlurmdPort", "AuthType", "CredType", "StateSaveLocation"})
_RESTARTED_FOR = _ALWAYS_RESTARTED_FOR | {
    "AccountingStorageEnforce",
    "AccountingStorageHost",
    "AccountingStorageTRES",
    "AccountingStorageType",
    "ClusterName",
    "EpilogSlurmctld",
    "GresTypes",
    "JobContainerType",
    "MaxJobCount",
    "PluginDir",
    "ProctrackType",
    "PrologSlurmctld",
    "SchedulerType",
    "SelectType",
    "SelectTypeParameters",
    "SlurmctldHost",
    "SlurmctldParameters",
    "SlurmUser",
    "TreeWidth",
}
_SETTING = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
_FREE = ("Weight", "Feature")  # of a node; a reconfigure is enough


class ApplyStep(StrEnum):
    """The steps, in the order in which they are taken."""

    COMPILE_CONTAINERS = "compile what runs containers"
    SYNC_USERS = "change users"
    SYNC_DIRECTORY = "change the directory"
    RELOAD_SSHD = "reload sshd"
    RESTART_MARIADB = "restart mariadb"
    RESTART_SLURMDBD = "restart slurmdbd"
    SYNC_ACCOUNTS = "change Slurm's accounts"
    RESTART_SLURMCTLD = "restart slurmctld"
    RECONFIGURE = "scontrol reconfigure"
    RESTART_PROMETHEUS = "restart Prometheus"
    RESTART_ALERTMANAGER = "restart Alertmanager"
    RESTART_AGENT = "restart the agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConf:
    """The text of slurm.conf with its includes, and of gres.conf."""

    slurm: str
    gres: str


def required_steps(
    changed: Iterable[str], old: SlurmConf, new: SlurmConf, slurm_version: str, *, agent: bool = False
) -> tuple[ApplyStep, ...]:
    """The steps that these changed paths require. `agent`: the agent's code has changed."""
    paths = set(changed)
    found = []
    if any(path.startswith(f"{CONTAINERS}/") for path in paths):
        found.append(ApplyStep.COMPILE_CONTAINERS)
    # Administrators have another home where the head is left to them: the other two change with who and whether.
    if paths & {f"/etc/slurm/{USERS_CONF}", ADMINS, SSHD_CONF}:
        found.append(ApplyStep.SYNC_USERS)
    if directory_reads(paths):
        found.append(ApplyStep.SYNC_DIRECTORY)
    if sshd_reads(paths):
        found.append(ApplyStep.RELOAD_SSHD)
    if any(path.startswith("/etc/mysql/") for path in paths):
        found.append(ApplyStep.RESTART_MARIADB)
    if "/etc/slurm/slurmdbd.conf" in paths:
        found.append(ApplyStep.RESTART_SLURMDBD)
    if ACCOUNTS in paths:
        found.append(ApplyStep.SYNC_ACCOUNTS)
    if paths & {f"/etc/slurm/{name}" for name in SLURM}:
        if _needs_restart(old, new, _release(slurm_version)):
            found.append(ApplyStep.RESTART_SLURMCTLD)
        # Also after a restart: a reconfigure makes slurmctld send the files to the nodes.
        found.append(ApplyStep.RECONFIGURE)
    if any(path.startswith(f"{PROMETHEUS_DIR}/") for path in paths):
        found.append(ApplyStep.RESTART_PROMETHEUS)
    if any(path.startswith(f"{ALERTMANAGER_DIR}/") for path in paths):
        found.append(ApplyStep.RESTART_ALERTMANAGER)
    if agent:
        found.append(ApplyStep.RESTART_AGENT)
    return tuple(found)


def _needs_restart(old: SlurmConf, new: SlurmConf, release: tuple[int, ...]) -> bool:
    reconfigures = release >= _RECONFIGURES_FROM
    keys = _ALWAYS_RESTARTED_FOR if reconfigures else _RESTARTED_FOR
    if _settings(old.slurm, keys) != _settings(new.slurm, keys):
        return True
    if reconfigures:
        return False
    # Before 23.11 slurmctld exits on a reconfigure with other nodes ("You have to restart").
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
