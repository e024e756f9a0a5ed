"""Open jobs and declared runs for the tests of the layout search and of run forecasts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from corral.catalog.accelerators.accelerators import find_accelerator
from corral.catalog.accelerators.transformer_models import models
from corral.forecast.training.interconnect import links_of
from corral.forecast.training.job import Precision
from corral.forecast.training.search_space import OpenJob
from corral.spec.models.queues import NodesSpec
from corral.spec.models.run import RunSpec
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.run_files import try_parse_run
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT


def open_job(
    model: str, nodes: int, batch: int, *, seq_len: int = 8192, accelerator: str = "H100-80", **others: Any
) -> OpenJob:
    """On nodes of eight, with 230 GiB of the host's memory for each accelerator."""
    given = {"precision": Precision.BF16, "host_gib": 230.0, **others}
    return OpenJob(
        shape=models()[model],
        machine=links_of(find_accelerator(accelerator), None),
        nodes=nodes,
        per_node=8,
        seq_len=seq_len,
        global_batch=batch,
        **given,
    )


def environment(instance_type: str = "p5.48xlarge", **queue: Any) -> Environment:
    """The shipped `train`, its queue of up to 2048 machines of this type."""
    shipped = read_environment(PROJECT, "train")
    changes = {"instance_type": instance_type, "nodes": NodesSpec(min=0, max=2048), **queue}
    queues = (shipped.cluster.queues[0].model_copy(update=changes),)
    return replace(shipped, cluster=shipped.cluster.model_copy(update={"queues": queues}))


def run(model: str, nodes: int, *, instance_type: str = "p5.48xlarge", efa: str = "auto", **fields: Any) -> RunSpec:
    """A run of this model on so many machines, with sequences of 8192."""
    raw = {"model": model, "nodes": nodes, "tokens": "1T", "sequence_length": 8192, "batch_sequences": 512, **fields}
    return try_parse_run(raw, where="run.yaml", environment=environment(instance_type, efa=efa)).unwrap()
