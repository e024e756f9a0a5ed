"""The keys of slurm.conf that users leave to corral: those that it writes, and those that it keeps, with the reasons.

All others are free; which of them Slurm knows is the catalogue's.
"""

from __future__ import annotations

from collections.abc import Mapping

from corral.catalog.slurm_settings import Place


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What corral writes itself: tests/render holds these against the rendered files, so that they are those and no others.
WRITTEN: Mapping[Place, frozenset[str]] = {
    Place.CONF: _words(
        "AccountingStorageEnforce AccountingStorageHost AccountingStorageTRES AccountingStorageType"
        " AuthInfo BatchStartTimeout ClusterName CommunicationParameters GresTypes HealthCheckInterval"
        " HealthCheckNodeState HealthCheckProgram Include JobAcctGatherType LaunchParameters"
        " MessageTimeout NodeName PartitionName PrivateData ProctrackType Prolog PrologFlags ResumeFailProgram"
        " ResumeProgram ResumeRate ResumeTimeout ReturnToService SelectType SelectTypeParameters SlurmUser"
        " SlurmctldHost SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPort SlurmdLogFile"
        " SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdTimeout SlurmdUser StateSaveLocation"
        " SuspendExcNodes SuspendProgram SuspendRate SuspendTime SuspendTimeout TaskPlugin TreeWidth"
    ),
    Place.PARTITION: _words(
        "AllowAccounts DefCpuPerGPU DefMemPerCPU Default MaxTime Nodes PartitionName State SuspendTime"
    ),
}
# Written for a queue of whole nodes alone; Shared is the older name of OverSubscribe.
SHARING = _words("Shared OverSubscribe Exclusive")

_ACCOUNTING = "sets accounting up as a whole"
_HEAD = "says in SlurmctldHost where the head is"
_HOOKS = "is to clean nodes there after each job"
_LINES = "writes lines of several keys itself"
_MUNGE = "puts munge on every host, and nothing else"
_PLACES = "puts Slurm's files on hosts itself"
_PROGRAMS = "puts no such program on the head, and slurmctld ends without it from 24.11 on"
_STAYING = "decides by nodes.min and suspend_after which nodes stay"
_TIMES = "waits for machines equally long in every queue"
# Not in the files that corral writes; `which` ends the sentence "is kept for corral, which ...".
KEPT: Mapping[Place, Mapping[str, str]] = {
    Place.CONF: {
        "AccountingStoragePort": _ACCOUNTING,
        "AuthType": _MUNGE,
        "BackupAddr": _HEAD,
        "BackupController": _HEAD,
        "ControlAddr": _HEAD,
        "ControlMachine": _HEAD,
        "CredType": _MUNGE,
        "CryptoType": _MUNGE,
        "DownNodes": _LINES,
        "Epilog": _HOOKS,
        "EpilogSlurmctld": _PROGRAMS,
        "JobAcctGatherFrequency": _ACCOUNTING,
        "NodeSet": _LINES,
        "PlugStackConfig": _PLACES,
        "PluginDir": _PLACES,
        "PrologSlurmctld": _PROGRAMS,
        "SlurmctldAddr": _HEAD,
        "SuspendExcParts": _STAYING,
        "SuspendExcStates": _STAYING,
        "TopologyPlugin": "is to tell Slurm about the network's topology itself",
    },
    Place.PARTITION: {
        "DefMemPerGPU": "gives memory by CPU, and the two exclude each other",
        "PowerDownOnIdle": _STAYING,
        "ResumeTimeout": _TIMES,
        "SuspendTimeout": _TIMES,
    },
}


def refusal(place: Place, key: str) -> str | None:
    """Why a key is not a user's to set, the end of a sentence; None for a free one. Slurm takes keys in any case."""
    if key.lower() in map(str.lower, WRITTEN.get(place, ())):
        return "is set by corral, whose working rests on it"
    reasons = {kept.lower(): reason for kept, reason in KEPT.get(place, {}).items()}
    return f"is kept for corral, which {reasons[key.lower()]}" if key.lower() in reasons else None
