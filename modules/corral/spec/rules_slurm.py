"""Rules about what users add to slurm.conf: keys that the cluster's Slurm knows, in their place, but not those that
corral's own working rests on. slurmctld ends at once over a key that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from corral.catalog.images import ImageProfile, image_profiles
from corral.catalog.names import nearest
from corral.catalog.slurm_releases import NEWEST, OLDEST, parse_release, release_text
from corral.catalog.slurm_settings import Place, misfits, slurm_keys, span_beside
from corral.spec.cluster import ClusterWishes
from corral.spec.errors import Finding, Loc

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_VALUE = re.compile(r"[^\s#\"'\\]+")
_LEAVE = "leave it out"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What corral writes itself; tests/render holds these lists against the rendered files. Slurm takes keys in any case.
PARTITION_KEYS = _words(
    "PartitionName Nodes Default MaxTime DefaultTime State OverSubscribe Exclusive AllowAccounts SuspendTime"
    " SuspendTimeout ResumeTimeout DefMemPerCPU DefMemPerGPU DefCpuPerGPU PowerDownOnIdle Shared"
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
    " MessageTimeout BatchStartTimeout Include NodeName PartitionName NodeSet DownNodes ControlMachine ControlAddr"
    " BackupController BackupAddr SlurmctldAddr CryptoType"
)
_OWNED: Mapping[Place, frozenset[str]] = {Place.CONF: CONF_KEYS, Place.PARTITION: PARTITION_KEYS}
_BELONGS = {
    Place.CONF: ("is a key of slurm.conf itself, not of a partition", "put it into slurm.extra"),
    Place.PARTITION: ("is a key of a partition, not of slurm.conf itself", "put it into a queue's extra"),
    Place.NODE: ("is a key of nodes, whose lines corral writes", _LEAVE),
}
_KINDS = {Place.CONF: "a key of slurm.conf", Place.PARTITION: "a key of a partition"}


def check(wishes: ClusterWishes) -> Iterator[Finding]:
    """What is wrong with the further keys of the cluster and of its queues, which the head's Slurm reads, too."""
    image = image_profiles().get(wishes.image.profile)
    lines: list[tuple[Loc, Place, Mapping[str, str]]] = [(("slurm", "extra"), Place.CONF, wishes.slurm.extra)]
    lines += [(("queues", n, "extra"), Place.PARTITION, queue.extra) for n, queue in enumerate(wishes.queues)]
    for loc, place, extra in lines:
        for key, value in extra.items():
            yield from (Finding((*loc, key), message) for message in _problems(place, key, value, image))


def _problems(place: Place, key: str, value: str, image: ImageProfile | None) -> Iterator[str]:
    if not _KEY.fullmatch(key):
        yield f"{key!r} is not a key of slurm.conf"
    elif _is_owned(place, key):
        yield f"is set by corral, whose working rests on it - {_LEAVE}"
    elif key.lower() not in slurm_keys(place):
        yield _stray(place, key, image)
    else:
        if not _VALUE.fullmatch(value):
            yield f"{value!r} is not a value of slurm.conf - no spaces, quotes or # in it"
        if image:
            yield from _foreign(place, key, value, image)


def _stray(place: Place, key: str, image: ImageProfile | None) -> str:
    """Where a key belongs that this place does not take in any release, or which one was probably meant."""
    for other, (what, instead) in _BELONGS.items():
        if key.lower() in slurm_keys(other):
            return f"{what} - {_LEAVE if _is_owned(other, key) else instead}"
    release = parse_release(image.slurm_version) if image else NEWEST
    meant = nearest(key, (name for name in slurm_keys(place).values() if not misfits(release, place, name)))
    releases = f"Slurm {release_text(OLDEST)} to {release_text(NEWEST)}"
    return f"is not {_KINDS[place]} in {releases} - " + (f"did you mean {meant[0]!r}?" if meant else _LEAVE)


def _foreign(place: Place, key: str, value: str, image: ImageProfile) -> Iterator[str]:
    """The key, and what of its value, this image's Slurm does not know yet or no more."""
    release = parse_release(image.slurm_version)
    for row in misfits(release, place, key, value):
        what = f"{row.value!r} is" if row.value else "is"
        yield f"{what} for {span_beside(release, row)}, image {image.name!r} has {release_text(release)} - {_LEAVE}"


def _is_owned(place: Place, key: str) -> bool:
    return key.lower() in {owned.lower() for owned in _OWNED.get(place, ())}
