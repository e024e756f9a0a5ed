"""The forecast of a declared run, as the document of `corral plan --run --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from corral.forecast.cost.budget_limits import CostLimit
from corral.forecast.fabric.all_reduce import AllReduce
from corral.forecast.fabric.run_network import NetworkOutlook
from corral.forecast.run.checkpoint_penalty import CheckpointPenalty, daily_checkpoint_penalty
from corral.forecast.run.checkpointing import CheckpointForecast
from corral.forecast.run.comparison import Alternative
from corral.forecast.run.market_forecast import MarketForecast
from corral.forecast.run.run_outlook import RunOutlook
from corral.forecast.training.explanations import layout_words, why_it_loses
from corral.forecast.training.layout_search import Candidate
from corral.report.plan.plan_json import Document, limits_document, sums_document, usd_document
from corral.report.run.comparison_view import compare_document

_BITS = 8


def run_document(
    run: RunOutlook, limits: Sequence[CostLimit] = (), compared: Sequence[Alternative] = (), buy: Document | None = None
) -> Document:
    """Everything that the terminal shows, in bytes, seconds and fractions."""
    spec, training = run.spec, run.training
    return {
        "schema": "corral.run/3",
        "file": spec.file,
        "model": spec.model.name,
        "parameters": training.job.shape.parameters,
        "tokens": spec.tokens,
        "queue": spec.queue,
        "instance_type": spec.machine.name,
        "nodes": spec.nodes,
        "accelerators": spec.accelerators,
        "fits": training.fits,
        "layout": {"summary": layout_words(training.layout), **asdict(training.layout)},
        "runners_up": _others(run),
        "memory": {
            **asdict(training.memory),
            "total": training.memory.total,
            "available_gib": training.memory_gib,
            "missing_gib": max(0.0, training.missing_gib),
            "change": training.change,
        },
        "speed": _speed(run) if training.fits else None,
        "network": network_document(run.network) if run.network else None,
        "checkpoints": _checkpoints(run.checkpoints, run.markets) if run.checkpoints else None,
        "data": asdict(run.data) if run.data else None,
        "markets": [_market(one) for one in run.markets],
        "compared": compare_document(compared),
        "buy": buy,
        "power": asdict(run.energy) if run.energy else None,
        "limits": limits_document(limits),
        "warnings": list(run.warnings),
        "assumed": list(run.assumed),
    }


def network_document(network: NetworkOutlook) -> Mapping[str, Any]:
    """The network, in bytes and seconds; rates are one way, `..._times` are multiples of the normal time."""
    fabric = network.fabric
    return {
        "assumed": network.design.source,
        "cards_per_node": fabric.nics,
        "card_bytes_per_s": fabric.nic_gbps * 1e9 / _BITS,
        "rails": fabric.rails,
        "tiers": fabric.tiers,
        "nodes_per_unit": fabric.nodes_per_unit,
        "units": fabric.units,
        "pods": fabric.pods,
        "switches": asdict(network.switches),
        "oversubscription": fabric.oversubscription,
        "bisection_bytes_per_s": network.bisection_gbps * 1e9 / _BITS,
        "gradients": {
            "bytes": network.gradients[0].size if network.gradients else 0.0,
            "ranks": network.group.ranks,
            "nodes": network.group.across,
            "all_reduce": [_all_reduce(one) for one in network.gradients],
        },
        "failed_card": _lost_card(network),
        "two_leaves": [asdict(network.two_leaves), asdict(network.two_tapered_leaves)],
        "all_reduce": [{"bytes": row[0].size, "by": [_all_reduce(one) for one in row]} for row in network.curves],
        "measured": {
            "instance_type": network.measured.fabric,
            "ranks": network.measured.ranks,
            "points": [{"bytes": size, "s": seconds} for size, seconds in network.measured.points],
        },
    }


def _lost_card(network: NetworkOutlook) -> Mapping[str, Any] | None:
    if network.lost is None or network.spread is None or network.pinned is None:
        return None
    return {
        "spread": {"times": network.lost.spread, **asdict(network.spread)},
        "pinned": {"times": network.lost.pinned, **asdict(network.pinned)},
    }


def _all_reduce(one: AllReduce) -> Mapping[str, Any]:
    return {"algorithm": one.algorithm.value, "s": one.seconds, "bus_bytes_per_s": one.bus_bandwidth}


def _others(run: RunOutlook) -> list[Mapping[str, Any]]:
    choice = run.training.choice
    if choice is None or choice.best is None:
        return []
    found: list[Candidate] = [*choice.others, *([choice.too_large] if choice.too_large else [])]
    return [{"summary": layout_words(one.layout), "reason": why_it_loses(one, choice.best)} for one in found]


def _speed(run: RunOutlook) -> Mapping[str, Any]:
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
        "error_margin": training.certainty.off,
        "error_margin_reason": training.certainty.why,
    }


def _checkpoints(checkpoints: CheckpointForecast, markets: Sequence[MarketForecast]) -> Mapping[str, Any]:
    return {
        "storage": checkpoints.storage,
        "bytes": checkpoints.size.size_bytes,
        "retained": checkpoints.retained,
        "write_s": checkpoints.write_s,
        "write_bytes_per_s": checkpoints.write.bytes_per_s,
        "write_limit": checkpoints.write.limit.value,
        "read_s": checkpoints.read_s,
        "stall_s": checkpoints.policy.checkpointing.stall_s,
        "lustre_for_a_minute_gib": checkpoints.faster.system.size_gib if checkpoints.faster else None,
        "loader_bytes_per_s": checkpoints.loads,
        "corpus_bytes": checkpoints.corpus,
        "daily": [_daily(daily_checkpoint_penalty(one, checkpoints.policy)) for one in markets],
    }


def _daily(found: CheckpointPenalty) -> Mapping[str, Any]:
    return {"market": found.market.value, "slowdown": found.longer, "usd": usd_document(found.usd)}


def _market(one: MarketForecast) -> Mapping[str, Any]:
    best, worst = one.range.best, one.range.worst
    return {
        "market": one.market.value,
        "has_all_nodes": one.enough,
        "days": asdict(one.days),
        "mtbf_s": {"low": one.interruptions.shortest_mtbf_s, "high": one.interruptions.longest_mtbf_s},
        "interval_s": dict(zip(("low", "high"), one.intervals_s, strict=True)),
        "progress": {"low": worst.shares.progress, "high": best.shares.progress},
        **sums_document({"usd": one.usd}),
        "charges": [{"what": charge.what, "usd": usd_document(charge.usd)} for charge in one.charges],
        "source": one.source,
    }
