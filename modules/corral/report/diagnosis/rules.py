"""The rules of a diagnosis: evidence -> findings of one kind. The limits are in catalog/data/diagnosis.toml."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median

from corral.catalog.aws.nccl_variables import VariableVerdict
from corral.catalog.diagnosis_limits import DiagnosisLimits
from corral.forecast.training.memory import GIB
from corral.model.job_evidence import GpuSamples, RankSteps
from corral.model.node_names import fold
from corral.plan.nccl_env.lint_env import Assignment, Context, assumed_versions, lint
from corral.report.diagnosis.evidence import JobEvidence
from corral.report.diagnosis.findings import FindingKind, JobFinding
from corral.report.diagnosis.nccl_log import node_networks
from corral.report.formatting import duration, three_digits

_NODE_NAME = re.compile(r"[a-z0-9-]+-[0-9]+")
# PyTorch, CUDA itself, XLA; NCCL where PyTorch has taken all (PKU-YuanGroup/Open-Sora-Plan#386). A line of code in a
# traceback or a tip names them, too, but says no more.
_GPU_MEMORY = re.compile(
    r"OutOfMemoryError(?:: |$)|CUDA out of memory\. |CUDA error: out of memory|RESOURCE_EXHAUSTED: "
    r"|Cuda failure (?:\d+ )?'out of memory'"
)
# Slurm with cgroups; without, as recorded in the box; Python and numpy; PyTorch's c10/core/impl/alloc_cpu.cpp, and its
# loader whose worker the kernel has killed (pytorch/pytorch#8976), or which found no shared memory.
_HOST_MEMORY = re.compile(
    r"oom[-_ ]kill|exceeded (?:job |step )?memory limit|(?<!OutOf)MemoryError"
    r"|DefaultCPUAllocator: (?:can't|not enough)"
    r"|DataLoader worker \(pid[^)]*\) is killed by signal: (?:Killed|Bus error)",
    re.IGNORECASE,
)
_FRAGMENTS = re.compile(r"([0-9.]+) (MiB|GiB) is reserved by PyTorch but unallocated")
_FRAGMENTED_GIB = 2.0  # held by the allocator and not in use: choice
# Reasons of nvidia-smi's clocks_event_reasons that mean trouble; a software power cap is usual at full load.
_SLOWED = ("hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown")
_HEAT = "slowed down by heat"  # agent/health/gpus
_STANDS_AFTER_S = 120.0  # without a step, nothing is known of what the job does now
_FEW_RETRIES = 4  # happen while the first large batches come: choice
_FEW_PROCESSES = 8  # likewise of processes: the stages of a pipeline are unequal
_FEW = 4  # one in so many nodes, or fewer, may be stragglers: with more of them, the work is uneven


def out_of_memory(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """The memory of a GPU or of a node has run out."""
    output = () if _went_on(seen, limits) else seen.output
    failed, lines = _without_memory(_GPU_MEMORY, seen.ranks, () if _ended_otherwise(seen) else output)
    if lines:
        yield JobFinding(
            kind=FindingKind.OUT_OF_MEMORY,
            title="The memory of a GPU ran out",
            evidence=(lines[0], *_memory_forecast(seen)),
            first=_first_for_memory(seen, lines[0]),
            nodes=_nodes(failed),
        )
    failed, lines = _without_memory(_HOST_MEMORY, seen.ranks, output)
    if lines or "out_of_memory" in {seen.job.state, *seen.job.step_states}:
        yield JobFinding(
            kind=FindingKind.OUT_OF_MEMORY,
            title="The memory of a node ran out",
            evidence=tuple(lines[:2]) or ("Slurm's state of the job or of a step is OUT_OF_MEMORY",),
            first="fewer loader workers, or less prefetching: each worker is a process with a copy of what it reads;"
            " then offload less of the optimizer to the host",
            nodes=_nodes(failed),
        )


def _went_on(seen: JobEvidence, limits: DiagnosisLimits) -> bool:
    """Memory that ran out did not end the job, such as that of a batch size that the program tried and gave up.

    The job has ended well; or all its processes have made steps, and nothing in the program has ended it.
    """
    makes_steps = [one for one in _enough(seen, limits) if not one.error]
    has_failed = seen.job.state in ("failed", "out_of_memory")
    return seen.job.state == "completed" or (not has_failed and 0 < seen.size <= len(makes_steps))


def _ended_otherwise(seen: JobEvidence) -> bool:
    """Each process has recorded what ended it: texts of the output add nothing to that."""
    return 0 < seen.size <= len([one for one in seen.ranks if one.error])


def _without_memory(
    pattern: re.Pattern[str], ranks: Sequence[RankSteps], output: Sequence[str]
) -> tuple[list[RankSteps], list[str]]:
    """The processes that such an error ended, and the texts: theirs, or those of the output."""
    failed = [one for one in ranks if pattern.search(f"{one.error}: {one.message}")]
    texts = [f"rank {one.rank} on {one.node}: {one.error}: {one.message}".removesuffix(": ") for one in failed]
    return failed, texts or [line for line in output if pattern.search(line)]


def memory_bound(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """The job runs, and its memory is so full that the allocator empties its cache again and again."""
    steps = _enough(seen, limits)
    full = [
        one for one in steps if one.memory_total and (one.memory_peak or 0) / one.memory_total > limits.memory_share
    ]
    again = [one for one in steps if one.memory_retries > max(_FEW_RETRIES, limits.memory_retries_per_step * one.steps)]
    if not full and not again:
        return
    worst = max(again or full, key=lambda one: (one.memory_retries, one.memory_peak or 0))
    evidence = [_memory_in_use(worst)] if worst.memory_total else []
    if again:
        evidence.append(f"{worst.memory_retries} times in {worst.steps:,} steps, PyTorch emptied its cache to go on")
    yield JobFinding(
        kind=FindingKind.MEMORY_BOUND,
        title="The memory of the GPUs is full, and costs time",
        evidence=(*evidence, *_memory_forecast(seen)),
        first=_first_for_memory(seen, ""),
        nodes=_some(again or full, steps),
    )


def wrong_network(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """Variables that cost speed or the job, or a network that NCCL should not use on these machines.

    `corral lint-env` refuses more: a variable that merely does nothing slows down no job.
    """
    machine = seen.machine
    found = lint(
        (Assignment(line=0, name=name, value=value) for name, value in seen.variables.items()),
        Context(instance_type=machine.instance_type if machine else None, versions=assumed_versions({})),
    )
    bad = [one for one in found if one.verdict is VariableVerdict.HARMFUL]
    evidence = [f"{one.assignment.name}={one.assignment.value}: {one.message}" for one in bad]
    first = [f"{one.assignment.name}: {one.fix or 'unset it'}" for one in bad]
    if machine and machine.efa_devices and seen.job.node_count > 1:
        for host, one in node_networks(seen.output).items():
            if one.network == "Socket" or one.provider.startswith(("tcp", "sockets", "udp")):
                used = one.network if one.network == "Socket" else one.provider
                evidence.append(f"{host}: NCCL uses {used}, not EFA")
                first.append(
                    "make NCCL load aws-ofi-nccl: its lib directory must be in LD_LIBRARY_PATH, in a container too"
                )
            elif one.nics is not None and one.nics < machine.efa_devices and one.provider.startswith("efa"):
                evidence.append(
                    f"{host}: NCCL found {one.nics} EFA devices, {machine.instance_type.name} has {machine.efa_devices}"
                )
                first.append("give the container all devices of /dev/infiniband; then look at the node's health")
    if machine and machine.efa_devices and _is_silent(seen, limits):
        nodes = seen.nodes
        evidence.append(
            f"EFA of {folded(nodes.silent_nodes)} sent nothing in {duration(nodes.efa_seconds)},"
            " and the job communicates between its nodes"
        )
        first.append("run with NCCL_DEBUG=INFO: its lines name the network that it uses instead")
    if evidence:
        yield JobFinding(
            kind=FindingKind.WRONG_NETWORK,
            title="NCCL is not set up for these machines",
            evidence=tuple(evidence[:4]),
            first="; ".join(dict.fromkeys(first[:3])),
        )


def throttled_gpu(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """GPUs that run slower than they could, by heat or by the power brake."""
    slowed = [
        one
        for one in seen.nodes.gpus
        if one.reason in _SLOWED
        and one.throttled_share * one.samples > limits.throttled_samples - 0.5  # the share is rounded
        and one.throttled_share > limits.throttled_share
    ]
    hot = {node: reason for node, reason in sorted(seen.node_reasons.items()) if _HEAT in reason}
    if not slowed and not hot:
        return
    evidence = [
        f"{one.node}, GPU {one.gpu}: {one.reason} in {one.throttled_share:.0%} of samples"
        + _clock(one, seen.nodes.clock_mhz)
        for one in slowed[:3]
    ]
    evidence += [f"{node}: {reason}" for node, reason in list(hot.items())[:3]]
    nodes = tuple(sorted({*(one.node for one in slowed), *hot}))
    yield JobFinding(
        kind=FindingKind.THROTTLED_GPU,
        title=f"GPUs of {folded(nodes)} are slowed down",
        evidence=tuple(evidence),
        first=_replace(nodes),
        nodes=nodes,
    )


def slow_file_system(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """The file system of the job's directory answers slowly, and the job waits for data or for checkpoints."""
    steps = [one for one in _enough(seen, limits) if one.write_s is not None]
    if not steps:
        return
    write_s = median(one.write_s or 0.0 for one in steps)
    data, saving = fmean(one.data_share for one in steps), max(one.checkpoint_share for one in steps)
    if write_s > limits.write_s and max(data, saving) > limits.slow_file_data_share:
        yield JobFinding(
            kind=FindingKind.SLOW_FILE_SYSTEM,
            title="The shared file system is slow",
            evidence=(
                f"a small write takes {write_s:.2g} s (median of {len(steps)} processes)",
                f"the job waits for data {data:.0%} of the time, and for checkpoints {saving:.0%}",
            ),
            first="look at its limits in CloudWatch (EFS: PercentIOLimit, BurstCreditBalance; FSx:"
            " DiskThroughputUtilization); read data and save on Lustre or a node's own disks, not on /home",
        )


