"""Accelerators: memory, peak rates, measurements. `forecast` computes how fast runs are on them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.loader.data_files import read_csv, read_toml
from corral.catalog.loader.suggestions import UnknownName

_TWO_WAYS = 2  # vendors quote the sum of both directions of a link
_SHORTEST = 3  # letters of a prefix that matches models, such as TPU


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorModel:
    """One model of accelerator; figures are per device, mappings are by number width in bits.

    `achievable` is the share of the peak that the best matrix multiplication reaches; `training_share` is the share of
    that which matrix multiplications of whole runs reach (calibrated). `attention_share` is the rate of attention
    relative to 16-bit products, by the products' width; empty if attention has no rate of its own. `link_gb_per_s` is
    the sum of both directions; the link connects `link_domain` devices. `network_gbps` is a device's usual share of its
    node's network. `measured_on`: the models whose measurements replace missing ones. `has_bf16`: it supports bf16,
    not only fp16. `calibrated`: the training share is its own. `aliases`: other names of it; `categories`: words for
    it and similar ones. `on_aws`: families that have it; empty if none has.
    `assumed`: figures without a verifiable source; formulas use them, tables omit them.
    """

    name: str
    vendor: str
    aliases: tuple[str, ...]
    categories: tuple[str, ...]
    memory_gib: float
    hbm_gb_per_s: float
    peak_tflops: Mapping[int, float]
    achievable: Mapping[int, float]
    training_share: Mapping[int, float]
    attention_share: Mapping[int, float]
    link_gb_per_s: float
    link_domain: int
    network_gbps: float
    tdp_w: int
    ranks: int
    on_aws: tuple[str, ...]
    measured_on: tuple[str, ...]
    has_bf16: bool
    calibrated: bool
    assumed: tuple[str, ...]
    source: str
    caveat: str | None

    @property
    def provisionable(self) -> bool:
        """Whether AWS offers machines with it."""
        return bool(self.on_aws)

    @property
    def link_one_way_bytes_per_s(self) -> float:
        """The link bandwidth of one device in one direction."""
        return self.link_gb_per_s / _TWO_WAYS * 1e9

    def width(self, bits: int) -> int:
        """Return the width used to multiply numbers of this width: the same, or the next wider with a peak."""
        if bits in self.peak_tflops:
            return bits
        return min(width for width in self.peak_tflops if width >= min(bits, max(self.peak_tflops)))

    def peak_flops(self, bits: int) -> float:
        """Return the dense peak in FLOP/s for numbers of this width."""
        return self.peak_tflops[self.width(bits)] * 1e12

    def reached_flops(self, bits: int) -> float:
        """Return the FLOP/s of large matrix multiplications in a training run."""
        width = self.width(bits)
        return self.peak_flops(bits) * self.achievable[width] * self.training_share[width]


@cache
def accelerators() -> Mapping[str, AcceleratorModel]:
    """Return every model that corral ships, by name, in the order of the file."""
    rows = read_toml("accelerators.toml")
    return MappingProxyType({name: _accelerator(name, rows) for name in rows})


def find_accelerator(name: str) -> AcceleratorModel:
    """Return the model of this name, ignoring case, spaces and hyphens. Raises UnknownName."""
    known = accelerators()
    for model in known.values():
        if _folded(name) in map(_folded, (model.name, *model.aliases)):
            return model
    raise UnknownName("accelerator", name, known)


def find_not_on_aws(name: str) -> AcceleratorModel | None:
    """Return the model with this name or alias that is not on AWS, such as `TPU v5p` or `trillium`; None for others."""
    found = [model for model in accelerators().values() if _means(_folded(name), model)]
    return None if any(model.provisionable for model in found) else next(iter(found), None)


@cache
def published_runs(name: str, bits: int | None = None) -> int:
    """Return how many published runs this model's constants were fitted to; with `bits`: dense ones of this width."""
    rows = (*read_csv("training_runs.csv"), *read_csv("training_runs_second.csv"))
    return sum(
        _folded(row["accelerator"]) == _folded(name)
        and (bits is None or (not row["experts"] and _bits(row["precision"]) == bits))
        for row in rows
    )


def _bits(precision: str) -> int:
    return next((bits for bits in (4, 8) if f"fp{bits}" in precision), 16)


def _means(word: str, model: AcceleratorModel) -> bool:
    names = [_folded(name) for name in (model.name, *model.aliases, *model.categories)]
    return any(name in word or (len(word) >= _SHORTEST and name.startswith(word)) for name in names)


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _accelerator(name: str, rows: Mapping[str, Any]) -> AcceleratorModel:
    row = rows[name]
    lenders = tuple(dict.fromkeys(row[key] for key in ("achievable_of", "training_share_of") if key in row))
    peaks = _by_width(row["peak_tflops"])
    return AcceleratorModel(
        name=name,
        vendor=row["vendor"],
        aliases=tuple(row.get("also", ())),
        categories=tuple(row.get("kinds", ())),
        memory_gib=float(row["memory_gib"]),
        hbm_gb_per_s=float(row["hbm_gb_per_s"]),
        peak_tflops=MappingProxyType(peaks),
        achievable=_measured("achievable", name, rows, peaks),
        training_share=_measured("training_share", name, rows, peaks),
        attention_share=_measured("attention_share", name, rows, peaks, lender="training_share_of"),
        link_gb_per_s=float(row["link_gb_per_s"]),
        link_domain=row["link_domain"],
        network_gbps=float(row["network_gbps"]),
        tdp_w=row["tdp_w"],
        ranks=row.get("ranks", 1),
        on_aws=tuple(row["on_aws"]),
        measured_on=lenders,
        has_bf16=row.get("bf16", True),
        calibrated="training_share" in row,
        assumed=tuple(row.get("assumed", ())),
        source=row["source"],
        caveat=row.get("caveat"),
    )


def _measured(
    key: str, name: str, rows: Mapping[str, Any], peaks: Mapping[int, float], *, lender: str | None = None
) -> Mapping[int, float]:
    """Return a measurement for each width with a peak: its own, its lender's, or that of the next wider width.

    Empty if neither has one.
    """
    found = _chain(key, name, rows, lender or f"{key}_of")
    if not found:
        return MappingProxyType({})
    wider = {width: min((w for w in found if w >= width), default=max(found)) for width in peaks}
    return MappingProxyType({width: found[wider[width]] for width in peaks})


def _chain(key: str, name: str, rows: Mapping[str, Any], lender: str) -> dict[int, float]:
    row = rows[name]
    lent = _chain(key, row[lender], rows, lender) if lender in row else {}
    return {**lent, **_by_width(row.get(key, {}))}


def _by_width(table: Mapping[str, float]) -> dict[int, float]:
    return {int(width): float(value) for width, value in table.items()}
