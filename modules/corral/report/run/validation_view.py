"""Predicted against reported training speed, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from rich.console import RenderableType
from rich.text import Text

from corral.catalog.accelerators.training_outliers import known_reason
from corral.forecast.published.speed_validation import Errors, SpeedComparison, grouped_errors
from corral.forecast.training.speed import StepParts
from corral.report.plan.plan_json import Document
from corral.report.tables import facts, heading, table

_FAR = 0.2  # larger errors are shown with their reason, if known
_COLUMNS = ("run", "accelerators", ">predicted", ">reported", ">error", "largest part of a step")
_SUMS = ("runs", ">number", ">median error", ">worst error", "worst run")


def validation_view(comparisons: Sequence[SpeedComparison], file: str) -> Iterator[RenderableType]:
    """Predicted against reported tokens per second and accelerator, the worst last; then a summary of errors."""
    yield heading("Tokens per second and accelerator", file)
    yield table(_COLUMNS, (_row(one) for one in sorted(comparisons, key=_size)))
    yield heading("Errors")
    yield table(_SUMS, (_sum(errors) for errors in grouped_errors(comparisons) if errors.runs))
    if far := [one for one in comparisons if _size(one) >= _FAR and known_reason(one.run.run_id)]:
        yield heading(f"Off by {_FAR:.0%} or more, and why")
        yield facts((one.run.run_id, known_reason(one.run.run_id) or "") for one in sorted(far, key=_size))
    yield Text("\nAn error is predicted over reported, minus 1; medians and worst use its absolute value.")
    yield Text("Constants apply to all runs or to one accelerator (docs/forecast.md); none is fitted to a run.")


def validation_document(comparisons: Sequence[SpeedComparison], file: str) -> Document:
    """The document of `corral forecast validate --json`; errors are fractions."""
    every, *groups = grouped_errors(comparisons)
    return {
        "schema": "corral.forecast-validation/1",
        "file": file,
        "median_error": every.median,
        "worst_error": every.worst,
        "worst_run": every.worst_run,
        "groups": [_group(errors) for errors in groups],
        "rows": [_document(one) for one in comparisons],
    }


def _size(one: SpeedComparison) -> float:
    return -1.0 if one.error is None else abs(one.error)


def _row(one: SpeedComparison) -> tuple[str, ...]:
    job = one.run.job
    what = f"{job.accelerators:,.0f} x {job.machine.accelerator.name}"
    reported = "-" if one.run.reported is None else f"{one.run.reported:,.1f}"
    error = "-" if one.error is None else f"{one.error:+.1%}"
    return one.run.run_id, what, f"{one.predicted:,.1f}", reported, error, one.speed.parts.limit.replace("_", " ")


def _sum(errors: Errors) -> tuple[str, ...]:
    median, worst = (f"{value:.1%}" if value is not None else "-" for value in (errors.median, errors.worst))
    return errors.name, str(errors.runs), median, worst, errors.worst_run or "-"


def _group(errors: Errors) -> Document:
    return {
        "name": errors.name,
        "runs": errors.runs,
        "median_error": errors.median,
        "worst_error": errors.worst,
        "worst_run": errors.worst_run,
    }


def _document(one: SpeedComparison) -> Document:
    job, speed = one.run.job, one.speed
    return {
        "run_id": one.run.run_id,
        "accelerator": job.machine.accelerator.name,
        "accelerators": round(job.accelerators),
        "precision": one.run.precision_text,
        "predicted_tokens_per_s_per_accelerator": one.predicted,
        "reported_tokens_per_s_per_accelerator": one.run.reported,
        "error": one.error,
        "mfu": speed.mfu,
        "communication_share": speed.communication_share,
        "limit": speed.parts.limit,
        "step_s": speed.parts.total,
        "parts_s": {field.name: getattr(speed.parts, field.name) for field in fields(StepParts)},
        "assumed": list(one.run.assumed),
        "known_reason": known_reason(one.run.run_id),
    }
