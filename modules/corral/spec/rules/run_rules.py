"""Rules about a run file, beyond the types of its fields: the model, the batch, the machines, the file systems.

Layout rules are in `layout_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.accelerators.accelerators import AcceleratorModel
from corral.catalog.accelerators.transformer import TransformerModel
from corral.catalog.accelerators.transformer_models import models
from corral.catalog.aws.instance_types import InstanceType
from corral.catalog.aws.instance_types_by_accelerator import accelerator_of
from corral.catalog.loader.suggestions import suggestion
from corral.catalog.project_catalog import Catalog
from corral.spec.models.base import BaseSpec
from corral.spec.models.cluster import ClusterSpec
from corral.spec.models.queues import QueueSpec
from corral.spec.models.run import RunSpecInput, ShapeSpec
from corral.spec.rules.layout_rules import LayoutContext, check_layout
from corral.spec.spec_errors import SpecFinding, SpecProblem

HOME = "home"
_BITS = {"fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a run file is validated against: the environment that it runs in."""

    base: BaseSpec
    cluster: ClusterSpec
    catalog: Catalog

    @property
    def queues(self) -> Mapping[str, QueueSpec]:
        """The queues by name, in declared order."""
        return {queue.name: queue for queue in self.cluster.queues}

    @property
    def file_systems(self) -> tuple[str, ...]:
        """The file systems that a run can use: the cluster's Lustre file systems, then the base's, then the home."""
        lustre = (*self.cluster.storage.lustre, *self.base.storage.lustre)
        return (*(one.name for one in lustre), *((HOME,) if self.base.storage.home else ()))

    def queue_of(self, spec: RunSpecInput) -> QueueSpec | None:
        """Return the run's queue; None if it does not exist."""
        return self.cluster.queues[0] if spec.queue is None else self.queues.get(spec.queue)

    def machine_of(self, queue: QueueSpec) -> InstanceType:
        """Return the instance type of the queue's nodes."""
        return self.catalog.instance_type(queue.instance_type)


def check(spec: RunSpecInput, context: RunContext) -> Iterator[SpecFinding]:
    """Yield findings about this run in this environment."""
    yield from _check_model(spec)
    yield from _check_batch(spec)
    yield from _check_file_systems(spec, context)
    queue = context.queue_of(spec)
    if queue is None:
        hint = suggestion(spec.queue or "", context.queues)
        yield SpecFinding(("queue",), f"{spec.queue!r} is not a queue of {context.cluster.name!r}", hint)
        return
    if spec.nodes is not None and spec.nodes > queue.nodes.max:
        what = f"{spec.nodes} is more than nodes.max of queue {queue.name!r}"
        yield SpecFinding(("nodes",), what, f"use {queue.nodes.max} or less, or raise nodes.max")
    machine = context.machine_of(queue)
    accelerator = accelerator_of(machine)
    if machine.accelerator is None or accelerator is None:
        yield _no_figures(queue, machine, context).at(("queue",))
        return
    yield from check_precision(spec.precision, machine, accelerator)
    model = model_of(spec)
    if spec.layout and model:
        laid = LayoutContext(
            model=model,
            sequence_length=spec.sequence_length,
            batch_sequences=batch_sequences(spec),
            accelerators=(spec.nodes or queue.nodes.max) * machine.accelerator.count,
        )
        yield from check_layout(spec.layout, laid)


def model_of(spec: RunSpecInput) -> TransformerModel | None:
    """Return the run's model, by name or by shape; None if it is missing, unknown or impossible."""
    if spec.shape is not None:
        return None if any(_check_shape(spec.shape)) else spec.shape.model()
    return models().get(spec.model or "")


