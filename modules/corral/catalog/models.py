"""Models by name: the shape of each transformer that a run file can name. What training one takes is a forecast's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.names import UnknownName
from corral.catalog.tables import read_toml
from corral.catalog.transformer import LatentAttention, TransformerModel

_FEWER = 3  # layers that the first and the last stage may lack together


@cache
def models() -> Mapping[str, TransformerModel]:
    """Every model that corral ships, by name, in the order of the file."""
    rows: Mapping[str, Mapping[str, Any]] = read_toml("models.toml")
    return MappingProxyType({name: _model(name, row) for name, row in rows.items()})


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


def _model(name: str, row: Mapping[str, Any]) -> TransformerModel:
    latent = row.get("latent")
    return TransformerModel(name=name, **{**row, "latent": LatentAttention(**latent) if latent else None})
