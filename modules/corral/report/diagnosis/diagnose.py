"""Evidence -> diagnosis: all rules, in the order of cause and effect, without what another finding explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from corral.catalog.diagnosis_limits import DiagnosisLimits, diagnosis_limits
from corral.report.diagnosis import rules
from corral.report.diagnosis.evidence import JobEvidence
from corral.report.diagnosis.findings import Diagnosis, FindingKind, JobFinding

_RULES: Sequence[Callable[[JobEvidence, DiagnosisLimits], Iterator[JobFinding]]] = (
    rules.out_of_memory,
    rules.wrong_network,
    rules.throttled_gpu,
    rules.slow_file_system,
    rules.straggler,
    rules.data_loader,
    rules.communication,
    rules.checkpoint_stalls,
    rules.memory_bound,
    rules.idle_gpus,
)
# The cause, and what it explains: a symptom of it is no finding of its own.
_EXPLAINS: Mapping[FindingKind, frozenset[FindingKind]] = {
    FindingKind.OUT_OF_MEMORY: frozenset({FindingKind.MEMORY_BOUND}),
    FindingKind.WRONG_NETWORK: frozenset({FindingKind.COMMUNICATION}),
    FindingKind.SLOW_FILE_SYSTEM: frozenset(
        {FindingKind.DATA_LOADER, FindingKind.CHECKPOINTS, FindingKind.COMMUNICATION}
    ),
    # Loaders take unequally long, and each step waits for the slowest: everybody's communication includes that.
    FindingKind.DATA_LOADER: frozenset({FindingKind.COMMUNICATION}),
}
# Each of these lets GPUs wait; those that are slowed down work on.
_LET_GPUS_WAIT = frozenset({*FindingKind} - {FindingKind.THROTTLED_GPU, FindingKind.IDLE_GPUS})


def diagnose(seen: JobEvidence) -> Diagnosis:
    """The findings about this job, and what could not be looked at."""
    limits = diagnosis_limits()
    found = [finding for rule in _RULES for finding in rule(seen, limits)]
    return Diagnosis(
        findings=tuple(one for one in found if not _is_explained(one, found)), unknown=tuple(_unknown(seen, limits))
    )


def _is_explained(finding: JobFinding, found: Sequence[JobFinding]) -> bool:
    kinds = {one.kind for one in found}
    if any(finding.kind in _EXPLAINS.get(kind, ()) for kind in kinds):
        return True
    if finding.kind is FindingKind.IDLE_GPUS:
        return bool(kinds & _LET_GPUS_WAIT)
    hot = {node for one in found if one.kind is FindingKind.THROTTLED_GPU for node in one.nodes}
    return finding.kind is FindingKind.STRAGGLER and {*finding.nodes} <= hot


def _unknown(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[str]:
    steps = seen.training
    if not steps:
        yield "steps (the program does not import corral_step: docs/diagnose.md)"
    else:
        fewest = min(one.lines for one in steps)
        if fewest < limits.fewest_lines:
            yield f"shares of the time ({fewest} lines so far, {limits.fewest_lines:.0f} are needed)"
        if any(one.communication_share is None for one in steps):
            yield "communication and stragglers (the program does not record communication)"
        if any(one.memory_total is None for one in steps):
            yield "GPU memory"
    yield from _unknown_of_nodes(seen)
    if not any("NCCL" in line for line in seen.output) and seen.job.node_count > 1:
        yield "NCCL's network (no NCCL_DEBUG=INFO in the output)"
    if seen.machine is None:
        yield "what is right for these machines (the environment has no such queue now)"
    if seen.expected is None:
        yield f"the forecast ({seen.forecast_problem or 'CORRAL_RUN in the job, or --run FILE: docs/diagnose.md'})"


def _unknown_of_nodes(seen: JobEvidence) -> Iterator[str]:
    """GPUs and EFA, where they should be measured and are not."""
    nodes, has_efa = seen.nodes, bool(seen.machine and seen.machine.efa_devices and seen.job.node_count > 1)
    wanted = " and ".join(name for name, is_wanted in (("GPUs", seen.job.gpus), ("EFA", has_efa)) if is_wanted)
    if not wanted:
        return
    if nodes.problem:
        yield f"{wanted} ({nodes.problem})"
        return
    unread = len(nodes.unread_nodes)
    if unread:
        yield f"{wanted} of {rules.folded(nodes.unread_nodes)} (no answer; docs/monitoring.md: `prometheus`)"
    if unread < seen.job.node_count:
        if not unread and nodes.gpu_count < seen.job.gpus:
            yield f"{seen.job.gpus - nodes.gpu_count} of {seen.job.gpus} GPUs (nvidia-smi did not report them)"
        missing = seen.job.node_count - unread - nodes.efa_nodes
        if has_efa and missing > 0:
            yield f"EFA of {missing} of {seen.job.node_count} nodes (no two readings of its counters)"
