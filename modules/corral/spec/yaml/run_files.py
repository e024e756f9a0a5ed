"""Run files: one training run each, validated against the environment that it runs in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.spec.loader import ParseResult, try_parse_model
from corral.spec.models.run import CheckpointSpec, LoaderSpec, RunSpec, RunSpecInput
from corral.spec.rules.run_rules import RunContext, batch_sequences, check, model_of
from corral.spec.spec_errors import SpecError
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.yaml_files import read_fields


def read_run(path: Path, environment: Environment) -> RunSpec:
    """Read the run declared in this file. Raises SpecErrors with every mistake in it."""
    where = str(path)
    raw, torn = read_fields(path, "a run file", "model, tokens and sequence_length")
    return try_parse_run(raw, where=where, environment=environment, torn=torn).unwrap()


def try_parse_run(
    raw: Mapping[str, Any], *, where: str, environment: Environment, torn: tuple[SpecError, ...] = ()
) -> ParseResult[RunSpec]:
    """Parse a run from raw data. The result has None as spec if there are errors, those of the YAML first.

    `where` names the file in errors. If the YAML is torn, a missing required field is not reported.
    """
    context = RunContext(base=environment.base, cluster=environment.cluster, catalog=environment.catalog)
    spec, found = try_parse_model(RunSpecInput, raw, where, lambda spec: check(spec, context))
    errors = (*torn, *found)
    return ParseResult(spec=None if errors or spec is None else _settled(spec, where, context), errors=errors)


def _settled(spec: RunSpecInput, where: str, context: RunContext) -> RunSpec:
    model, queue, batch = model_of(spec), context.queue_of(spec), batch_sequences(spec)
    assert model is not None and queue is not None and batch is not None
    machine = context.machine_of(queue)
    return RunSpec(
        file=where,
        model=model,
        tokens=spec.tokens,
        sequence_length=spec.sequence_length,
        batch_sequences=batch,
        precision=spec.precision,
        offload_optimizer=spec.offload == "optimizer",
        layout=spec.layout,
        queue=queue.name,
        machine=machine,
        nodes=spec.nodes or queue.nodes.max,
        efa=bool(machine.efa_maximum) and queue.efa != "off",
        checkpoint=_checkpoint(spec.checkpoint, context),
        loader=_loader(spec.loader, context),
        usd_total_max=spec.usd_total_max,
        download_gb=spec.download_gb,
        spot_interruptions=spec.spot_interruptions,
    )


def _checkpoint(spec: CheckpointSpec | None, context: RunContext) -> CheckpointSpec | None:
    if spec is None or spec.to:
        return spec
    return spec.model_copy(update={"to": context.file_systems[0]})


def _loader(spec: LoaderSpec | None, context: RunContext) -> LoaderSpec | None:
    if spec is None or spec.source:
        return spec
    return spec.model_copy(update={"source": next(iter(context.file_systems), None)})
