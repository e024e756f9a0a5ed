"""What a job's nodes measured of themselves -> one bounded record about its GPUs and its EFA traffic. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import fmean, median

from corral.agent.health.gpus import CLOCK_REASONS, MOST_GPUS, USUAL_REASON
from corral.agent.job_evidence.step_summary import LARGEST
from corral.model.job_evidence import GpuSamples, JobNodes, NodeSamples

SHOWN_GPUS = 64  # in the record: it has to fit into one answer, beside a page of processes
_ENOUGH_S = 60.0  # in which a job that trains on several nodes sends something


def joined_samples(
    answers: Mapping[str, NodeSamples | None], gpus: Mapping[str, frozenset[int]], now: float
) -> JobNodes:
    """The answers by node, None for a node that gave none, about the GPUs that the job has there."""
    known = {node: answer for node, answer in sorted(answers.items()) if answer is not None}
    found = [one for node, answer in known.items() for one in _own(node, answer, gpus.get(node, frozenset()))]
    sent = {
        node: answer.efa_sent_bytes
        for node, answer in known.items()
        if answer.efa_sent_bytes is not None and answer.efa_seconds >= _ENOUGH_S
    }
    used = [one.utilization for one in found if one.utilization is not None]
    clocks = [one.clock_mhz for one in found if one.clock_mhz is not None]
    return JobNodes(
        at=int(now),
        gpus=tuple(sorted(found, key=_conspicuous)[:SHOWN_GPUS]),
        gpu_count=len(found),
        utilization=round(fmean(used), 3) if used else None,
        clock_mhz=median(clocks) if clocks else None,
        efa_nodes=len(sent),
        silent_nodes=tuple(node for node, count in sent.items() if not count),
        efa_seconds=min((known[node].efa_seconds for node in sent), default=0.0),
        unread_nodes=tuple(sorted(node for node, answer in answers.items() if answer is None)),
    )


def is_possible(answer: NodeSamples) -> bool:
    """Whether a node may have measured that: the right number of GPUs, and finite values."""
    values = [answer.efa_seconds, answer.efa_sent_bytes or 0]
    for one in answer.gpus:
        values += [one.gpu, one.samples, one.throttled_share]
        values += [one.utilization or 0.0, one.clock_mhz or 0.0, one.temperature_c or 0.0]
    in_range = all(0 <= value < LARGEST for value in values)  # neither NaN nor infinity is
    return len(answer.gpus) <= MOST_GPUS and in_range and all(_is_reason(one.reason) for one in answer.gpus)


def _is_reason(text: str) -> bool:
    return text in ("", *CLOCK_REASONS)


def _own(node: str, answer: NodeSamples, gpus: frozenset[int]) -> Iterator[GpuSamples]:
    """The job's GPUs of a node. Which node it is, the head knows: a node does not speak for another."""
    return (replace(one, node=node) for one in answer.gpus if one.gpu in gpus)


def _conspicuous(one: GpuSamples) -> tuple[float, float, str, int]:
    held_back = 0.0 if one.reason in ("", USUAL_REASON) else one.throttled_share
    return -held_back, 1.0 if one.utilization is None else one.utilization, one.node, one.gpu
