"""What the page of `corral dashboard` shows of one job, as one document: the diagnosis, and its steps over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime

from corral.model.job_evidence import StepPoint
from corral.report.diagnosis.diagnosis_view import diagnosis_document
from corral.report.diagnosis.evidence import JobEvidence
from corral.report.diagnosis.findings import Diagnosis
from corral.report.plan.plan_json import Document

SHOWN_PROCESSES = 32


def job_document(seen: JobEvidence, diagnosis: Diagnosis, answered_at: datetime) -> Document:
    """The document `corral.dashboard-job/1`: that of `corral diagnose`, with curves and the slowest processes alone."""
    expected = seen.expected
    slowest = sorted(seen.training, key=lambda one: (-one.own_s, one.rank))[:SHOWN_PROCESSES]
    return {
        **diagnosis_document(seen, diagnosis),
        "schema": "corral.dashboard-job/1",
        "error": None,
        "answered_at": answered_at.isoformat(),
        "processes": [asdict(one) for one in slowest],
        "process_count": len(seen.ranks),
        "gpu_utilization": seen.nodes.utilization,
        "forecast": expected
        and {
            "run": expected.name or None,
            "tokens_per_s_per_gpu": expected.tokens_per_s_per_accelerator,
            "mfu": expected.mfu,
            "communication_share": expected.communication_share,
        },
        "curves": [*_curves(seen)],
        "missing": [*_missing(seen)],
    }


def _curves(seen: JobEvidence) -> Iterator[Document]:
    """The recorded curves of the first process, each with the forecast's value, None if unknown."""
    size = seen.size or 1
    per_gpu = size / (seen.job.gpus or size)  # as if all processes were as fast as this one
    expected = seen.expected
    speed = expected.tokens_per_s_per_accelerator if expected else None
    exchange = expected.communication_share if expected else None
    each = "GPU" if seen.job.gpus else "process"
    yield from _curve(seen, f"tokens/s for each {each}", "", speed, lambda one: one.tokens_per_s * per_gpu)
    if expected and speed:
        scale = per_gpu * expected.mfu / speed
        yield from _curve(seen, "MFU", "share", expected.mfu, lambda one: one.tokens_per_s * scale)
    yield from _curve(seen, "time of a step", "s", None, lambda one: one.step_s)
    yield from _curve(seen, "waiting for data", "share", None, lambda one: one.data_share)
    yield from _curve(seen, "communication", "share", exchange, lambda one: one.communication_share)
    yield from _curve(seen, "loss", "", None, lambda one: one.loss)


def _curve(
    seen: JobEvidence, name: str, unit: str, forecast: float | None, value: Callable[[StepPoint], float | None]
) -> Iterator[Document]:
    points = [(one.at, found) for one in seen.curve if (found := value(one)) is not None]
    if any(found for _, found in points):
        yield {"name": name, "unit": unit, "forecast": forecast, "points": [[*point] for point in points]}


def _missing(seen: JobEvidence) -> Iterator[str]:
    """What the page would show if it were known."""
    if not seen.curve:
        yield "curves: the job records no steps (docs/diagnose.md shows how)"
    elif all(one.communication_share is None for one in seen.curve):
        yield "communication: the job does not record it"
    if seen.expected is None:
        why = (
            seen.forecast_problem
            or "set CORRAL_RUN in the job (docs/diagnose.md), or start the dashboard with --run FILE"
        )
        yield f"the forecast: {why}"
    yield "curves of GPUs and of the network: nodes keep samples of ten minutes alone"
