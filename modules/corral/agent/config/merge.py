"""Merge a newer configuration with the nodes and queues that are in use. Pure.

slurmctld ends the jobs of a node that vanishes from slurm.conf or changes its cores, and those of a queue that vanishes
(slurm.conf(5), PartitionName; seen in tests). So nodes and queues in use keep their old lines next to the new ones
until they are free, and a change never waits. A removed queue accepts no more jobs (State=DRAIN); its jobs stay.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from corral.model.node_names import expand, fold

NODES, QUEUES = "NodeName", "PartitionName"
# The fields of a node that must not change while it has a job.
_BODY = ("Sockets", "CoresPerSocket", "ThreadsPerCore", "RealMemory", "Gres")
IN_USE_COMMENT = "# Still in use, although `corral up` changed or removed it. Removed once free."
_FIELD = re.compile(r"(\w+)=(\S*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class InUse:
    """What must stay: `nodes` with a machine or a job, `queues` with a job. None: unknown, so all."""

    nodes: frozenset[str] | None
    queues: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfTexts:
    """The texts of slurm.conf and gres.conf."""

    slurm: str
    gres: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedConf:
    """The merged files, and the nodes and queues that are in them only because they are in use."""

    texts: ConfTexts
    nodes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


def merge_conf(old: ConfTexts, new: ConfTexts, used: InUse) -> MergedConf:
    """The new configuration with the old one's nodes and queues that are in use."""
    before, after = nodes_of(old.slurm), nodes_of(new.slurm)
    retained = {
        name: fields
        for name, fields in before.items()
        if (used.nodes is None or name in used.nodes) and _body(fields) != _body(after.get(name))
    }
    queues = {
        name: _closed(fields, retained)
        for name, fields in queues_of(old.slurm).items()
        if name not in queues_of(new.slurm)
        and (used.queues is None or name in used.queues or not retained.keys().isdisjoint(_members(fields)))
    }
    if not retained and not queues:
        return MergedConf(texts=new)
    devices = {name: fields for name, fields in nodes_of(old.gres).items() if name in retained}
    slurm = _section([*_lines(retained), *(_line({QUEUES: name, **fields}) for name, fields in queues.items())])
    return MergedConf(
        texts=ConfTexts(
            slurm=_without(new.slurm, retained) + slurm,
            gres=_without(new.gres, retained) + (_section(_lines(devices)) if devices else ""),
        ),
        nodes=tuple(retained),
        queues=tuple(queues),
    )


def nodes_of(text: str) -> Mapping[str, Mapping[str, str]]:
    """The fields of each node in a slurm.conf or gres.conf, without the name."""
    found: dict[str, Mapping[str, str]] = {}
    for fields in _records(text, NODES):
        rest = {key: value for key, value in fields.items() if key != NODES}
        found.update(dict.fromkeys(expand(fields[NODES]), rest))
    return found


def queues_of(text: str) -> Mapping[str, Mapping[str, str]]:
    """The fields of each queue in slurm.conf, without the name."""
    return {
        fields[QUEUES]: {key: value for key, value in fields.items() if key != QUEUES}
        for fields in _records(text, QUEUES)
    }


def _records(text: str, kind: str) -> Iterable[Mapping[str, str]]:
    return (dict(_FIELD.findall(line)) for line in text.splitlines() if line.startswith(f"{kind}="))


def _body(fields: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return None if fields is None else {key: fields[key] for key in _BODY if key in fields}


def _members(queue: Mapping[str, str]) -> tuple[str, ...]:
    return expand(queue.get("Nodes", ""))


def _closed(queue: Mapping[str, str], retained: Mapping[str, object]) -> Mapping[str, str]:
    """A queue in state DRAIN with the nodes that it still has."""
    rest = {key: value for key, value in queue.items() if key not in {"Nodes", "Default", "State"}}
    nodes = [name for name in _members(queue) if name in retained]
    return {**({"Nodes": fold(nodes)} if nodes else {}), **rest, "State": "DRAIN"}


def _without(text: str, retained: Mapping[str, object]) -> str:
    """The text without these nodes."""
    lines = []
    for line in text.splitlines():
        if line.startswith(f"{NODES}="):
            names = dict(_FIELD.findall(line))[NODES]
            left = [name for name in expand(names) if name not in retained]
            if not left:
                continue
            line = line.replace(f"{NODES}={names}", f"{NODES}={fold(left)}", 1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _lines(nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The lines of these nodes, one for nodes with the same fields."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for name, fields in nodes.items():
        alike[tuple(fields.items())].append(name)
    return [_line({NODES: fold(names), **dict(fields)}) for fields, names in alike.items()]


def _line(fields: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in fields.items())


def _section(lines: Iterable[str]) -> str:
    return "\n".join(("", IN_USE_COMMENT, *lines, ""))
