"""Purchase files, validated against the environment whose machines the servers would replace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corral.catalog.accelerators.accelerators import AcceleratorModel, accelerators
from corral.catalog.accelerators.power import server_of
from corral.catalog.aws.instance_types import InstanceType
from corral.catalog.aws.instance_types_by_accelerator import accelerator_of
from corral.catalog.loader.suggestions import suggestion
from corral.spec.loader import ParseResult, try_parse_model
from corral.spec.models.buy import BuySpec
from corral.spec.models.queues import QueueSpec
from corral.spec.spec_errors import SpecFinding
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.yaml_files import read_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """Hardware to buy, and the queue, machine and accelerator that it would replace."""

    file: str
    spec: BuySpec
    queue: str
    machine: InstanceType
    accelerator: AcceleratorModel
    servers: int


def read_purchase(path: Path, environment: Environment) -> Purchase:
    """Read the hardware declared in this file. Raises SpecErrors with every mistake in it."""
    where = str(path)
    raw, torn = read_fields(path, "a purchase file", "usd_per_accelerator, usd_per_server and years")
    spec, errors = try_parse_model(BuySpec, raw, where, lambda spec: _check(spec, environment))
    found = None if errors or spec is None else _purchase(spec, where, environment)
    return ParseResult(spec=found, errors=(*torn, *errors)).unwrap()


def _purchase(spec: BuySpec, where: str, environment: Environment) -> Purchase:
    queue = _queue(spec, environment)
    assert queue is not None  # _check reported it
    machine = environment.catalog.instance_type(queue.instance_type)
    accelerator = accelerator_of(machine)
    assert accelerator is not None and machine.accelerator is not None
    wanted = queue.nodes.max * machine.accelerator.count
    servers = spec.servers or -(-wanted // spec.accelerators_per_server)
    return Purchase(file=where, spec=spec, queue=queue.name, machine=machine, accelerator=accelerator, servers=servers)


def _queue(spec: BuySpec, environment: Environment) -> QueueSpec | None:
    queues = environment.cluster.queues
    return queues[0] if spec.queue is None else next((one for one in queues if one.name == spec.queue), None)


def _check(spec: BuySpec, environment: Environment) -> Iterator[SpecFinding]:
    queue = _queue(spec, environment)
    if spec.usd_per_accelerator + spec.usd_per_server <= 0:
        yield SpecFinding(
            ("usd_per_server",),
            "is 0, and so is usd_per_accelerator",
            "set the price of a server, or of its accelerators",
        )
    if queue is None:
        names = [one.name for one in environment.cluster.queues]
        hint = suggestion(spec.queue or "", names)
        yield SpecFinding(("queue",), f"{spec.queue!r} is not a queue of {environment.cluster.name!r}", hint)
        return
    machine = environment.catalog.instance_type(queue.instance_type)
    model = accelerator_of(machine)
    if model is None:
        yield SpecFinding(
            ("queue",),
            f"{queue.name!r} uses {machine.name}; the catalog has no figures for its accelerators",
            "use another queue",
        )
        return
    if spec.accelerator is not None and spec.accelerator not in accelerators():
        hint = suggestion(spec.accelerator, accelerators())
        yield SpecFinding(("accelerator",), f"{spec.accelerator!r} is not in the catalog", hint)
    elif spec.accelerator is not None and spec.accelerator != model.name:
        same = [one.name for one in environment.cluster.queues if _has(one, spec.accelerator, environment)]
        fix = f"use queue {' or '.join(same)}" if same else "use another environment"
        yield SpecFinding(
            ("accelerator",),
            f"is {spec.accelerator}, but queue {queue.name!r} has {model.name}",
            f"{fix}, or set prices of these",
        )
    if spec.kw_per_server is None and server_of(model) is None:
        yield SpecFinding(
            ("kw_per_server",), "is missing", f"the catalog has no power of a server with {model.name}; set it in kW"
        )


def _has(queue: QueueSpec, accelerator: str, environment: Environment) -> bool:
    model = accelerator_of(environment.catalog.instance_type(queue.instance_type))
    return model is not None and model.name == accelerator
