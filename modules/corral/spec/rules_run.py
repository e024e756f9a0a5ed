"""Rules about a run file, beyond the shape of its fields: the model, the batch, the machines, the file systems.

Rules of the layout are `rules_layout`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.catalog.accelerators import AcceleratorModel, accelerator_of
from corral.catalog.instances import InstanceType
from corral.catalog.models import models
from corral.catalog.names import suggestion
from corral.catalog.project import Catalogue
from corral.catalog.transformer import TransformerModel
from corral.spec.base import BaseSpec
from corral.spec.cluster import ClusterSpec
from corral.spec.errors import Finding
from corral.spec.queues import QueueSpec
from corral.spec.rules_layout import Laid, check_layout
from corral.spec.run import RunWishes, ShapeSpec

HOME = "home"
_BITS = {"fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSurroundings:
    """What a run file is judged against: the environment that it is to run in."""

    base: BaseSpec
    cluster: ClusterSpec
    catalogue: Catalogue

    @property
    def queues(self) -> Mapping[str, QueueSpec]:
        """The queues by name, in their order."""
        return {queue.name: queue for queue in self.cluster.queues}

    @property
    def file_systems(self) -> tuple[str, ...]:
        """What a run can read and write: the cluster's Lustre file systems, then the base's, then the home."""
        lustre = (*self.cluster.storage.lustre, *self.base.storage.lustre)
        return (*(one.name for one in lustre), *((HOME,) if self.base.storage.home else ()))

    def queue_of(self, wishes: RunWishes) -> QueueSpec | None:
        """The queue that is meant; None where there is none of this name."""
        return self.cluster.queues[0] if wishes.queue is None else self.queues.get(wishes.queue)

    def machine_of(self, queue: QueueSpec) -> InstanceType:
        """What its nodes are."""
        return self.catalogue.instance_type(queue.instance_type)


def check(wishes: RunWishes, around: RunSurroundings) -> Iterator[Finding]:
    """What is wrong with this run in this environment."""
    yield from _check_model(wishes)
    yield from _check_batch(wishes)
    yield from _check_places(wishes, around)
    queue = around.queue_of(wishes)
    if queue is None:
        hint = suggestion(wishes.queue or "", around.queues)
        yield Finding(("queue",), f"{wishes.queue!r} is not a queue of {around.cluster.name!r} - {hint}")
        return
    if wishes.nodes is not None and wishes.nodes > queue.nodes.max:
        message = f"{wishes.nodes} is more than queue {queue.name!r} may have - use {queue.nodes.max} or less"
        yield Finding(("nodes",), f"{message}, or a larger nodes.max there")
    machine = around.machine_of(queue)
    accelerator = accelerator_of(machine)
    if machine.accelerator is None or accelerator is None:
        yield Finding(("queue",), _no_figures(queue, machine, around))
        return
    yield from check_precision(wishes.precision, machine, accelerator)
    model = model_of(wishes)
    if wishes.layout and model:
        laid = Laid(
            model=model,
            sequence_length=wishes.sequence_length,
            batch_sequences=batch_sequences(wishes),
            accelerators=(wishes.nodes or queue.nodes.max) * machine.accelerator.count,
        )
        yield from check_layout(wishes.layout, laid)


def model_of(wishes: RunWishes) -> TransformerModel | None:
    """The model that is meant, by name or by shape; None where none is, or where its shape cannot be."""
    if wishes.shape is not None:
        return None if any(_check_shape(wishes.shape)) else wishes.shape.model()
    return models().get(wishes.model or "")


def batch_sequences(wishes: RunWishes) -> int | None:
    """Sequences of a step; None where the file does not say them."""
    if wishes.batch_tokens is not None and wishes.batch_sequences is None:
        return max(1, wishes.batch_tokens // wishes.sequence_length)
    return wishes.batch_sequences


def _check_model(wishes: RunWishes) -> Iterator[Finding]:
    if wishes.model is None and wishes.shape is None:
        yield Finding(("model",), "is missing - a model of corral's catalogue, such as llama3-8b, or a shape")
    elif wishes.model is not None and wishes.shape is not None:
        yield Finding(("shape",), "is instead of model - leave one of them out")
    if wishes.model is not None and wishes.model not in models():
        hint = suggestion(wishes.model, models())
        yield Finding(("model",), f"{wishes.model!r} is not in the catalogue - {hint}")
    if wishes.shape is not None:
        yield from _check_shape(wishes.shape)


def _check_shape(shape: ShapeSpec) -> Iterator[Finding]:
    if shape.head_dim is None and shape.hidden % shape.heads:
        message = f"{shape.heads} do not divide hidden {shape.hidden} - use a divisor, or give head_dim"
        yield Finding(("shape", "heads"), message)
    if shape.kv_heads is not None and shape.heads % shape.kv_heads:
        message = f"{shape.kv_heads} do not divide heads {shape.heads} - use a divisor"
        yield Finding(("shape", "kv_heads"), message)
    if shape.experts and not 1 <= shape.top_k <= shape.experts:
        message = f"{shape.top_k} of {shape.experts} experts - use 1 to {shape.experts}"
        yield Finding(("shape", "top_k"), message)
    if not shape.experts:
        for what in ("top_k", "shared", "dense_layers"):
            if getattr(shape, what):
                yield Finding(("shape", what), "is for models with experts - leave it out, or give experts")
    elif shape.dense_layers >= shape.layers:
        message = f"{shape.dense_layers} of {shape.layers} layers leave none for experts - use fewer"
        yield Finding(("shape", "dense_layers"), message)
    if bool(shape.dense_layers) != bool(shape.dense_ffn):
        what, other = ("dense_ffn", "dense_layers") if shape.dense_layers else ("dense_layers", "dense_ffn")
        yield Finding(("shape", what), f"goes with {other} - give both, or neither")
    if shape.latent is not None and shape.kv_heads not in (None, shape.heads):
        yield Finding(("shape", "kv_heads"), "is not for latent attention, where each head has its own - leave it out")


def _check_batch(wishes: RunWishes) -> Iterator[Finding]:
    sequence, tokens, sequences = wishes.sequence_length, wishes.batch_tokens, wishes.batch_sequences
    if tokens is None and sequences is None:
        yield Finding(("batch_sequences",), "is missing - sequences of a step, or batch_tokens")
    elif tokens is not None and sequences is not None:
        yield Finding(("batch_tokens",), "is instead of batch_sequences - leave one of them out")
    elif tokens is not None and tokens % sequence:
        below = tokens // sequence * sequence
        near = " or ".join(str(near) for near in (below, below + sequence) if near)
        yield Finding(("batch_tokens",), f"{tokens} is no multiple of sequence_length {sequence} - use {near}")
    step = tokens if tokens is not None else (sequences or 0) * sequence
    if step > wishes.tokens:
        where = "batch_tokens" if tokens is not None else "batch_sequences"
        yield Finding((where,), f"a step of {step} tokens is more than the run's {wishes.tokens} - use fewer")


def _check_places(wishes: RunWishes, around: RunSurroundings) -> Iterator[Finding]:
    places = (
        (("checkpoint", "to"), wishes.checkpoint and wishes.checkpoint.to),
        (("loader", "from"), wishes.loader and wishes.loader.source),
    )
    known = around.file_systems
    for loc, name in places:
        if name and name not in known:
            hint = suggestion(name, known) if known else "there is none; declare one under storage"
            yield Finding(loc, f"{name!r} is not a file system of {around.cluster.name!r} or its base - {hint}")
    if wishes.checkpoint and not wishes.checkpoint.to and not known:
        message = "is missing, and neither the cluster nor its base has a file system - declare one under storage"
        yield Finding(("checkpoint", "to"), message)


def check_precision(wanted: str, machine: InstanceType, accelerator: AcceleratorModel) -> Iterator[Finding]:
    """What is wrong with these numbers on these machines."""
    if wanted == "bf16" and not accelerator.has_bf16:
        yield Finding(("precision",), f"{accelerator.name} of {machine.name} has no bf16 - use fp16 or fp32")
    elif _BITS[wanted] not in accelerator.peak_tflops:
        known = [name for name, bits in _BITS.items() if bits in accelerator.peak_tflops]
        usable = " or ".join(name for name in known if name != "bf16" or accelerator.has_bf16)
        yield Finding(("precision",), f"{accelerator.name} of {machine.name} has no {wanted} - use {usable}")


def _no_figures(queue: QueueSpec, machine: InstanceType, around: RunSurroundings) -> str:
    """Why nothing can be forecast for this queue, and which ones would do."""
    fit = [one.name for one in around.cluster.queues if accelerator_of(around.machine_of(one))]
    use = f"use {', '.join(fit)}" if fit else "no queue of this cluster has others"
    if machine.accelerator is None:
        return f"{queue.name!r} is of {machine.name}, which has no accelerators - {use}"
    return f"{queue.name!r} is of {machine.name}, and no figures of its {machine.accelerator.product} are known - {use}"
