"""The network of a published run: read from the words of its row, or assumed if the row has none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from corral.catalog.accelerators.accelerators import AcceleratorModel, accelerators
from corral.catalog.accelerators.training_constants import training_constants
from corral.catalog.aws.instance_types import InstanceType, instance_types
from corral.forecast.published.csv_rows import CsvRow
from corral.forecast.training.job import Job

_AWS = re.compile(r"\b(aws|amazon|ec2|sagemaker|hyperpod)\b")
_EFA = re.compile(r"\befa\b")
_NO_EFA = re.compile(r"\b(no|not|non|without)[ -](\w+ )?efa\b")
_OVERLAP = re.compile(r"\boverlap(?:ped)?[ :=]+(on|off)\b")
_ONLY_ON_AWS = "AWS"  # the vendor whose accelerators only EC2 has


def is_aws(row: CsvRow, model: AcceleratorModel) -> bool:
    """True if the run's machines are EC2 instances: only EC2 has such accelerators, or the text names EC2.

    `system` names EC2 by a type or family (`8 x p5.48xlarge`), AWS, EC2 or EFA; `note` by EFA. The network rate alone
    proves nothing: a DGX H100 has 400 Gb/s per accelerator as p5 does.
    """
    system, remark = row.text("system").lower(), row.text("note").lower()
    named = _families().search(system) or _AWS.search(system)
    efa = _EFA.search(_NO_EFA.sub("", f"{system}\n{remark}"))
    return model.vendor == _ONLY_ON_AWS or bool(named or efa)


def overlap_of(row: CsvRow) -> bool | None:
    """Whether the exchange among experts overlaps other work, from the row's note; None if the note is silent."""
    states = set(_OVERLAP.findall(row.text("note").lower()))
    return states == {"on"} if len(states) == 1 else None


def named_machine(row: CsvRow) -> InstanceType | None:
    """The first known instance type in `system`; None if there is none."""
    found = _types().search(row.text("system").lower())
    return instance_types()[found[1]] if found else None


def usual_machine(row: CsvRow, model: AcceleratorModel) -> InstanceType | None:
    """The assumed type of EC2 machines without one: the largest of the family in `system`, or with these accelerators.

    None if the machines are not EC2 instances, or corral knows no such type.
    """
    if not is_aws(row, model):
        return None
    named = _families().search(row.text("system").lower())
    families = (named[1],) if named else model.on_aws
    machines = [machine for machine in instance_types().values() if machine.family in families and machine.accelerator]
    return max(machines, key=_accelerators, default=None)


def network_gbps(row: CsvRow, model: AcceleratorModel) -> float | None:
    """One accelerator's share of the network: from the row's cell, or its EC2 type; None if neither is known."""
    machine = named_machine(row)
    if machine is None or machine.accelerator is None:
        machine = usual_machine(row, model)
    return row.number("nic_gbps_per_accelerator") or (_gbps(machine) if machine else None)


def assumed_network(row: CsvRow, job: Job) -> Iterator[str]:
    """The assumptions about the network for empty cells, one sentence each."""
    named, rate = named_machine(row), f"{job.machine.network_gbps:g} Gb/s per accelerator"
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
    """A pattern for these names as whole words, or after a count as in `8xp5`."""
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"(?:(?<![a-z0-9])|(?<=\dx))({'|'.join(map(re.escape, longest_first))})(?![a-z0-9])")
