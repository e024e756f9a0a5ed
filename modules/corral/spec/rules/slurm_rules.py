"""Rules about users' own slurm.conf keys: the cluster's Slurm must know them, and corral must not set them itself.

slurmctld exits on an unknown key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from corral.catalog.aws.images import ImageProfile
from corral.catalog.loader.suggestions import did_you_mean
from corral.catalog.slurm.conf_keys import ConfSection, slurm_keys, supported_releases, unsupported_settings
from corral.catalog.slurm.releases import NEWEST, OLDEST, Release, parse_release, release_text
from corral.spec.models.cluster import ClusterSpecInput
from corral.spec.models.image import ImageSpec, resolve_image
from corral.spec.models.queues import QueueSpec
from corral.spec.rules.account_rules import is_account_name
from corral.spec.rules.slurm_key_rules import field_instead, refusal
from corral.spec.rules.slurm_value_rules import (
    KeyProblem,
    conflicts,
    has_plugin,
    queue_conflicts,
    repeated,
    value_problem,
)
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_VALUE = re.compile(r"[^\s#\"'\\]+")
_LEAVE = "remove it"
_BELONGS = {
    ConfSection.CONF: ("is a key of slurm.conf, not of a partition", "move it to slurm.extra"),
    ConfSection.PARTITION: ("is a key of a partition, not of slurm.conf", "move it to a queue's extra"),
    ConfSection.NODE: ("is a key of nodes, whose lines corral writes", _LEAVE),
}
# Plugins that require a file that corral does not install: key, plugin, file, effect without it. Tested on 22.05.
_FILES = (
    ("JobSubmitPlugins", "lua", "/etc/slurm/job_submit.lua", "slurmctld exits"),
    ("CliFilterPlugins", "lua", "/etc/slurm/cli_filter.lua", "all sbatch, salloc and srun commands fail"),
    ("BurstBufferType", "lua", "/etc/slurm/burst_buffer.lua", "the plugin does nothing"),
    ("JobCompType", "lua", "/etc/slurm/jobcomp.lua", "the plugin logs nothing, and slurmctld 24.11 and later exits"),
    ("SlurmctldPlugstack", "nonstop", "/etc/slurm/nonstop.conf", "slurmctld exits"),
)
# Other rules reject other values. Source: slurm.conf(5), PreemptMode.
_MODES = frozenset({"off", "gang", "within", "priority", "cancel", "requeue", "suspend", ""})
_LOGS = "/var/log/slurm/"
_KINDS = {ConfSection.CONF: "a key of slurm.conf", ConfSection.PARTITION: "a key of a partition"}


def check(spec: ClusterSpecInput) -> Iterator[SpecFinding]:
    """Yield findings about the extra keys of the cluster and of its queues. The Slurm of each machine reads both."""
    image = resolve_image(spec.image)
    own = spec.slurm.extra
    lines: list[tuple[Loc, ConfSection, Mapping[str, str]]] = [(("slurm", "extra"), ConfSection.CONF, own)]
    lines += [(("queues", n, "extra"), ConfSection.PARTITION, queue.extra) for n, queue in enumerate(spec.queues)]
    wrong = [
        problem.at((*loc, key))
        for loc, section, extra in lines
        for key, problem in (*_lines(section, extra, spec.image), *repeated(extra))
    ]
    reported = {finding.loc for finding in wrong}
    wrong += [finding for finding in _unknown_to_nodes(spec, lines) if finding.loc not in reported]
    yield from wrong
    reported |= {finding.loc for finding in wrong}
    nodes = sum(queue.nodes.max for queue in spec.queues)
    together = (*_fatal(own, has_job_submit=spec.slurm.job_submit is not None), *conflicts(own, _release(image), nodes))
    findings = (problem.at(("slurm", "extra", key)) for key, problem in together)
    yield from (finding for finding in findings if finding.loc not in reported)
    for number, queue in enumerate(spec.queues):
        findings = (problem.at(("queues", number, "extra", key)) for key, problem in queue_conflicts(queue))
        yield from (finding for finding in findings if finding.loc not in reported)
        yield from _check_accounts(("queues", number, "accounts"), queue)


def _unknown_to_nodes(
    spec: ClusterSpecInput, lines: Sequence[tuple[Loc, ConfSection, Mapping[str, str]]]
) -> Iterator[SpecFinding]:
    """Yield keys that a queue's Slurm does not know: slurmd reads the whole file, and exits. Tested on 22.05.

    It ignores words that it does not know, so values do not matter.
    """
    found = (resolve_image(queue.image) for queue in spec.queues if queue.image)
    images = {image.name: parse_release(image.slurm_version) for image in found if image}
    for loc, section, extra in lines:
        for key, (name, release) in product(extra, sorted(images.items())):
            for row in unsupported_settings(release, section, key):
                span = supported_releases(release, row)
                what = f"is for {span}, and the nodes with image {name!r} have {release_text(release)}"
                yield SpecFinding((*loc, key), what, _LEAVE)


def _check_accounts(loc: Loc, queue: QueueSpec) -> Iterator[SpecFinding]:
    """Yield names that are not accounts: slurmdbd stores account names in lowercase."""
    for number, account in enumerate(queue.accounts):
        if not is_account_name(account):
            yield SpecFinding(
                (*loc, number), f"{account!r} is not an account name", "use lowercase letters, digits, '.', '_' and '-'"
            )


def _lines(section: ConfSection, extra: Mapping[str, str], image: ImageSpec) -> Iterator[KeyProblem]:
    """Yield keys, each with a problem of its own, independent of the other keys."""
    for key, value in extra.items():
        yield from ((key, problem) for problem in _problems(section, key, value, image))


def _fatal(extra: Mapping[str, str], *, has_job_submit: bool) -> Iterator[KeyProblem]:
    """Yield slurm.conf keys that Slurm knows but that do not work on corral's head, with the problem."""
    keys = {key.lower(): key for key in extra}
    for key, plugin, file, effect in _FILES:
        if key == "JobSubmitPlugins" and has_job_submit:
            continue
        given = keys.get(key.lower())
        if given and has_plugin(extra[given], plugin):
            what = f"{extra[given]!r} needs {file}, which corral does not install: {effect}"
            yield given, SpecProblem(what, "set slurm.job_submit" if key == "JobSubmitPlugins" else _LEAVE)
    yield from _preemption(extra, keys.get("preempttype"), keys.get("preemptmode"))
    yield from _files(extra, keys)


