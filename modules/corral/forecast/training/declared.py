"""A declared run as a job to forecast: its model as a shape, its queue's machines as accelerators in a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from corral.catalog.accelerators import AcceleratorModel, accelerator_of
from corral.catalog.instances import InstanceType
from corral.catalog.training_constants import training_constants
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.network import machine_of
from corral.forecast.training.open_job import OpenJob
from corral.spec.rules_layout import data_ranks
from corral.spec.run import LayoutSpec, RunSpec

_MOST_IN_A_NODE = 16  # accelerators; a larger link domain spans nodes
_FOR_THE_RUN = 0.9  # of the host's memory; the rest is the system's and the loader's


def open_job_of(run: RunSpec) -> OpenJob:
    """The job that the run is, its layout left open."""
    machine, model = run.machine, _accelerator(run.machine)
    count = machine.accelerator.count if machine.accelerator else 1
    return OpenJob(
        shape=run.model,
        machine=machine_of(model, machine.network_gbps / count),
        nodes=run.nodes,
        per_node=count,
        host_gib=machine.memory_mib / 1024 / count * _FOR_THE_RUN,
        seq_len=run.sequence_length,
        global_batch=run.batch_sequences,
        precision=Precision(run.precision),
        efa=run.efa,
        offload_optimizer=run.offload_optimizer,
    )


def layout_of(spec: LayoutSpec, accelerators: int) -> Layout:
    """The declared layout; sequence parallelism goes with tensor parallelism."""
    return Layout(
        tp=spec.tensor,
        pp=spec.pipeline,
        cp=spec.context,
        ep=spec.expert,
        dp=data_ranks(spec, accelerators),
        virtual_stages=spec.virtual_stages,
        sharding=Sharding(spec.sharding),
        micro_batch=spec.micro_batch,
        recompute=Recompute(spec.recompute),
        sequence_parallel=spec.tensor > 1,
    )


def assumptions(run: RunSpec, job: Job) -> Iterator[str]:
    """What the forecast takes for granted about this run as it is laid out, a sentence each."""
    model = _accelerator(run.machine)
    if run.nodes > 1 and not run.efa:
        yield "without EFA: TCP is taken to reach what EFA does, which is too fast"
    for lender in model.borrowed:
        yield f"measured shares of {lender} stand in for those that nobody measured on {model.name}"
    if run.model.note:
        yield f"{run.model.name}: {run.model.note}"
    if job.layout.sharding is Sharding.ZERO2 and job.micro_batches > 1:
        yield "zero2 with several micro-batches: gradients are taken to be reduced once a step, which is too fast"
    if run.offload_optimizer:
        yield "the host's links and memory are figures that nobody measured for this"
    own = model.attention_share.get(model.width(job.precision.bits))
    if own is not None and own < training_constants().attention_share:
        yield (
            f"attention as the published runs had it, mostly FlashAttention-2: one that uses what {model.name} has is"
            " faster"
        )


def _accelerator(machine: InstanceType) -> AcceleratorModel:
    """The model, joined as this machine joins it. The rules of run files have seen to it that there is one."""
    model = accelerator_of(machine)
    if model is None or machine.accelerator is None:
        raise ValueError(f"no figures of the accelerators of {machine.name}")
    if model.link_domain > _MOST_IN_A_NODE:
        return model
    return replace(model, link_domain=min(model.link_domain, machine.accelerator.count))
