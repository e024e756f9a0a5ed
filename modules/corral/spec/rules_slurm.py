"""Rules about what users add to slurm.conf: keys of Slurm's, but not those that corral's own working rests on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from corral.spec.errors import Finding, Loc

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_VALUE = re.compile(r"[^\s#\"'\\]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What corral writes itself; tests/render holds these lists against the rendered files. Slurm takes keys in any case.
PARTITION_KEYS = _words(
    "PartitionName Nodes Default MaxTime DefaultTime State OverSubscribe Exclusive AllowAccounts SuspendTime"
    " SuspendTimeout ResumeTimeout DefMemPerCPU DefMemPerGPU DefCpuPerGPU PowerDownOnIdle"
)
CONF_KEYS = _words(
    "ClusterName SlurmctldHost SlurmctldPort SlurmdPort SlurmUser SlurmdUser StateSaveLocation SlurmdSpoolDir"
    " SlurmctldPidFile SlurmdPidFile SlurmctldLogFile SlurmdLogFile AuthType AuthInfo CredType MpiDefault"
    " SlurmctldParameters SlurmdParameters CommunicationParameters PrivateData TreeWidth SelectType"
    " SelectTypeParameters TaskPlugin ProctrackType JobAcctGatherType JobAcctGatherFrequency AccountingStorageType"
    " AccountingStorageHost AccountingStoragePort AccountingStorageTRES GresTypes ReturnToService"
    " ResumeProgram ResumeFailProgram SuspendProgram ResumeTimeout SuspendTimeout SuspendTime ResumeRate SuspendRate"
    " SuspendExcNodes SuspendExcParts SuspendExcStates DebugFlags RebootProgram HealthCheckProgram Prolog Epilog"
    " PrologFlags PrologSlurmctld EpilogSlurmctld TaskProlog TopologyPlugin LaunchParameters SlurmdTimeout"
    " MessageTimeout BatchStartTimeout Include NodeName PartitionName NodeSet DownNodes"
)


def check_extra(loc: Loc, extra: Mapping[str, str], owned: Collection[str]) -> Iterator[Finding]:
    """What is wrong with these further keys and values."""
    ours = {key.lower() for key in owned}
    for key, value in extra.items():
        if not _KEY.fullmatch(key):
            yield Finding((*loc, key), f"{key!r} is not a key of slurm.conf")
        elif key.lower() in ours:
            yield Finding((*loc, key), "is set by corral, whose working rests on it - leave it out")
        elif not _VALUE.fullmatch(value):
            yield Finding((*loc, key), f"{value!r} is not a value of slurm.conf - no spaces, quotes or # in it")
