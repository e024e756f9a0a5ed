"""Accelerators: memory, peaks, what was measured of them. What a run makes of one is a forecast's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from corral.catalog.names import UnknownName
from corral.catalog.tables import read_csv, read_toml

if TYPE_CHECKING:
    from corral.catalog.instances import InstanceType  # which asks `not_rented` here

BITS = (32, 16, 8, 4)  # widths of numbers for which a peak may be known
_TWO_WAYS = 2  # vendors add both directions of a link
_SHORTEST = 3  # letters of a name that stands for the models that begin with it, such as TPU


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorModel:
    """One model of accelerator, its figures for one device; mappings are by the width of numbers in bits.

    `achievable` is the share of the peak that the best matrix multiplication reaches, `training_share` the share of
    that which those of whole runs reach (calibrated). `attention_share` is what attention reaches of what products in
    16 bits do, by the width of the products' numbers; empty where it is that of all. `link_gb_per_s` adds both
    directions; `link_domain` devices are joined by it, and `network_gbps` is what one of them usually has of its
    node's network. `borrowed` names the models
    whose measurements stand in for missing ones. `has_bf16`: whether it multiplies bf16, not fp16 alone. `calibrated`:
    its training share is its own; `also`: other names of it; `kinds`:
    words for it and others like it. `on_aws`: families that have it; empty where none has.
    `assumed`: figures without a source that could be looked up, which formulas take and tables leave out.
    """

    name: str
    vendor: str
    also: tuple[str, ...]
    kinds: tuple[str, ...]
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
    borrowed: tuple[str, ...]
    has_bf16: bool
    calibrated: bool
    assumed: tuple[str, ...]
    source: str
    note: str | None

    @property
    def provisionable(self) -> bool:
        """Whether AWS rents machines that have it."""
        return bool(self.on_aws)

    @property
    def link_one_way_bytes_per_s(self) -> float:
        """What one device sends over its link, in one direction."""
        return self.link_gb_per_s / _TWO_WAYS * 1e9

    def width(self, bits: int) -> int:
        """The width in which numbers of this one are multiplied: its own, or the next wider that has a peak."""
        if bits in self.peak_tflops:
            return bits
        return min(width for width in self.peak_tflops if width >= min(bits, max(self.peak_tflops)))

    def peak_flops(self, bits: int) -> float:
        """Dense peak in FLOP/s for numbers of this width."""
        return self.peak_tflops[self.width(bits)] * 1e12

    def reached_flops(self, bits: int) -> float:
        """FLOP/s of the large matrix multiplications of a training run."""
        width = self.width(bits)
        return self.peak_flops(bits) * self.achievable[width] * self.training_share[width]


@cache
def accelerators() -> Mapping[str, AcceleratorModel]:
    """Every model that corral ships, by name, in the order of the file."""
    rows = read_toml("accelerators.toml")
    return MappingProxyType({name: _accelerator(name, rows) for name in rows})


def find_accelerator(name: str) -> AcceleratorModel:
    """The model of this name, whose case, blanks and hyphens do not matter. Raises UnknownName where there is none."""
    known = accelerators()
    for model in known.values():
        if _folded(name) in map(_folded, (model.name, *model.also)):
            return model
    raise UnknownName("accelerator", name, known)


def accelerator_of(machine: InstanceType) -> AcceleratorModel | None:
    """The model that machines of this type have; None where no figures of it are known, or where they have none."""
    if machine.accelerator is None:
        return None
    return next((model for model in accelerators().values() if machine.family in model.on_aws), None)


def not_rented(name: str) -> AcceleratorModel | None:
    """The model that no AWS machine has and that this word means, as `TPU v5p` and `trillium` do; None for others."""
    found = [model for model in accelerators().values() if _means(_folded(name), model)]
    return None if any(model.provisionable for model in found) else next(iter(found), None)


@cache
def published_runs(name: str, bits: int | None = None) -> int:
    """How many published runs the constants of this model were chosen on; with `bits`: dense ones in such numbers."""
    rows = (*read_csv("training_runs.csv"), *read_csv("training_runs_second.csv"))
    return sum(
        _folded(row["accelerator"]) == _folded(name)
        and (bits is None or (not row["experts"] and _bits(row["precision"]) == bits))
        for row in rows
    )


def _bits(precision: str) -> int:
    return next((bits for bits in (4, 8) if f"fp{bits}" in precision), 16)


def _means(word: str, model: AcceleratorModel) -> bool:
    names = [_folded(name) for name in (model.name, *model.also, *model.kinds)]
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
        also=tuple(row.get("also", ())),
        kinds=tuple(row.get("kinds", ())),
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
        borrowed=lenders,
        has_bf16=row.get("bf16", True),
        calibrated="training_share" in row,
        assumed=tuple(row.get("assumed", ())),
        source=row["source"],
        note=row.get("note"),
    )


def _measured(
    key: str, name: str, rows: Mapping[str, Any], peaks: Mapping[int, float], *, lender: str | None = None
) -> Mapping[int, float]:
    """The measurement for each width that has a peak: its own, its lender's, else that of the next wider numbers.

    Empty where neither has one.
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