def batch_sequences(spec: RunSpecInput) -> int | None:
    """Return the sequences per step; None if the file does not declare them."""
    if spec.batch_tokens is not None and spec.batch_sequences is None:
        return max(1, spec.batch_tokens // spec.sequence_length)
    return spec.batch_sequences


def _check_model(spec: RunSpecInput) -> Iterator[SpecFinding]:
    if spec.model is None and spec.shape is None:
        yield SpecFinding(("model",), "is missing", "set a model of the catalog, such as llama3-8b, or a shape")
    elif spec.model is not None and spec.shape is not None:
        yield SpecFinding(("shape",), "conflicts with model", "keep one")
    if spec.model is not None and spec.model not in models():
        hint = suggestion(spec.model, models())
        yield SpecFinding(("model",), f"{spec.model!r} is not in the catalog", hint)
    if spec.shape is not None:
        yield from _check_shape(spec.shape)


def _check_shape(shape: ShapeSpec) -> Iterator[SpecFinding]:
    if shape.head_dim is None and shape.hidden % shape.heads:
        yield SpecFinding(
            ("shape", "heads"), f"{shape.heads} does not divide hidden {shape.hidden}", "use a divisor, or set head_dim"
        )
    if shape.kv_heads is not None and shape.heads % shape.kv_heads:
        yield SpecFinding(
            ("shape", "kv_heads"), f"{shape.kv_heads} does not divide heads {shape.heads}", "use a divisor"
        )
    if shape.experts and not 1 <= shape.top_k <= shape.experts:
        yield SpecFinding(("shape", "top_k"), f"{shape.top_k} of {shape.experts} experts", f"use 1 to {shape.experts}")
    if not shape.experts:
        for what in ("top_k", "shared", "dense_layers"):
            if getattr(shape, what):
                yield SpecFinding(("shape", what), "requires experts", "remove it, or set experts")
    elif shape.dense_layers >= shape.layers:
        yield SpecFinding(
            ("shape", "dense_layers"),
            f"{shape.dense_layers} of {shape.layers} layers leave none for experts",
            "use fewer",
        )
    if bool(shape.dense_layers) != bool(shape.dense_ffn):
        what, other = ("dense_ffn", "dense_layers") if shape.dense_layers else ("dense_layers", "dense_ffn")
        yield SpecFinding(("shape", what), f"requires {other}", "set both, or neither")
    if shape.latent is not None and shape.kv_heads not in (None, shape.heads):
        yield SpecFinding(("shape", "kv_heads"), "does not apply to latent attention", "remove it")


def _check_batch(spec: RunSpecInput) -> Iterator[SpecFinding]:
    sequence, tokens, sequences = spec.sequence_length, spec.batch_tokens, spec.batch_sequences
    if tokens is None and sequences is None:
        yield SpecFinding(("batch_sequences",), "is missing", "set it, or batch_tokens")
    elif tokens is not None and sequences is not None:
        yield SpecFinding(("batch_tokens",), "conflicts with batch_sequences", "keep one")
    elif tokens is not None and tokens % sequence:
        below = tokens // sequence * sequence
        near = " or ".join(str(near) for near in (below, below + sequence) if near)
        yield SpecFinding(("batch_tokens",), f"{tokens} is not a multiple of sequence_length {sequence}", f"use {near}")
    step = tokens if tokens is not None else (sequences or 0) * sequence
    if step > spec.tokens:
        where = "batch_tokens" if tokens is not None else "batch_sequences"
        yield SpecFinding((where,), f"a step of {step} tokens is more than the run's {spec.tokens}", "use fewer")


def _check_file_systems(spec: RunSpecInput, context: RunContext) -> Iterator[SpecFinding]:
    fields = (
        (("checkpoint", "to"), spec.checkpoint and spec.checkpoint.to),
        (("loader", "from"), spec.loader and spec.loader.source),
    )
    known = context.file_systems
    for loc, name in fields:
        if name and name not in known:
            hint = suggestion(name, known) if known else "declare one under storage"
            yield SpecFinding(loc, f"{name!r} is not a file system of {context.cluster.name!r} or its base", hint)
    if spec.checkpoint and not spec.checkpoint.to and not known:
        yield SpecFinding(
            ("checkpoint", "to"),
            "is missing, and neither the cluster nor its base has a file system",
            "declare one under storage",
        )


def check_precision(wanted: str, machine: InstanceType, accelerator: AcceleratorModel) -> Iterator[SpecFinding]:
    """Yield a finding if these machines do not support this precision."""
    if wanted == "bf16" and not accelerator.has_bf16:
        yield SpecFinding(("precision",), f"{accelerator.name} of {machine.name} has no bf16", "use fp16 or fp32")
    elif _BITS[wanted] not in accelerator.peak_tflops:
        known = [name for name, bits in _BITS.items() if bits in accelerator.peak_tflops]
        usable = " or ".join(name for name in known if name != "bf16" or accelerator.has_bf16)
        yield SpecFinding(("precision",), f"{accelerator.name} of {machine.name} has no {wanted}", f"use {usable}")


def _no_figures(queue: QueueSpec, machine: InstanceType, context: RunContext) -> SpecProblem:
    """Return why corral has no forecast for this queue, and which queues to use instead."""
    fit = [one.name for one in context.cluster.queues if accelerator_of(context.machine_of(one))]
    use = f"use {', '.join(fit)}" if fit else "no queue has accelerators with figures"
    if machine.accelerator is None:
        return SpecProblem(f"{queue.name!r} uses {machine.name}, which has no accelerators", use)
    return SpecProblem(
        f"{queue.name!r} uses {machine.name}; the catalog has no figures for its {machine.accelerator.product}", use
    )
