"""Converts a declared run into a job to forecast: model shape, accelerators, network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from corral.catalog.accelerators.accelerators import AcceleratorModel
from corral.catalog.accelerators.training_constants import training_constants
from corral.catalog.aws.instance_types import InstanceType
from corral.catalog.aws.instance_types_by_accelerator import accelerator_of
from corral.forecast.training.interconnect import links_of
from corral.forecast.training.job import Job, Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.search_space import OpenJob
from corral.spec.models.run import LayoutSpec, RunSpec
from corral.spec.rules.layout_rules import data_ranks

_MAX_IN_A_NODE = 16  # accelerators; a larger link domain spans nodes
_FOR_THE_RUN = 0.9  # of the host's memory; the system and the data loader use the rest


def open_job_of(run: RunSpec) -> OpenJob:
    """The job of the run, with an open layout."""
    machine, model = run.machine, _accelerator(run.machine)
    count = machine.accelerator.count if machine.accelerator else 1
    return OpenJob(
        shape=run.model,
        machine=links_of(model, machine.network_gbps / count),
        nodes=run.nodes,
        per_node=count,
        host_gib=machine.memory_mib / 1024 / count * _FOR_THE_RUN,
        seq_len=run.sequence_length,
        global_batch=run.batch_sequences,
        precision=Precision(run.precision),
        efa=run.efa,
        offload_optimizer=run.offload_optimizer,
    )


def declared_layout(spec: LayoutSpec, accelerators: int) -> Layout:
    """The declared layout; tensor parallelism implies sequence parallelism."""
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
    """The assumptions of the forecast about this run and its layout, one sentence each."""
    model = _accelerator(run.machine)
    if run.nodes > 1 and not run.efa:
        yield "without EFA: TCP is assumed as fast as EFA, which is too fast"
    for lender in model.measured_on:
        yield f"measured shares of {lender} are used in place of missing ones of {model.name}"
    if run.model.caveat:
        yield f"{run.model.name}: {run.model.caveat}"
    if job.layout.sharding is Sharding.ZERO2 and job.micro_batches > 1:
        yield "zero2 with several micro-batches: gradients are assumed to be reduced once per step, which is too fast"
    if run.offload_optimizer:
        yield "figures of the host's links and memory were not measured for offload"
    own = model.attention_share.get(model.width(job.precision.bits))
    if own is not None and own < training_constants().attention_share:
        yield (f"attention as in published runs, mostly FlashAttention-2: an implementation for {model.name} is faster")


def _accelerator(machine: InstanceType) -> AcceleratorModel:
    """The accelerator model with the link domain of this machine. The rules of run files guarantee that it exists."""
    model = accelerator_of(machine)
    if model is None or machine.accelerator is None:
        raise ValueError(f"no figures for the accelerators of {machine.name}")
    if model.link_domain > _MAX_IN_A_NODE:
        return model
    return replace(model, link_domain=min(model.link_domain, machine.accelerator.count))
