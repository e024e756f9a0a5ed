"""Models by name: the shape of each transformer that a run file can name. `forecast` computes their training."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.accelerators.transformer import LatentAttention, TransformerModel
from corral.catalog.loader.data_files import read_toml

_FEWER = 3  # layers that the first and last stage together may have less than the others


@cache
def models() -> Mapping[str, TransformerModel]:
    """Return every model that corral ships, by name, in the order of the file."""
    rows: Mapping[str, Mapping[str, Any]] = read_toml("models.toml")
    return MappingProxyType({name: _model(name, row) for name, row in rows.items()})


def stage_layers(layers: int, stages: int) -> int | None:
    """Return the layers of a pipeline stage; None if the layers do not divide equally.

    The first and the last stage also hold the embedding and the output, and may have up to three layers less in total:
    Llama 3 405B had 126 layers on 16 stages (arXiv:2407.21783, 3.3.2), DeepSeek-V3 61 (arXiv:2412.19437).
    """
    if stages > layers:
        return None
    return next((total // stages for total in range(layers, layers + _FEWER + 1) if total % stages == 0), None)


def _model(name: str, row: Mapping[str, Any]) -> TransformerModel:
    latent = row.get("latent")
    return TransformerModel(name=name, **{**row, "latent": LatentAttention(**latent) if latent else None})