def straggler(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """Few nodes need longer for the same work, without waits for data and for others; the others wait for them."""
    steps = [one for one in _enough(seen, limits) if one.communication_share is not None]
    by_node = {node: median(one.own_s for one in ranks) for node, ranks in _by_node(steps).items()}
    slow = _slow(by_node, limits.straggler_ratio)
    if not slow:
        yield from _slow_process(steps, limits)
        return
    usual = median(own for node, own in by_node.items() if node not in slow)
    waits = fmean(one.communication_share or 0.0 for one in steps if one.node not in slow)
    evidence = [f"{node}: {own:.3g} s of own work in a step, others {usual:.3g} s" for node, own in slow.items()]
    yield JobFinding(
        kind=FindingKind.STRAGGLER,
        title=f"{folded(tuple(slow))} is slower than the others" if len(slow) == 1 else "Some nodes are slower",
        evidence=(*evidence[:3], f"the others wait {waits:.0%} of the time"),
        first=_replace(tuple(slow)),
        nodes=tuple(slow),
    )


def _slow_process(steps: Sequence[RankSteps], limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """Few processes need longer than all others, too few to show in a median of their node."""
    if len(steps) < _FEW:
        return
    usual = median(one.own_s for one in steps)
    slow = sorted((one for one in steps if one.own_s > limits.straggler_ratio * usual), key=lambda one: -one.own_s)
    if not slow or len(slow) > max(1, len(steps) // _FEW_PROCESSES):
        return
    nodes = _nodes(slow)
    waits = fmean(one.communication_share or 0.0 for one in steps if one not in slow)
    evidence = [
        f"rank {one.rank} on {one.node}: {one.own_s:.3g} s of own work in a step, others {usual:.3g} s" for one in slow
    ]
    yield JobFinding(
        kind=FindingKind.STRAGGLER,
        title=f"A process on {folded(nodes)} is slower than the others"
        if len(slow) == 1
        else "Some processes are slower",
        evidence=(*evidence[:3], f"the others wait {waits:.0%} of the time"),
        first=f"look whether the program does more there, such as logging; otherwise {_replace(nodes)}",
        nodes=nodes,
    )


def data_loader(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """Processes wait for data."""
    steps = _enough(seen, limits)
    waiting = [one for one in steps if one.data_share > limits.data_share]
    if not waiting:
        return
    worst = max(waiting, key=lambda one: one.data_share)
    nodes = _some(waiting, steps)
    where = f" on {folded(nodes)} alone" if nodes else ""
    yield JobFinding(
        kind=FindingKind.DATA_LOADER,
        title=f"The job waits for its data loader{where}",
        evidence=(
            f"rank {worst.rank} on {worst.node} waits {worst.data_share:.0%} of the time;"
            f" {len(waiting)} of {len(steps)} processes wait",
            *_work_of_gpus(seen, limits),
        ),
        first="more loader workers and prefetching, up to a worker for each core; then tokenize before the run",
        nodes=nodes,
    )


def communication(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """Also the process that waits least spends much time in communication: it is no wait for a slow one."""
    steps = [one for one in _enough(seen, limits) if one.communication_share is not None]
    if not steps or seen.job.node_count < 1:
        return
    least = min(fmean(one.communication_share or 0.0 for one in ranks) for ranks in _by_node(steps).values())
    forecast = seen.expected.communication_share if seen.expected else 0.0
    limit = max(limits.communication_share, forecast * limits.communication_over_forecast)
    if least > limit:
        compared = f"; the forecast has {forecast:.0%}" if seen.expected else ""
        yield JobFinding(
            kind=FindingKind.COMMUNICATION,
            title="The job is bound by communication",
            evidence=(
                f"all processes spend {least:.0%} of the time in communication, or more{compared}",
                *_work_of_gpus(seen, limits),
            ),
            first="submit nccl-tests.sbatch to these nodes: a low bandwidth is the network's; otherwise a larger batch,"
            " more accumulation, or another layout (`corral plan ENV --run FILE` compares them)",
        )


def checkpoint_stalls(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """Saving checkpoints takes much of the time."""
    steps = [
        one
        for one in _enough(seen, limits)
        if one.seconds > limits.checkpoint_observed_s or one.checkpoints >= limits.fewest_checkpoints
    ]
    worst = max(steps, key=lambda one: one.checkpoint_share, default=None)
    if worst and worst.checkpoint_share > limits.checkpoint_share:
        yield JobFinding(
            kind=FindingKind.CHECKPOINTS,
            title="Checkpoints stop the job",
            evidence=(
                f"rank {worst.rank} saves {worst.checkpoint_share:.0%} of the time; the longest took"
                f" {duration(worst.checkpoint_s)}",
            ),
            first="save asynchronously (torch.distributed.checkpoint.async_save) and sharded, to Lustre; then less"
            " often: `corral plan ENV --run FILE` computes the best interval",
        )


def idle_gpus(seen: JobEvidence, limits: DiagnosisLimits) -> Iterator[JobFinding]:
    """GPUs of the job that nothing uses; or the job makes steps, and they wait for nothing that it records."""
    unused = _unused(seen, limits)
    if unused:
        nodes = tuple(unused)
        yield JobFinding(
            kind=FindingKind.IDLE_GPUS,
            title=f"GPUs of {folded(nodes)} are not used",
            evidence=tuple(f"{node}: nothing runs on GPUs {_listed(gpus)}" for node, gpus in [*unused.items()][:3]),
            first="end the job if nobody works with it; otherwise start a process for each GPU, or request fewer GPUs",
            nodes=nodes,
        )
        return
    steps, work = _enough(seen, limits), _work_of_gpus(seen, limits)
    if not steps or not work or not _makes_steps(seen):
        return
    waits = fmean(one.data_share + (one.communication_share or 0.0) for one in steps)
    yield JobFinding(
        kind=FindingKind.IDLE_GPUS,
        title="The GPUs wait, and not for what the job records",
        evidence=(*work, f"its processes record waits in {waits:.0%} of the time"),
        first="profile a few steps (torch.profiler): small kernels between which the CPU works (torch.compile, CUDA"
        " graphs, larger micro-batches), `.item()` and `.cpu()` in each step, or logging",
    )


def _unused(seen: JobEvidence, limits: DiagnosisLimits) -> Mapping[str, list[int]]:
    """The GPUs by node on which nothing runs, unless the job has made steps and now stands for another reason."""
    found: dict[str, list[int]] = defaultdict(list)
    if seen.training and not _makes_steps(seen):
        return found
    for one in sorted(seen.nodes.gpus, key=lambda one: (one.node, one.gpu)):
        work = one.utilization
        if work is not None and work < limits.unused_gpu and one.samples >= limits.fewest_samples:
            found[one.node].append(one.gpu)
    return found


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _work_of_gpus(seen: JobEvidence, limits: DiagnosisLimits) -> tuple[str, ...]:
    """That the GPUs work for a part of the time only, if they do and enough samples say so.

    One sample may fall into an evaluation by chance: it does not decide.
    """
    work, samples = seen.nodes.utilization, min((one.samples for one in seen.nodes.gpus), default=0)
    if work is None or samples < limits.fewest_samples or work * samples / (samples - 1) >= limits.gpu_utilization:
        return ()
    return (f"the GPUs work {work:.0%} of the time, by {samples} samples or more",)


def _is_silent(seen: JobEvidence, limits: DiagnosisLimits) -> bool:
    """Whether EFA of a node sends nothing while the job steps and its processes wait for those of other nodes."""
    ranks = _by_node([one for one in _enough(seen, limits) if one.communication_share])
    several = [node for node in seen.nodes.silent_nodes if node in ranks and ranks[node][0].size > len(ranks[node])]
    return bool(several) and len(ranks) > 1 and _makes_steps(seen)


def _makes_steps(seen: JobEvidence) -> bool:
    """Whether a step ended in the minutes that the nodes have measured, not only before."""
    newest = max(seen.training, key=lambda one: one.last_at, default=None)
    return newest is not None and seen.nodes.at - newest.last_at < max(_STANDS_AFTER_S, 3 * newest.step_s)


def _clock(one: GpuSamples, usual: float | None) -> str:
    parts = [] if one.clock_mhz is None or usual is None else [f"{one.clock_mhz:.0f} MHz (others {usual:.0f})"]
    parts += [] if one.temperature_c is None else [f"{one.temperature_c:.0f} C"]
    return "".join(f", {part}" for part in parts)


def _enough(seen: JobEvidence, limits: DiagnosisLimits) -> list[RankSteps]:
    return [one for one in seen.training if one.lines >= limits.fewest_lines]


def _by_node(steps: Sequence[RankSteps]) -> Mapping[str, list[RankSteps]]:
    found: dict[str, list[RankSteps]] = defaultdict(list)
    for one in steps:
        found[one.node].append(one)
    return dict(sorted(found.items()))


def _slow(by_node: Mapping[str, float], ratio: float) -> dict[str, float]:
    """The few nodes that take this much longer than the median of the others."""
    found = {}
    for node, own in by_node.items():
        others = [one for other, one in by_node.items() if other != node]
        if others and own > ratio * median(others):
            found[node] = own
    return found if len(found) <= max(1, len(by_node) // _FEW) else {}


def _some(found: Sequence[RankSteps], of: Sequence[RankSteps]) -> tuple[str, ...]:
    """The nodes of these processes, if they are few of all; otherwise none: it concerns the whole job."""
    nodes, known = {one.node for one in found}, {one.node for one in of}
    return tuple(sorted(nodes)) if len(nodes) <= len(known) // _FEW else ()


def _nodes(ranks: Sequence[RankSteps]) -> tuple[str, ...]:
    return tuple(sorted({one.node for one in ranks}))


def folded(nodes: Sequence[str]) -> str:
    """The nodes as Slurm writes them; other names as they are."""
    return fold(nodes) if all(_NODE_NAME.fullmatch(node) for node in nodes) else ", ".join(nodes)


def _replace(nodes: Sequence[str]) -> str:
    return (
        f"as root on the head: `scontrol update nodename={folded(nodes)} state=drain reason=slow`, then `scontrol"
        " requeue` the job; a deep health check (docs/health.md) says whether the machine is sick"
    )


def _memory_in_use(one: RankSteps) -> str:
    in_use, total = (one.memory_peak or 0) / GIB, (one.memory_total or 0) / GIB
    return f"rank {one.rank} on {one.node} uses {three_digits(in_use)} of {three_digits(total)} GiB at the peak"


def _memory_forecast(seen: JobEvidence) -> tuple[str, ...]:
    if seen.expected is None:
        return ()
    needs, has = three_digits(seen.expected.memory_gib), three_digits(seen.expected.memory_limit_gib)
    return (f"the forecast needs {needs} of {has} GiB",)


def _first_for_memory(seen: JobEvidence, text: str) -> str:
    """What to change: what the forecast's memory model says, or else in the order of its largest terms."""
    found = _FRAGMENTS.search(text)
    if found and float(found[1]) / (1 if found[2] == "GiB" else 1024) > _FRAGMENTED_GIB:
        return "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: much of the memory is held in fragments"
    expected = seen.expected
    if expected and expected.change:
        return f"{expected.change} (`corral plan ENV --run FILE` shows the layout)"
    if expected and expected.largest_micro_batch:
        return (
            f"by the forecast, a micro-batch of up to {expected.largest_micro_batch} fits: use it, or recompute"
            " activations; if the program has it already, it holds more than the model needs"
        )
    return "halve the micro-batch (and double the accumulation), then recompute activations, then shard more (FSDP)"
