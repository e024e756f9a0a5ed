"""The keys of slurm.conf that corral reserves: those that it writes, and others, each with the reason.

Users may set all other keys. The catalog lists the keys that Slurm knows.
"""

from __future__ import annotations

from collections.abc import Mapping

from corral.catalog.slurm.conf_keys import ConfSection


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Keys that corral writes. tests/render compares this list with the rendered files.
WRITTEN: Mapping[ConfSection, frozenset[str]] = {
    ConfSection.CONF: _words(
        "AccountingStorageEnforce AccountingStorageHost AccountingStorageTRES AccountingStorageType"
        " AuthInfo BatchStartTimeout ClusterName CommunicationParameters Epilog EpilogSlurmctld GresTypes"
        " HealthCheckInterval HealthCheckNodeState HealthCheckProgram Include JobAcctGatherType LaunchParameters"
        " MessageTimeout NodeName PartitionName PrivateData ProctrackType Prolog PrologFlags PrologSlurmctld"
        " ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ReturnToService SelectType SelectTypeParameters"
        " SlurmUser SlurmctldHost SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPort SlurmdLogFile"
        " SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdTimeout SlurmdUser StateSaveLocation"
        " SuspendExcNodes SuspendProgram SuspendRate SuspendTime SuspendTimeout TaskPlugin TreeWidth"
    ),
    ConfSection.PARTITION: _words(
        "AllowAccounts DefCpuPerGPU DefMemPerCPU Default MaxTime Nodes PartitionName State SuspendTime"
    ),
}
# Written only for a queue with `exclusive`; Shared is the older name of OverSubscribe.
SHARING = _words("Shared OverSubscribe Exclusive")

_ACCOUNTING = "sets up accounting as a whole"
_HEAD = "sets the head in SlurmctldHost"
_LINES = "writes these lines itself"
_MUNGE = "installs munge only"
_INSTALLS = "installs Slurm's files itself"
_STAYING = "keeps nodes by nodes.min and suspend_after"
_TIMES = "uses the same timeouts for all queues"
# Keys that have a field of their own in `slurm`.
FIELDS: Mapping[str, str] = {
    "Prolog": "prolog",
    "Epilog": "epilog",
    "PrologSlurmctld": "prolog_slurmctld",
    "EpilogSlurmctld": "epilog_slurmctld",
    "PlugStackConfig": "plugstack",
}
# Keys that corral does not write, with the end of the message "is reserved: corral ...".
RESERVED: Mapping[ConfSection, Mapping[str, str]] = {
    ConfSection.CONF: {
        "AccountingStoragePort": _ACCOUNTING,
        "AuthType": _MUNGE,
        "BackupAddr": _HEAD,
        "BackupController": _HEAD,
        "ControlAddr": _HEAD,
        "ControlMachine": _HEAD,
        "CredType": _MUNGE,
        "CryptoType": _MUNGE,
        "DownNodes": _LINES,
        "JobAcctGatherFrequency": _ACCOUNTING,
        "NodeSet": _LINES,
        "PlugStackConfig": _INSTALLS,
        "PluginDir": _INSTALLS,
        "SlurmctldAddr": _HEAD,
        "SuspendExcParts": _STAYING,
        "SuspendExcStates": _STAYING,
        "TopologyPlugin": "configures the network topology itself",
    },
    ConfSection.PARTITION: {
        "DefMemPerGPU": "sets memory by CPU, and the two exclude each other",
        "PowerDownOnIdle": _STAYING,
        "ResumeTimeout": _TIMES,
        "SuspendTimeout": _TIMES,
    },
}


def field_instead(key: str) -> str | None:
    """Return the field of the spec that does what this key of slurm.conf would do; None if there is none."""
    found = {name.lower(): field for name, field in FIELDS.items()}.get(key.lower())
    return found and f"slurm.{found}"


def refusal(section: ConfSection, key: str) -> str | None:
    """Return why users cannot set this key, as the end of a message; None if they can. Keys are case-insensitive."""
    if key.lower() in map(str.lower, WRITTEN.get(section, ())):
        return "is managed by corral"
    reasons = {kept.lower(): reason for kept, reason in RESERVED.get(section, {}).items()}
    return f"is reserved: corral {reasons[key.lower()]}" if key.lower() in reasons else None
