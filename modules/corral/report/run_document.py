"""A declared run before it begins, as the document of `corral plan --run --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from corral.forecast.limits import Limit
from corral.forecast.training.choose import Candidate
from corral.forecast.training.reasons import layout_words, why_it_loses
from corral.forecast.whole.compare import Compared
from corral.forecast.whole.course import Course
from corral.forecast.whole.rarely import Rarely, saved_daily
from corral.forecast.whole.run import WholeRun
from corral.forecast.whole.saving import Saving
from corral.report.compare import compare_document
from corral.report.documents import Document, limits_document, sums_document, usd_document
from corral.report.network_document import network_document


def run_document(
    run: WholeRun, limits: Sequence[Limit] = (), compared: Sequence[Compared] = (), buy: Document | None = None
) -> Document:
    """Everything that the terminal shows, in bytes, seconds and parts of 1."""
    spec, training = run.spec, run.training
    return {
        "schema": "corral.run/1",
        "file": spec.file,
        "model": spec.model.name,
        "parameters": training.job.shape.parameters,
        "tokens": spec.tokens,
        "queue": spec.queue,
        "instance_type": spec.machine.name,
        "nodes": spec.nodes,
        "accelerators": spec.accelerators,
        "fits": training.fits,
        "layout": {"words": layout_words(training.layout), **asdict(training.layout)},
        "others": _others(run),
        "memory": {
            **asdict(training.memory),
            "total": training.memory.total,
            "available_gib": training.memory_gib,
            "missing_gib": max(0.0, training.missing_gib),
            "change": training.change,
        },
        "speed": _speed(run) if training.fits else None,
        "network": network_document(run.network) if run.network else None,
        "checkpoints": _saving(run.saving, run.courses) if run.saving else None,
        "loading": asdict(run.loading) if run.loading else None,
        "courses": [_course(one) for one in run.courses],
        "compared": compare_document(compared),
        "buy": buy,
        "power": asdict(run.energy) if run.energy else None,
        "limits": limits_document(limits),
        "warnings": list(run.warnings),
        "assumed": list(run.assumed),
    }


def _others(run: WholeRun) -> list[Mapping[str, Any]]:
    choice = run.training.choice
    if choice is None or choice.best is None:
        return []
    found: list[Candidate] = [*choice.others, *([choice.too_large] if choice.too_large else [])]
    return [{"words": layout_words(one.layout), "why_not": why_it_loses(one, choice.best)} for one in found]


def _speed(run: WholeRun) -> Mapping[str, Any]:
    training = run.training
    low, high = training.days_range
    return {
        "tokens_per_s": training.speed.tokens_per_s,
        "tokens_per_s_per_accelerator": training.speed.tokens_per_s_per_accelerator,
        "mfu": training.mfu,
        "mfu_with_attention": training.mfu_with_attention,
        "hfu": training.hfu,
        "bound": training.bound,
        "communication": training.speed.parts.communication / training.speed.parts.total,
        "efficiency": asdict(training.efficiency) if training.efficiency else None,
        "step_s": {**asdict(training.speed.parts), "total": training.speed.parts.total},
        "steps": training.steps,
        "days": {"expected": training.days, "low": low, "high": high},
        "accelerator_hours": training.accelerator_hours,
        "off": training.certainty.off,
        "why_off": training.certainty.why,
    }


def _saving(saving: Saving, courses: Sequence[Course]) -> Mapping[str, Any]:
    return {
        "place": saving.place,
        "bytes": saving.size.size_bytes,
        "kept": saving.kept,
        "write_s": saving.write_s,
        "write_bytes_per_s": saving.write.bytes_per_s,
        "write_limit": saving.write.limit.value,
        "read_s": saving.read_s,
        "stall_s": saving.habits.checkpointing.stall_s,
        "lustre_for_a_minute_gib": saving.faster.system.size_gib if saving.faster else None,
        "loader_bytes_per_s": saving.loads,
        "corpus_bytes": saving.corpus,
        "daily": [_daily(saved_daily(one, saving.habits)) for one in courses],
    }


def _daily(found: Rarely) -> Mapping[str, Any]:
    return {"market": found.market.value, "longer": found.longer, "usd": usd_document(found.usd)}


def _course(one: Course) -> Mapping[str, Any]:
    best, worst = one.range.best, one.range.worst
    return {
        "market": one.market.value,
        "enough": one.enough,
        "days": asdict(one.days),
        "mtbf_s": {"low": one.interruptions.shortest_mtbf_s, "high": one.interruptions.longest_mtbf_s},
        "interval_s": dict(zip(("low", "high"), one.intervals_s, strict=True)),
        "progress": {"low": worst.shares.progress, "high": best.shares.progress},
        **sums_document({"usd": one.usd}),
        "charges": [{"what": charge.what, "usd": usd_document(charge.usd)} for charge in one.charges],
        "source": one.source,
    }
