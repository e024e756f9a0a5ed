"""What the page of `corral dashboard` shows of one job, as one document: the diagnosis, and curves.

There are two sets: Prometheus's of the whole run, and those that the first process has recorded of its newest steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from itertools import pairwise
from statistics import median

from corral.model.job_evidence import StepPoint
from corral.report.diagnosis.diagnosis_view import diagnosis_document
from corral.report.diagnosis.evidence import JobEvidence
from corral.report.diagnosis.findings import Diagnosis
from corral.report.plan.plan_json import Document

SHOWN_PROCESSES = 32
_GPUS, _EFA = "GPUs at work", "sent by EFA, for each node"
_HOW = "nothing keeps them - declare `monitoring: {prometheus: true}` (docs/monitoring.md)"
_TEN_MINUTES = "; the job's nodes keep ten minutes, whose mean is above as GPUs at work"
# Nothing was recorded where two points are further apart than this: a pause, or another start of the job.
_GAP, _GAP_S = 3, 60.0


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
        "history": _history(seen),
    }


def _history(seen: JobEvidence) -> Document:
    """What Prometheus has of the run, from its start to its end or to now."""
    kept = seen.curves
    return {
        "is_kept": kept.is_kept,
        "problem": kept.problem or None,
        "since": seen.job.started,
        "until": kept.last or None,
        "every_s": kept.every_s,
        "over_s": kept.over_s,
        "nodes": kept.nodes,
        "curves": [*_kept_curves(seen)],
        "missing": [*_missing_history(seen)],
    }


def _kept_curves(seen: JobEvidence) -> Iterator[Document]:
    kept = seen.curves
    times = range(kept.first, kept.last + 1, kept.every_s or 1)

    def curve(words: _Words, values: Sequence[float | None], scale: float = 1.0) -> Iterator[Document]:
        if any(value is not None for value in values):  # GPUs and EFA that do nothing have a curve, too
            points = [[at, None if value is None else scale * value] for at, value in zip(times, values, strict=False)]
            yield {**words, "points": points}

    for words, scale in _speeds(seen):
        yield from curve(words, kept.tokens_per_s, scale)
    yield from curve(_words(_GPUS, "share", top=1.0), kept.gpu_utilization)
    yield from curve(_words(_EFA, "B/s"), kept.efa_sent_bytes_per_s)
    yield from curve(_communication(seen), kept.communication_share)


def _curves(seen: JobEvidence) -> Iterator[Document]:
    """The recorded curves of the first process."""
    for words, scale in _speeds(seen):
        yield from _curve(seen, words, partial(_scaled_speed, scale))
    yield from _curve(seen, _words("time of a step", "s"), lambda one: one.step_s)
    yield from _curve(seen, _words("waiting for data", "share"), lambda one: one.data_share)
    yield from _curve(seen, _communication(seen), lambda one: one.communication_share)
    yield from _curve(seen, _words("loss", ""), lambda one: one.loss)


_Words = Document  # of a curve: its name, its unit, its forecast and the top of its axis


def _words(name: str, unit: str, forecast: float | None = None, top: float | None = None) -> _Words:
    return {"name": name, "unit": unit, "forecast": forecast, "top": top}


def _communication(seen: JobEvidence) -> _Words:
    return _words("communication", "share", seen.expected.communication_share if seen.expected else None)


def _speeds(seen: JobEvidence) -> Iterator[tuple[_Words, float]]:
    """The curves of speed, each with the factor for the tokens of one process: as if all were as fast."""
    expected, size = seen.expected, seen.size or 1
    per_gpu = size / (seen.job.gpus or size)
    speed = expected.tokens_per_s_per_accelerator if expected else None
    yield _words(f"tokens/s for each {'GPU' if seen.job.gpus else 'process'}", "tokens/s", speed), per_gpu
    if expected and speed:
        yield _words("MFU", "share", expected.mfu), per_gpu * expected.mfu / speed


def _scaled_speed(scale: float, one: StepPoint) -> float:
    return scale * one.tokens_per_s


def _curve(seen: JobEvidence, words: _Words, value: Callable[[StepPoint], float | None]) -> Iterator[Document]:
    points = [(one.at, found) for one in seen.curve if (found := value(one)) is not None]
    if any(found for _, found in points):
        yield {**words, "points": [*_with_gaps(points)]}


def _with_gaps(points: Sequence[tuple[int, float]]) -> Iterator[list[float | None]]:
    """The points, and one without a value where the process has recorded nothing for much longer than usual."""
    between = [later - earlier for (earlier, _), (later, _) in pairwise(points)]
    longest = max(_GAP_S, _GAP * median(between)) if between else 0.0
    for index, (at, value) in enumerate(points):
        if index and between[index - 1] > longest:
            yield [at - between[index - 1] / 2, None]
        yield [at, value]


def _missing(seen: JobEvidence) -> Iterator[str]:
    """What the page would show if it were known."""
    if not seen.curve:
        yield "curves of steps: the job records none (docs/diagnose.md shows how)"
    elif all(one.communication_share is None for one in seen.curve):
        yield "communication: the job does not record it"
    if seen.expected is None:
        why = (
            seen.forecast_problem
            or "set CORRAL_RUN in the job (docs/diagnose.md), or start the dashboard with --run FILE"
        )
        yield f"the forecast: {why}"


def _missing_history(seen: JobEvidence) -> Iterator[str]:
    """What Prometheus would show of the whole run if it were known."""
    kept, shown = seen.curves, {one["name"] for one in _kept_curves(seen)}
    if not kept.is_kept:
        yield f"curves of the whole run, of its GPUs and of its network: {_HOW}"
    elif seen.job.started is None:
        yield "curves of the run: it has not started"
    elif kept.problem:
        known = _TEN_MINUTES if seen.nodes.utilization is not None else ""
        yield f"complete curves of the run until Prometheus answers{known}"
    elif not kept.nodes:
        yield "curves of the run yet: it has not run for two minutes"
    elif not shown:
        yield "curves of the run: its nodes reported nothing (those that ran before Prometheus was declared never do)"
    else:
        if seen.job.gpus and _GPUS not in shown:
            yield "GPUs: they reported nothing, or the run shared its nodes' GPUs and has ended"
        if seen.machine and seen.machine.efa_devices and _EFA not in shown:
            yield "EFA: its counters were not reported"
        if seen.job.gpus and not any(kept.tokens_per_s):
            yield "tokens: the job records none, or no steps (docs/diagnose.md shows how)"
