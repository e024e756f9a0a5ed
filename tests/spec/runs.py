"""A valid run file, as data, in the shipped environment `train`, and its errors after edits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from corral.spec.loader import ParseResult
from corral.spec.models.run import RunSpec
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.run_files import try_parse_run
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT

GOOD: Mapping[str, Any] = {
    "model": "llama3-8b",
    "tokens": "1T",
    "sequence_length": 8192,
    "batch_sequences": 512,
    "precision": "bf16",
    "offload": "none",
    "layout": {
        "tensor": 2,
        "pipeline": 4,
        "context": 1,
        "expert": 1,
        "data": 16,
        "sharding": "zero1",
        "micro_batch": 2,
        "virtual_stages": 4,
        "recompute": "none",
    },
    "queue": "train",
    "nodes": 16,
    "checkpoint": {"interval": "30m", "to": "data", "keep": 2, "asynchronous": False},
    "loader": {"from": "home", "bytes_per_token": 4, "file_mib": 256.0, "workers": 4, "tokenize": "before"},
    "usd_total_max": 250000,
}
SHAPE: Mapping[str, Any] = {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 14336, "vocabulary": 32000}


@cache
def train() -> Environment:
    return read_environment(PROJECT, "train")


def outcome(**changes: Any) -> ParseResult[RunSpec]:
    """The run file after these changes, parsed. The value `...` removes a field."""
    raw = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    return try_parse_run(raw, where="run.yaml", environment=train())


def run(**changes: Any) -> RunSpec:
    return outcome(**changes).unwrap()


def layout(**changes: Any) -> dict[str, Any]:
    """The good run's layout after these changes."""
    return {key: value for key, value in {**GOOD["layout"], **changes}.items() if value is not ...}
