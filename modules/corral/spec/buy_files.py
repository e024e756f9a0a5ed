"""Files of hardware to buy, each judged against the environment whose machines it would replace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corral.catalog.accelerators import AcceleratorModel, accelerator_of, accelerators
from corral.catalog.instances import InstanceType
from corral.catalog.names import suggestion
from corral.catalog.power import server_of
from corral.spec.buy import BuySpec
from corral.spec.errors import Finding
from corral.spec.files import Environment
from corral.spec.own_files import read_own_file
from corral.spec.parse import Outcome, read_wishes
from corral.spec.queues import QueueSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """Hardware to buy, what it would replace, and the accelerators of both."""

    file: str
    spec: BuySpec
    queue: str
    machine: InstanceType
    accelerator: AcceleratorModel
    servers: int

    @property
    def accelerators(self) -> int:
        """How many would be owned."""
        return self.servers * self.spec.cards_per_server


def read_purchase(path: Path, environment: Environment) -> Purchase:
    """The hardware that this file declares. Raises SpecErrors with every mistake in it."""
    where = str(path)
    raw, torn = read_own_file(path, "a file of hardware to buy", "usd_per_card, usd_per_server and years")
    spec, errors = read_wishes(BuySpec, raw, where, lambda spec: _check(spec, environment))
    found = None if errors or spec is None else _purchase(spec, where, environment)
    return Outcome(spec=found, errors=(*torn, *errors)).checked()


def _purchase(spec: BuySpec, where: str, environment: Environment) -> Purchase:
    queue = _queue(spec, environment)
    assert queue is not None  # _check has seen to it
    machine = environment.catalogue.instance_type(queue.instance_type)
    accelerator = accelerator_of(machine)
    assert accelerator is not None and machine.accelerator is not None
    wanted = queue.nodes.max * machine.accelerator.count
    servers = spec.servers or -(-wanted // spec.cards_per_server)
    return Purchase(file=where, spec=spec, queue=queue.name, machine=machine, accelerator=accelerator, servers=servers)


def _queue(spec: BuySpec, environment: Environment) -> QueueSpec | None:
    queues = environment.cluster.queues
    return queues[0] if spec.queue is None else next((one for one in queues if one.name == spec.queue), None)


def _check(spec: BuySpec, environment: Environment) -> Iterator[Finding]:
    queue = _queue(spec, environment)
    if spec.usd_per_card + spec.usd_per_server <= 0:
        yield Finding(("usd_per_server",), "is 0 as usd_per_card is - give the price of a server, or of its cards")
    if queue is None:
        names = [one.name for one in environment.cluster.queues]
        hint = suggestion(spec.queue or "", names)
        yield Finding(("queue",), f"{spec.queue!r} is not a queue of {environment.cluster.name!r} - {hint}")
        return
    machine = environment.catalogue.instance_type(queue.instance_type)
    model = accelerator_of(machine)
    if model is None:
        message = f"{queue.name!r} is of {machine.name}, of whose accelerators no figures are known - name another"
        yield Finding(("queue",), message)
        return
    if spec.accelerator is not None and spec.accelerator not in accelerators():
        hint = suggestion(spec.accelerator, accelerators())
        yield Finding(("accelerator",), f"{spec.accelerator!r} is not in the catalogue - {hint}")
    elif spec.accelerator is not None and spec.accelerator != model.name:
        same = [one.name for one in environment.cluster.queues if _has(one, spec.accelerator, environment)]
        fix = f"name queue {' or '.join(same)}, or" if same else "name another environment, or"
        message = f"is {spec.accelerator}, and queue {queue.name!r} has {model.name} - {fix} give the prices of these"
        yield Finding(("accelerator",), message)
    if spec.kw_per_server is None and server_of(model) is None:
        message = f"is missing, and nobody has published what a server with {model.name} takes - give its kW"
        yield Finding(("kw_per_server",), message)


def _has(queue: QueueSpec, accelerator: str, environment: Environment) -> bool:
    model = accelerator_of(environment.catalogue.instance_type(queue.instance_type))
    return model is not None and model.name == accelerator
