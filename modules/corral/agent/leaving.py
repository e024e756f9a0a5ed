"""Nodes and queues that a newer configuration does not know, or describes otherwise, while they are still in use. Pure.

slurmctld ends the jobs of a node that vanishes from slurm.conf or changes its cores, and those of a queue that vanishes
(slurm.conf(5), PartitionName; tried). So what is in use keeps its old lines beside the new ones until it is free, and a
change never waits for it. A queue that goes takes no more jobs (State=DRAIN); those that it has stay.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from corral.model.node_names import expand, fold

NODES, QUEUES = "NodeName", "PartitionName"
# What slurmctld may not learn of a node that works: the rest of its line can change under a job.
_BODY = ("Sockets", "CoresPerSocket", "ThreadsPerCore", "RealMemory", "Gres")
NOTE = "# Still in use, though `corral up` has changed or removed it: goes when it is free."
_FIELD = re.compile(r"(\w+)=(\S*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What must not vanish: `nodes` with a machine or a job, `queues` with a job. None: nobody knows, so all."""

    nodes: frozenset[str] | None
    queues: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """slurm.conf and gres.conf."""

    slurm: str
    gres: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What slurmctld is to read, and what of it is only there because it is in use."""

    texts: Texts
    nodes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


def merged(old: Texts, new: Texts, used: Used) -> Merged:
    """The new configuration with what is in use of the old one."""
    before, after = nodes_of(old.slurm), nodes_of(new.slurm)
    kept = {
        name: fields
        for name, fields in before.items()
        if (used.nodes is None or name in used.nodes) and _body(fields) != _body(after.get(name))
    }
    queues = {
        name: _closed(fields, kept)
        for name, fields in queues_of(old.slurm).items()
        if name not in queues_of(new.slurm)
        and (used.queues is None or name in used.queues or not kept.keys().isdisjoint(_members(fields)))
    }
    if not kept and not queues:
        return Merged(texts=new)
    devices = {name: fields for name, fields in nodes_of(old.gres).items() if name in kept}
    slurm = _section([*_lines(kept), *(_line({QUEUES: name, **fields}) for name, fields in queues.items())])
    return Merged(
        texts=Texts(
            slurm=_without(new.slurm, kept) + slurm,
            gres=_without(new.gres, kept) + (_section(_lines(devices)) if devices else ""),
        ),
        nodes=tuple(kept),
        queues=tuple(queues),
    )


def nodes_of(text: str) -> Mapping[str, Mapping[str, str]]:
    """What the lines of a slurm.conf or gres.conf say of each node, without the name."""
    found: dict[str, Mapping[str, str]] = {}
    for fields in _records(text, NODES):
        rest = {key: value for key, value in fields.items() if key != NODES}
        found.update(dict.fromkeys(expand(fields[NODES]), rest))
    return found


def queues_of(text: str) -> Mapping[str, Mapping[str, str]]:
    """What slurm.conf says of each queue, without the name."""
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


def _closed(queue: Mapping[str, str], kept: Mapping[str, object]) -> Mapping[str, str]:
    """A queue that takes no more jobs, with those of its nodes that are still there."""
    rest = {key: value for key, value in queue.items() if key not in {"Nodes", "Default", "State"}}
    nodes = [name for name in _members(queue) if name in kept]
    return {**({"Nodes": fold(nodes)} if nodes else {}), **rest, "State": "DRAIN"}


def _without(text: str, kept: Mapping[str, object]) -> str:
    """The text whose lines of nodes are silent about these."""
    lines = []
    for line in text.splitlines():
        if line.startswith(f"{NODES}="):
            names = dict(_FIELD.findall(line))[NODES]
            left = [name for name in expand(names) if name not in kept]
            if not left:
                continue
            line = line.replace(f"{NODES}={names}", f"{NODES}={fold(left)}", 1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _lines(nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One line for nodes of which the same is said."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for name, fields in nodes.items():
        alike[tuple(fields.items())].append(name)
    return [_line({NODES: fold(names), **dict(fields)}) for fields, names in alike.items()]


def _line(fields: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in fields.items())


def _section(lines: Iterable[str]) -> str:
    return "\n".join(("", NOTE, *lines, ""))
