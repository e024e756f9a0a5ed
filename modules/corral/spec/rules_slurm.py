"""Rules about what users add to slurm.conf: keys that the cluster's Slurm knows, in their place, but not those that
corral keeps. slurmctld ends at once over a key that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from corral.catalog.images import ImageProfile
from corral.catalog.names import did_you_mean
from corral.catalog.slurm_releases import NEWEST, OLDEST, Release, parse_release, release_text
from corral.catalog.slurm_settings import Place, misfits, slurm_keys, span_beside
from corral.spec.cluster import ClusterWishes
from corral.spec.errors import Finding, Loc
from corral.spec.image import ImageSpec, known_image
from corral.spec.queues import QueueSpec
from corral.spec.rules_slurm_keys import refusal
from corral.spec.rules_slurm_values import conflicts, queue_conflicts, repeated, value_problem

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_ACCOUNT = re.compile(r"[a-z0-9][a-z0-9._-]*")
_VALUE = re.compile(r"[^\s#\"'\\]+")
_LEAVE = "leave it out"
_BELONGS = {
    Place.CONF: ("is a key of slurm.conf itself, not of a partition", "put it into slurm.extra"),
    Place.PARTITION: ("is a key of a partition, not of slurm.conf itself", "put it into a queue's extra"),
    Place.NODE: ("is a key of nodes, whose lines corral writes", _LEAVE),
}
# Plugins that read a file which corral puts on no head: key, plugin, file, and what happens without it. Tried on 22.05.
_FILES = (
    ("JobSubmitPlugins", "lua", "/etc/slurm/job_submit.lua", "slurmctld ends"),
    ("CliFilterPlugins", "lua", "/etc/slurm/cli_filter.lua", "every sbatch, salloc and srun fails"),
    ("BurstBufferType", "lua", "/etc/slurm/burst_buffer.lua", "it does nothing"),
    ("JobCompType", "lua", "/etc/slurm/jobcomp.lua", "it keeps nothing, and slurmctld of 24.11 and later ends"),
    ("SlurmctldPlugstack", "nonstop", "/etc/slurm/nonstop.conf", "slurmctld ends"),
)
# Others are refused by themselves. Source: slurm.conf(5), PreemptMode.
_MODES = frozenset({"off", "gang", "within", "priority", "cancel", "requeue", "suspend", ""})
_LOGS = "/var/log/slurm/"
_KINDS = {Place.CONF: "a key of slurm.conf", Place.PARTITION: "a key of a partition"}


def check(wishes: ClusterWishes) -> Iterator[Finding]:
    """What is wrong with the further keys of the cluster and of its queues, which the head's Slurm reads, too."""
    image = known_image(wishes.image)
    own = wishes.slurm.extra
    lines: list[tuple[Loc, Place, Mapping[str, str]]] = [(("slurm", "extra"), Place.CONF, own)]
    lines += [(("queues", n, "extra"), Place.PARTITION, queue.extra) for n, queue in enumerate(wishes.queues)]
    wrong = [
        Finding((*loc, key), message)
        for loc, place, extra in lines
        for key, message in (*_lines(place, extra, wishes.image), *repeated(extra))
    ]
    yield from wrong
    said = {finding.loc for finding in wrong}
    nodes = sum(queue.nodes.max for queue in wishes.queues)
    together = (*_fatal(own), *conflicts(own, _release(image), nodes))
    findings = (Finding(("slurm", "extra", key), message) for key, message in together)
    yield from (finding for finding in findings if finding.loc not in said)
    for number, queue in enumerate(wishes.queues):
        findings = (Finding(("queues", number, "extra", key), message) for key, message in queue_conflicts(queue))
        yield from (finding for finding in findings if finding.loc not in said)
        yield from _check_accounts(("queues", number, "accounts"), queue)


def _check_accounts(loc: Loc, queue: QueueSpec) -> Iterator[Finding]:
    """slurmdbd keeps the names of accounts in small letters."""
    for number, account in enumerate(queue.accounts):
        if not _ACCOUNT.fullmatch(account):
            message = f"{account!r} is no account - small letters, digits, '.', '_' and '-' are one"
            yield Finding((*loc, number), message)


def _lines(place: Place, extra: Mapping[str, str], image: ImageSpec) -> Iterator[tuple[str, str]]:
    """Keys with what is wrong with each by itself."""
    for key, value in extra.items():
        yield from ((key, message) for message in _problems(place, key, value, image))


