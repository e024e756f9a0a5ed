"""Models by name: the shape of each transformer that a run file can name. What training one takes is a forecast's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.names import UnknownName
from corral.catalog.tables import read_toml

_FEWER = 3  # layers that the first and the last stage may lack together


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerModel:
    """A decoder. `ffn` is the width of one expert where there are any; `experts` is 0 for a dense model.

    `active`: the published number of active parameters, None where it follows from the shape. `parameters_b`: billions
    that the publisher counts, None for a shape of one's own. `note`: what of the model is not in these figures.
    """

    name: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    gated: bool = True
    tied: bool = False
    biases: bool = False
    positions: int = 0
    experts: int = 0
    top_k: int = 0
    shared: int = 0
    active: float | None = None
    parameters_b: float | None = None
    source: str | None = None
    note: str | None = None


@cache
def models() -> Mapping[str, TransformerModel]:
    """Every model that corral ships, by name, in the order of the file."""
    rows: Mapping[str, Mapping[str, Any]] = read_toml("models.toml")
    return MappingProxyType({name: TransformerModel(name=name, **row) for name, row in rows.items()})


def stage_layers(layers: int, stages: int) -> int | None:
    """Layers of a pipeline stage; None where so many stages cannot be equal.

    The first and the last stage have the embedding and the output beside their layers, and may have fewer of these,
    three in all: Llama 3 405B had 126 layers on 16 stages (arXiv:2407.21783, 3.3.2), DeepSeek-V3 61 (arXiv:2412.19437).
    """
    if stages > layers:
        return None
    return next((total // stages for total in range(layers, layers + _FEWER + 1) if total % stages == 0), None)


def find_model(name: str) -> TransformerModel:
    """The model of this name. Raises UnknownName where there is none."""
    if name not in models():
        raise UnknownName("model", name, models())
    return models()[name]