def _preemption(extra: Mapping[str, str], type_key: str | None, mode_key: str | None) -> Iterator[KeyProblem]:
    """Yield a finding if only one of PreemptType and PreemptMode enables preemption: slurmctld exits."""
    type_ = extra[type_key] if type_key else "preempt/none"
    modes = frozenset(extra[mode_key].lower().split(",")) if mode_key else frozenset({"off"})
    if not modes <= _MODES:
        return
    stays, gives_way = modes <= {"off", "gang", "within", "priority", ""}, type_.lower() != "preempt/none"
    if mode_key and "suspend" in modes and "gang" not in modes:
        what = f"{extra[mode_key]!r}: slurmctld exits because SUSPEND requires GANG"
        yield mode_key, SpecProblem(what, "use SUSPEND,GANG")
    elif type_key and gives_way and stays:
        what = f"{type_!r} requires PreemptMode, without which slurmctld exits"
        yield type_key, SpecProblem(what, "set it too, such as REQUEUE")
    elif mode_key and not gives_way and not modes <= {"off", "gang", ""}:
        what = f"{extra[mode_key]!r} requires PreemptType, without which slurmctld exits"
        yield mode_key, SpecProblem(what, "set it too, such as preempt/partition_prio")


def _files(extra: Mapping[str, str], keys: Mapping[str, str]) -> Iterator[KeyProblem]:
    """Yield log files that slurmctld cannot open, on which it exits: its user can write to one directory only."""
    scheduler = keys.get("slurmschedlogfile")
    if scheduler and not extra[scheduler].startswith(_LOGS):
        what = f"{extra[scheduler]!r} cannot be written: slurmctld exits"
        yield scheduler, SpecProblem(what, f"use a file in {_LOGS}")
    completions, location = keys.get("jobcomptype"), keys.get("jobcomploc")
    if completions and extra[completions] == "jobcomp/filetxt" and not (location and extra[location].startswith(_LOGS)):
        what = f"{extra[completions]!r} requires a JobCompLoc in {_LOGS}, without which slurmctld exits"
        yield completions, SpecProblem(what, f"set it too, such as {_LOGS}jobs.log")
    if completions and extra[completions] == "jobcomp/script" and not location:
        what = f"{extra[completions]!r} requires JobCompLoc, without which slurmctld 24.11 and later exits"
        yield completions, SpecProblem(what, "set it to a program in your image")


def _problems(section: ConfSection, key: str, value: str, wanted: ImageSpec) -> Iterator[SpecProblem]:
    image = resolve_image(wanted)
    if not _KEY.fullmatch(key):
        yield SpecProblem(f"{key!r} is not a key of slurm.conf")
    elif why := refusal(section, key):
        field = field_instead(key) if section is ConfSection.CONF else None
        yield SpecProblem(why, f"use {field}" if field else _LEAVE)
    elif key.lower() not in slurm_keys(section):
        yield _unknown_key(section, key, image)
    else:
        unsupported = tuple(_unsupported(section, key, value, image)) if image else ()
        if not _VALUE.fullmatch(value):
            yield SpecProblem(f"{value!r} is not a slurm.conf value", "use no spaces, quotes or #")
        elif not unsupported and (
            wrong := value_problem(_release(image), section, key, value, own_plugins=wanted.id is not None)
        ):
            yield wrong
        yield from unsupported


def _unknown_key(section: ConfSection, key: str, image: ImageProfile | None) -> SpecProblem:
    """Return where this key belongs, or which key was probably meant: no release accepts it in this section."""
    for other, (what, instead) in _BELONGS.items():
        if key.lower() in slurm_keys(other):
            return SpecProblem(what, _LEAVE if refusal(other, key) else instead)
    release = _release(image)
    meant = did_you_mean(
        key, (name for name in slurm_keys(section).values() if not unsupported_settings(release, section, name))
    )
    releases = f"Slurm {release_text(OLDEST)} to {release_text(NEWEST)}"
    return SpecProblem(f"is not {_KINDS[section]} in {releases}", meant or _LEAVE)


def _unsupported(section: ConfSection, key: str, value: str, image: ImageProfile) -> Iterator[SpecProblem]:
    """Yield the key, or words of its value, that this image's Slurm does not know yet or no longer knows."""
    release = parse_release(image.slurm_version)
    for row in unsupported_settings(release, section, key, value):
        what = f"{row.value!r} is" if row.value else "is"
        span = supported_releases(release, row)
        yield SpecProblem(f"{what} for {span}, image {image.name!r} has {release_text(release)}", _LEAVE)


def _release(image: ImageProfile | None) -> Release:
    return parse_release(image.slurm_version) if image else NEWEST