def _fatal(extra: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Keys of slurm.conf, with what is wrong, that Slurm knows and yet cannot work with on a head of corral's."""
    keys = {key.lower(): key for key in extra}
    for key, plugin, file, effect in _FILES:
        given = keys.get(key.lower())
        if given and plugin in (word.split("/")[-1] for word in extra[given].split(",")):
            yield given, f"{extra[given]!r} needs {file}, which corral puts on no head: {effect} - {_LEAVE}"
    yield from _preemption(extra, keys.get("preempttype"), keys.get("preemptmode"))
    yield from _files(extra, keys)


def _preemption(extra: Mapping[str, str], type_key: str | None, mode_key: str | None) -> Iterator[tuple[str, str]]:
    """slurmctld ends where one of the two says that jobs give way, and the other does not."""
    type_ = extra[type_key] if type_key else "preempt/none"
    modes = frozenset(extra[mode_key].lower().split(",")) if mode_key else frozenset({"off"})
    if not modes <= _MODES:
        return
    stays, gives_way = modes <= {"off", "gang", "within", "priority", ""}, type_.lower() != "preempt/none"
    if mode_key and "suspend" in modes and "gang" not in modes:
        yield mode_key, f"{extra[mode_key]!r}: slurmctld ends, for SUSPEND needs GANG - use SUSPEND,GANG"
    elif type_key and gives_way and stays:
        yield type_key, f"{type_!r} without a PreemptMode: slurmctld ends - set that, too, such as REQUEUE"
    elif mode_key and not gives_way and not modes <= {"off", "gang", ""}:
        what = f"{extra[mode_key]!r} without a PreemptType"
        yield mode_key, f"{what}: slurmctld ends - set that, too, such as preempt/partition_prio"


def _files(extra: Mapping[str, str], keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """slurmctld ends over a file that it cannot open; of what a head has, its user may write to one directory."""
    scheduler = keys.get("slurmschedlogfile")
    if scheduler and not extra[scheduler].startswith(_LOGS):
        yield scheduler, f"{extra[scheduler]!r} cannot be written: slurmctld ends - put it into {_LOGS}"
    completions, place = keys.get("jobcomptype"), keys.get("jobcomploc")
    if completions and extra[completions] == "jobcomp/filetxt" and not (place and extra[place].startswith(_LOGS)):
        what = f"{extra[completions]!r} without a JobCompLoc in {_LOGS}"
        yield completions, f"{what}: slurmctld ends - set that, too, such as {_LOGS}jobs.log"
    if completions and extra[completions] == "jobcomp/script" and not place:
        what = f"{extra[completions]!r} without a JobCompLoc"
        yield completions, f"{what}: slurmctld of 24.11 and later ends - set that, too: a program of your image"


def _problems(place: Place, key: str, value: str, wanted: ImageSpec) -> Iterator[str]:
    image = known_image(wanted)
    if not _KEY.fullmatch(key):
        yield f"{key!r} is not a key of slurm.conf"
    elif why := refusal(place, key):
        yield f"{why} - {_LEAVE}"
    elif key.lower() not in slurm_keys(place):
        yield _stray(place, key, image)
    else:
        foreign = tuple(_foreign(place, key, value, image)) if image else ()
        if not _VALUE.fullmatch(value):
            yield f"{value!r} is not a value of slurm.conf - no spaces, quotes or # in it"
        elif not foreign and (
            wrong := value_problem(_release(image), place, key, value, own_plugins=wanted.id is not None)
        ):
            yield wrong
        yield from foreign


def _stray(place: Place, key: str, image: ImageProfile | None) -> str:
    """Where a key belongs that this place does not take in any release, or which one was probably meant."""
    for other, (what, instead) in _BELONGS.items():
        if key.lower() in slurm_keys(other):
            return f"{what} - {_LEAVE if refusal(other, key) else instead}"
    release = _release(image)
    meant = did_you_mean(key, (name for name in slurm_keys(place).values() if not misfits(release, place, name)))
    releases = f"Slurm {release_text(OLDEST)} to {release_text(NEWEST)}"
    return f"is not {_KINDS[place]} in {releases} - " + (meant or _LEAVE)


def _foreign(place: Place, key: str, value: str, image: ImageProfile) -> Iterator[str]:
    """The key, and what of its value, this image's Slurm does not know yet or no more."""
    release = parse_release(image.slurm_version)
    for row in misfits(release, place, key, value):
        what = f"{row.value!r} is" if row.value else "is"
        yield f"{what} for {span_beside(release, row)}, image {image.name!r} has {release_text(release)} - {_LEAVE}"


def _release(image: ImageProfile | None) -> Release:
    return parse_release(image.slurm_version) if image else NEWEST
