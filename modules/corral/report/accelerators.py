"""All accelerators of the catalogue beside each other, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from corral.catalog.accelerators import AcceleratorModel, accelerators, published_runs
from corral.catalog.rented import types_with
from corral.report.documents import Document
from corral.report.tables import facts, heading, lines, table

_WIDTHS = (16, 8, 4)  # bits of a number, of the peaks that are shown
_COLUMNS = (
    "",
    ">GiB",
    ">TB/s",
    *(f">{bits}-bit" for bits in _WIDTHS),
    ">link",
    ">network",
)
_MANY = 3  # types of a family that are named; more are counted


def accelerators_view() -> Iterator[RenderableType]:
    """Those that can be provisioned, with the types that have them; the others; where figures are from."""
    rented = [model for model in accelerators().values() if types_with(model)]
    others = [model for model in accelerators().values() if not types_with(model) and set(_row(model)[1:]) != {"-"}]
    yield heading("Accelerators", "that instance types have: corral provisions them")
    yield table((*_COLUMNS, "instance types"), ((*_row(model), _types(model)) for model in rented))
    yield heading("For comparison alone", "corral cannot provision them")
    yield table((*_COLUMNS, "vendor"), ((*_row(model), model.vendor) for model in others))
    yield heading("What the figures are")
    yield lines(
        (
            "of one device: memory and its rate; dense peaks in TFLOPS by the width of numbers; its link in GB/s, both"
            " directions added; its usual share of a node's network in Gb/s. What has no source is left out (-).",
        )
    )
    yield heading("Notes")
    yield facts((model.name, model.note) for model in accelerators().values() if model.note)
    yield heading("Sources")
    yield facts((model.name, model.source) for model in accelerators().values())


def accelerators_document() -> Document:
    """What `corral forecast accelerators --json` prints; a figure without a source is null."""
    return {
        "schema": "corral.accelerators/1",
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
    """The figure; None where it has no source, or is 0, which stands for none."""
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
        "also": list(model.also),
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
        "note": model.note,
    }
