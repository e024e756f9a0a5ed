"""A diagnosis on one screen, and as the document of `corral diagnose --json`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from statistics import fmean, median

from rich.console import RenderableType
from rich.text import Text

from corral.model.job_evidence import JobRecord, RankSteps
from corral.report.diagnosis.evidence import JobEvidence
from corral.report.diagnosis.findings import Diagnosis, JobFinding
from corral.report.formatting import ago, count, duration, three_digits
from corral.report.plan.plan_json import Document
from corral.report.tables import facts, heading

_PAUSE_S = 120.0  # without a step: a shorter one is usual between two writes of corral_step


def diagnosis_view(seen: JobEvidence, diagnosis: Diagnosis, now: float) -> Iterator[RenderableType]:
    """The job and its speed, the findings with what to do first, and what could not be looked at."""
    yield heading(f"Job {seen.job.job_id}", _job(seen.job, now))
    yield facts([*_facts(seen), *_standstill(seen, now)])
    for number, finding in enumerate(diagnosis.findings, start=1):
        yield from _finding(number, finding)
    if not diagnosis.findings:
        yield Text("\nNothing is wrong in what could be looked at.")
    if diagnosis.unknown:
        yield Text(f"Unknown: {'; '.join(diagnosis.unknown)}.", style="dim")
    if seen.problem:
        yield Text(f"Missing: {seen.problem}.", style="dim")


def diagnosis_document(seen: JobEvidence, diagnosis: Diagnosis) -> Document:
    """The document of `corral diagnose --json`."""
    return {
        "schema": "corral.diagnose/1",
        "job": {**asdict(seen.job), "step_states": list(seen.job.step_states)},
        "speed": {
            "step_s": _median([one.step_s for one in seen.training]),
            "tokens_per_s_per_gpu": seen.tokens_per_s_per_accelerator,
            "mfu": seen.mfu,
            "forecast_share": seen.forecast_share,
            "forecast_run": (seen.expected and seen.expected.name) or None,
            "data_share": _mean([one.data_share for one in seen.training]),
            "communication_share": _mean(_known_communication(seen.training)),
            "checkpoint_share": _mean([one.checkpoint_share for one in seen.training]),
        },
        "findings": [
            {
                "kind": one.kind.value,
                "title": one.title,
                "nodes": list(one.nodes),
                "evidence": list(one.evidence),
                "first": one.first,
            }
            for one in diagnosis.findings
        ],
        "unknown": list(diagnosis.unknown),
        "processes": [asdict(one) for one in seen.ranks],
        "problem": seen.problem or None,
    }


def _job(job: JobRecord, now: float) -> str:
    name = f"{job.name}, " if job.name else ""
    nodes = f" on {job.nodes}" if job.nodes else ""
    gpus = f", {count(job.gpus)} GPUs" if job.gpus else ""
    state = job.state
    if job.started is not None:
        state += f", {ago(timedelta(seconds=(job.ended or now) - job.started))}"
    runs = f", run {job.runs}" if job.runs > 1 else ""
    return f"{name}{job.user}, queue {job.queue}: {state}{nodes}{gpus}{runs}"


def _facts(seen: JobEvidence) -> Iterator[tuple[str, str]]:
    steps = seen.training
    if not steps:
        return
    known = [one.step_s for one in steps]
    expected = max(one.size for one in steps)
    last = max(one.last_step for one in steps)
    yield "steps", f"{three_digits(median(known))} s each, at step {count(last)}; {len(steps)} of {expected} processes"
    if (speed := seen.tokens_per_s_per_accelerator) is not None:
        parts = [f"{count(speed)} tokens/s for each {'GPU' if seen.job.gpus else 'process'}"]
        if seen.mfu is not None and seen.forecast_share is not None:
            parts += [f"MFU {seen.mfu:.0%}", f"{seen.forecast_share:.0%} of the forecast{_of_run(seen)}"]
        yield "speed", ", ".join(parts)
    communication = _mean(_known_communication(steps))
    shares = {
        "data": _mean([one.data_share for one in steps]),
        "communication": communication,
        "checkpoints": _mean([one.checkpoint_share for one in steps]),
    }
    yield "waits", ", ".join(f"{name} {share:.1%}" for name, share in shares.items() if share is not None)


def _standstill(seen: JobEvidence, now: float) -> Iterator[tuple[str, str]]:
    """How long a running job has made no step, and which process made the fewest, if they differ."""
    steps = [one for one in seen.training if one.last_at and not one.is_closed]
    newest = max(steps, key=lambda one: one.last_at, default=None)
    if seen.job.state != "running" or newest is None or now - newest.last_at <= max(_PAUSE_S, 3 * newest.step_s):
        return
    first = min(steps, key=lambda one: one.last_step)
    which = f"; rank {first.rank} on {first.node} stopped at step {count(first.last_step)}"
    differ = first.last_step < max(one.last_step for one in steps)
    yield "last step", f"{duration(now - newest.last_at)} ago{which if differ else ''}"


def _of_run(seen: JobEvidence) -> str:
    return f" of {seen.expected.name}" if seen.expected and seen.expected.name else ""


def _finding(number: int, finding: JobFinding) -> Iterator[RenderableType]:
    yield Text.assemble("\n", (f"{number}. {finding.title}", "bold"))
    seen = [("seen", textwrap.shorten(line, 240, placeholder=" ...")) for line in finding.evidence]
    yield facts([*seen, ("first", finding.first)])


def _known_communication(steps: tuple[RankSteps, ...]) -> list[float]:
    return [one.communication_share for one in steps if one.communication_share is not None]


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _median(values: list[float]) -> float | None:
    return median(values) if values else None
