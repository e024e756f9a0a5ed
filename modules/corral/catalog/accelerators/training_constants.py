"""Constants of the training speed forecast, each with its source. `forecast` has the formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType

from corral.catalog.loader.data_files import read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConstants:
    """The constants in data/training_constants.toml.

    Fractions of 1, except `..._s` (seconds), `..._bytes_per_s`, `score_bytes` and `state_traffic` (bytes).
    """

    link_share: float
    link_alpha_s: float
    network_alpha_s: float
    all_to_all_share: float
    single_card_share: float
    hbm_share: float
    attention_share: float
    products_traffic_seen: float
    score_bytes: float
    slowed: float
    slowed_deepspeed: float
    tensor_hidden: float
    context_hidden: float
    uneven: float
    straggler: float
    state_traffic: float
    host_link_bytes_per_s: float
    host_memory_bytes_per_s: float
    expert_share: float
    expert_kernels_s: float
    routing_s: float
    routing_efa_s: float
    expert_hidden: float
    expert_hidden_efa: float
    expert_overlapped_efa: float


@cache
def training_constants() -> TrainingConstants:
    """Return the constants of the training forecast, read once per process."""
    rows = read_toml("training_constants.toml")
    return TrainingConstants(**{field.name: float(rows[field.name]["value"]) for field in fields(TrainingConstants)})


@cache
def origins() -> Mapping[str, str]:
    """Return the source of each constant, by name."""
    return MappingProxyType({name: row["how"] for name, row in read_toml("training_constants.toml").items()})
