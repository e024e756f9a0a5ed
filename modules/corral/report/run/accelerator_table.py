"""A table of all accelerators of the catalog, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from corral.catalog.accelerators.accelerators import AcceleratorModel, accelerators, published_runs
from corral.catalog.aws.instance_types_by_accelerator import types_with
from corral.report.plan.plan_json import Document
from corral.report.tables import facts, heading, lines, table

_WIDTHS = (16, 8, 4)  # bits of the number formats shown
_COLUMNS = (
    "",
    ">GiB",
    ">TB/s",
    *(f">{bits}-bit" for bits in _WIDTHS),
    ">link",
    ">network",
)
_MANY = 3  # types named individually; more are counted by family


def accelerators_view() -> Iterator[RenderableType]:
    """Provisionable accelerators with their instance types, other accelerators, caveats and sources."""
    rented = [model for model in accelerators().values() if types_with(model)]
    others = [model for model in accelerators().values() if not types_with(model) and set(_row(model)[1:]) != {"-"}]
    yield heading("Accelerators", "that corral can provision")
    yield table((*_COLUMNS, "instance types"), ((*_row(model), _types(model)) for model in rented))
    yield heading("For comparison only", "corral cannot provision them")
    yield table((*_COLUMNS, "vendor"), ((*_row(model), model.vendor) for model in others))
    yield heading("Columns")
    yield lines(
        (
            "Per device: memory and its bandwidth; dense peak in TFLOPS by number format; link in GB/s, both directions"
            " added; usual share of the node's network in Gb/s. A figure without a source is omitted (-).",
        )
    )
    yield heading("Caveats")
    yield facts((model.name, model.caveat) for model in accelerators().values() if model.caveat)
    yield heading("Sources")
    yield facts((model.name, model.source) for model in accelerators().values())


def accelerators_document() -> Document:
    """The document of `corral forecast accelerators --json`; a figure without a source is null."""
    return {
        "schema": "corral.accelerators/2",
        "accelerators": [_document(model) for model in accelerators().values()],
    }


def _row(model: AcceleratorModel) -> tuple[str, ...]:
    return (
        model.name,
        _number(_known(model, "memory_gib")),
        _number(_known(model, "hbm_gb_per_s"), 1e-3),
        *(_number(_peak(model, bits)) for bits in _WIDTHS),
        _number(_known(model, "link_gb_per_s")),
        _number(_known(model, "network_gbps")),
    )


def _types(model: AcceleratorModel) -> str:
    names = types_with(model)
    if len(names) <= _MANY:
        return ", ".join(names)
    families = sorted({name.partition(".")[0] for name in names})
    return f"{', '.join(families)}: {len(names)} sizes"


def _known(model: AcceleratorModel, figure: str) -> float | None:
    """The figure; None if it has no source, or is 0, which means none."""
    return None if figure in model.assumed else getattr(model, figure) or None


def _peak(model: AcceleratorModel, bits: int) -> float | None:
    return None if "peak_tflops" in model.assumed else model.peak_tflops.get(bits)


def _number(value: float | None, factor: float = 1.0) -> str:
    if value is None:
        return "-"
    shown = value * factor
    return f"{shown:,.0f}" if shown >= 100 else f"{shown:.4g}"


def _document(model: AcceleratorModel) -> Mapping[str, Any]:
    return {
        "name": model.name,
        "vendor": model.vendor,
        "aliases": list(model.aliases),
        "provisionable": bool(types_with(model)),
        "instance_types": list(types_with(model)),
        "ec2_families": list(model.on_aws),
        "memory_gib": _known(model, "memory_gib"),
        "memory_gb_per_s": _known(model, "hbm_gb_per_s"),
        "peak_tflops": {str(bits): _peak(model, bits) for bits in _WIDTHS},
        "link_gb_per_s": _known(model, "link_gb_per_s"),
        "network_gbps": _known(model, "network_gbps"),
        "tdp_w": _known(model, "tdp_w"),
        "published_runs": published_runs(model.name),
        "source": model.source,
        "caveat": model.caveat,
    }
