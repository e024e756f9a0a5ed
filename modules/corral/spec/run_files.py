"""Run files: one training run each, judged against the environment that it is to run in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.spec.errors import SpecError, SpecErrors
from corral.spec.files import Environment
from corral.spec.parse import Outcome, read_wishes
from corral.spec.problems import shown
from corral.spec.rules_run import RunSurroundings, batch_sequences, check, model_of
from corral.spec.run import CheckpointSpec, LoaderSpec, RunSpec, RunWishes
from corral.spec.yaml_parts import UNREADABLE, Torn
from corral.spec.yaml_text import read_document


def read_run(path: Path, environment: Environment) -> RunSpec:
    """The run that this file declares. Raises SpecErrors with every mistake in it."""
    where = str(path)
    try:
        document = read_document(path.read_bytes())
    except OSError as error:
        raise _error(where, f"cannot be read: {error.strerror} - name a run file") from None
    torn = tuple(SpecError(file=where, path="", message=str(mistake)) for mistake in document.mistakes)
    outcome = read_run_wishes(_fields(document.value, where, torn), where=where, environment=environment)
    return Outcome(spec=outcome.spec, errors=(*torn, *outcome.errors)).checked()


def read_run_wishes(raw: Mapping[str, Any], *, where: str, environment: Environment) -> Outcome[RunSpec]:
    """The run that this raw data declares, or None, and every mistake in it; `where` names its file in errors."""
    around = RunSurroundings(base=environment.base, cluster=environment.cluster, catalogue=environment.catalogue)
    wishes, errors = read_wishes(RunWishes, raw, where, lambda wishes: check(wishes, around))
    return Outcome(spec=None if errors or wishes is None else _settled(wishes, where, around), errors=errors)


def _settled(wishes: RunWishes, where: str, around: RunSurroundings) -> RunSpec:
    model, queue, batch = model_of(wishes), around.queue_of(wishes), batch_sequences(wishes)
    assert model is not None and queue is not None and batch is not None
    machine = around.machine_of(queue)
    return RunSpec(
        file=where,
        model=model,
        tokens=wishes.tokens,
        sequence_length=wishes.sequence_length,
        batch_sequences=batch,
        precision=wishes.precision,
        offload_optimizer=wishes.offload == "optimizer",
        layout=wishes.layout,
        queue=queue.name,
        machine=machine,
        nodes=wishes.nodes or queue.nodes.max,
        efa=bool(machine.efa_maximum) and queue.efa != "off",
        checkpoint=_checkpoint(wishes.checkpoint, around),
        loader=_loader(wishes.loader, around),
    )


def _checkpoint(wishes: CheckpointSpec | None, around: RunSurroundings) -> CheckpointSpec | None:
    if wishes is None or wishes.to:
        return wishes
    return wishes.model_copy(update={"to": around.file_systems[0]})


def _loader(wishes: LoaderSpec | None, around: RunSurroundings) -> LoaderSpec | None:
    if wishes is None or wishes.source:
        return wishes
    return wishes.model_copy(update={"source": next(iter(around.file_systems), None)})


def _fields(value: Any, where: str, torn: tuple[SpecError, ...]) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    if value is UNREADABLE:
        return Torn()
    found = "is empty" if value is None else f"expected fields, found {shown(value)}"
    message = f"{found} - a run file has fields such as model, tokens and sequence_length"
    raise SpecErrors((*torn, SpecError(file=where, path="", message=message)))


def _error(where: str, message: str) -> SpecErrors:
    return SpecErrors([SpecError(file=where, path="", message=message)])
