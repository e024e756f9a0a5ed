"""What a row of published runs says of its network in words, and what is taken for it where it says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from corral.catalog.accelerators import AcceleratorModel, accelerators
from corral.catalog.instances import InstanceType, instance_types
from corral.catalog.training_constants import training_constants
from corral.forecast.training.job import Job
from corral.forecast.training.rows import Row

_AWS = re.compile(r"\b(aws|amazon|ec2|sagemaker|hyperpod)\b")
_EFA = re.compile(r"\befa\b")
_NO_EFA = re.compile(r"\b(no|not|non|without)[ -](\w+ )?efa\b")
_OVERLAP = re.compile(r"\boverlap(?:ped)?[ :=]+(on|off)\b")
_ONLY_ON_AWS = "AWS"  # the vendor whose accelerators no other machines have


def is_aws(row: Row, model: AcceleratorModel) -> bool:
    """Whether the run's machines are EC2's: nobody else has such accelerators, or the text says so.

    `system` does by a type or family anywhere in it (`8 x p5.48xlarge`), by AWS, EC2 or EFA; `note` by EFA. The
    network's rate alone says nothing: a DGX H100 has p5's 400 Gb/s for each accelerator.
    """
    system, note = row.text("system").lower(), row.text("note").lower()
    named = _families().search(system) or _AWS.search(system)
    efa = _EFA.search(_NO_EFA.sub("", f"{system}\n{note}"))
    return model.vendor == _ONLY_ON_AWS or bool(named or efa)


def overlap_of(row: Row) -> bool | None:
    """Whether the exchange among experts overlaps other work, as the row's note says; None where it does not."""
    states = set(_OVERLAP.findall(row.text("note").lower()))
    return states == {"on"} if len(states) == 1 else None


def named_machine(row: Row) -> InstanceType | None:
    """The type that `system` names, the first of several; None where it names none that corral knows."""
    found = _types().search(row.text("system").lower())
    return instance_types()[found[1]] if found else None


def usual_machine(row: Row, model: AcceleratorModel) -> InstanceType | None:
    """Of EC2 machines without a type: the largest of the family that `system` names, else of those that have these.

    None where the machines are not EC2's, or corral has no type of theirs.
    """
    if not is_aws(row, model):
        return None
    named = _families().search(row.text("system").lower())
    families = (named[1],) if named else model.on_aws
    machines = [machine for machine in instance_types().values() if machine.family in families and machine.accelerator]
    return max(machines, key=_accelerators, default=None)


def network_gbps(row: Row, model: AcceleratorModel) -> float | None:
    """One accelerator's share of its network: the row's own cell, else its EC2 machine's; None where nobody says."""
    machine = named_machine(row)
    if machine is None or machine.accelerator is None:
        machine = usual_machine(row, model)
    return row.number("nic_gbps_per_accelerator") or (_gbps(machine) if machine else None)


def assumed_network(row: Row, job: Job) -> Iterator[str]:
    """What is taken for granted of the network that the row does not say, a sentence each."""
    named, rate = named_machine(row), f"{job.machine.network_gbps:g} Gb/s for each accelerator"
    if not row.text("nic_gbps_per_accelerator") and (named is None or named.accelerator is None):
        machine = usual_machine(row, job.machine.accelerator)
        yield f"network not published: {f'that of {machine.name}, ' if machine else ''}{rate}"
    if job.experts_span_nodes and not job.efa:
        yield (
            "neither system nor note names an EC2 type, AWS or EFA: experts exchange over a network like InfiniBand,"
            " where a token goes to a node once"
        )
    if job.experts_span_nodes and job.efa and job.expert_overlap is None:
        hidden = training_constants().expert_hidden_efa
        yield f"note has neither 'overlap on' nor 'overlap off': {hidden:.0%} of the exchange among experts is hidden"


def _accelerators(machine: InstanceType) -> int:
    return machine.accelerator.count if machine.accelerator else 0


def _gbps(machine: InstanceType) -> float:
    return machine.network_gbps / max(1, _accelerators(machine))


@cache
def _types() -> re.Pattern[str]:
    return _any_of(instance_types())


@cache
def _families() -> re.Pattern[str]:
    return _any_of(family for model in accelerators().values() for family in model.on_aws)


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    """Finds a name that is no part of a longer word; `8xp5` begins with a number of them."""
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"(?:(?<![a-z0-9])|(?<=\dx))({'|'.join(map(re.escape, longest_first))})(?![a-z0-9])")
