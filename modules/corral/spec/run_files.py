"""Run files: one training run each, judged against the environment that it is to run in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.spec.errors import SpecError
from corral.spec.files import Environment
from corral.spec.own_files import read_own_file
from corral.spec.parse import Outcome, read_wishes
from corral.spec.rules_run import RunSurroundings, batch_sequences, check, model_of
from corral.spec.run import CheckpointSpec, LoaderSpec, RunSpec, RunWishes


def read_run(path: Path, environment: Environment) -> RunSpec:
    """The run that this file declares. Raises SpecErrors with every mistake in it."""
    where = str(path)
    raw, torn = read_own_file(path, "a run file", "model, tokens and sequence_length")
    return read_run_wishes(raw, where=where, environment=environment, torn=torn).checked()


def read_run_wishes(
    raw: Mapping[str, Any], *, where: str, environment: Environment, torn: tuple[SpecError, ...] = ()
) -> Outcome[RunSpec]:
    """The run that this raw data declares, or None, and every mistake in it, those of its YAML first.

    `where` names its file in errors. Where the YAML is torn, a field that is needed may be missing without a word.
    """
    around = RunSurroundings(base=environment.base, cluster=environment.cluster, catalogue=environment.catalogue)
    wishes, found = read_wishes(RunWishes, raw, where, lambda wishes: check(wishes, around))
    errors = (*torn, *found)
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
        usd_total_max=wishes.usd_total_max,
        download_gb=wishes.download_gb,
        spot_interruptions=wishes.spot_interruptions,
    )


def _checkpoint(wishes: CheckpointSpec | None, around: RunSurroundings) -> CheckpointSpec | None:
    if wishes is None or wishes.to:
        return wishes
    return wishes.model_copy(update={"to": around.file_systems[0]})


def _loader(wishes: LoaderSpec | None, around: RunSurroundings) -> LoaderSpec | None:
    if wishes is None or wishes.source:
        return wishes
    return wishes.model_copy(update={"source": next(iter(around.file_systems), None)})
