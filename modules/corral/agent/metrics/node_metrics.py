"""The metrics of a compute node: pure, from one reading to families. docs/monitoring.md lists them.

Which node and queue they are of, Prometheus adds by its list of targets (`node_targets`): no node can pose as another.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from corral.agent.health.gpus import CLOCK_REASONS
from corral.agent.health.xids import Xid, xid_meanings
from corral.agent.metrics.efa_counters import EfaCounters
from corral.agent.metrics.gpu_load import GpuLoad
from corral.agent.metrics.job_steps import JobSteps
from corral.agent.metrics.text_format import Family, Kind, Metric, Sample
from corral.model.job_evidence import RankSteps

_STANDS_AFTER_S = 120.0  # without a step, a job's speed is unknown, unless its steps are so long
_STEPS_MISSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    """What is known at `now`, in seconds since 1970; a part that was not read lately is empty."""

    now: float
    gpus: tuple[GpuLoad, ...] = ()
    xids: tuple[Xid, ...] = ()
    efa: tuple[EfaCounters, ...] = ()
    jobs: tuple[JobSteps, ...] = ()


def node_families(reading: NodeReading) -> tuple[Family, ...]:
    """The node's metrics, by name."""
    return tuple(Family(metric=metric, samples=tuple(compute(reading))) for metric, compute in _COMPUTED)


def node_metrics() -> tuple[Metric, ...]:
    """All metrics that a node may have, by name."""
    return tuple(metric for metric, _ in _COMPUTED)


_Compute = Callable[[NodeReading], Iterable[Sample]]


def _of_gpus(value: Callable[[GpuLoad], float | None]) -> _Compute:
    def compute(reading: NodeReading) -> Iterator[Sample]:
        for gpu in reading.gpus:
            if (found := value(gpu)) is not None:
                yield Sample(labels={"gpu": str(gpu.index)}, value=found)

    return compute


def _memory_errors(reading: NodeReading) -> Iterator[Sample]:
    for gpu in reading.gpus:
        for kind, found in (("corrected", gpu.corrected), ("uncorrected", gpu.uncorrected)):
            if found is not None:
                yield Sample(labels={"gpu": str(gpu.index), "kind": kind}, value=found)


def _slowed(reading: NodeReading) -> Iterator[Sample]:
    for gpu in reading.gpus:
        for reason in CLOCK_REASONS:
            yield Sample(labels={"gpu": str(gpu.index), "reason": reason}, value=reason in gpu.slowed_by)


def _xids(reading: NodeReading) -> Iterator[Sample]:
    """The errors that `xids.csv` knows: others are faults of programs. A lost GPU has its bus id for a number."""
    numbers = {gpu.bus_id: str(gpu.index) for gpu in reading.gpus}
    for xid in reading.xids:
        if meaning := xid_meanings().get(xid.number):
            action = "replace" if meaning.replaces else "log"
            gpu = numbers.get(xid.bus_id, xid.bus_id)
            yield Sample(labels={"gpu": gpu, "xid": str(xid.number), "action": action}, value=1)


def _of_efa(value: Callable[[EfaCounters], float]) -> _Compute:
    return lambda reading: (Sample(labels={"device": one.device}, value=value(one)) for one in reading.efa)


def _summed(value: Callable[[EfaCounters], float]) -> _Compute:
    return lambda reading: [Sample(value=sum(map(value, reading.efa)))] if reading.efa else []


def _of_ranks(value: Callable[[RankSteps], float | None], *, also_standing: bool = False) -> _Compute:
    """A value of each process; with `also_standing` also of one that makes no steps now."""

    def compute(reading: NodeReading) -> Iterator[Sample]:
        for job in reading.jobs:
            for rank in job.ranks:
                found = value(rank) if also_standing or _steps_now(rank, reading.now) else None
                if found is not None:
                    yield Sample(labels=_labels(job, rank), value=found)

    return compute


def _age(moment: Callable[[RankSteps], int | None]) -> _Compute:
    def compute(reading: NodeReading) -> Iterator[Sample]:
        for job in reading.jobs:
            for rank in job.ranks:
                if (at := moment(rank)) is not None:
                    yield Sample(labels=_labels(job, rank), value=max(0.0, reading.now - at))

    return compute


def _steps_now(rank: RankSteps, now: float) -> bool:
    return now - rank.last_at <= max(_STANDS_AFTER_S, _STEPS_MISSED * rank.step_s)


def _labels(job: JobSteps, rank: RankSteps) -> Mapping[str, str]:
    return {"job_id": job.job_id, "user": job.user, "rank": str(rank.rank)}


def _processes_of_runs(reading: NodeReading) -> Iterator[Sample]:
    """How many processes the job has on all nodes, as its program reports it."""
    for job in reading.jobs:
        if job.run and job.ranks:
            labels = {"job_id": job.job_id, "user": job.user, "run": job.run}
            yield Sample(labels=labels, value=max(rank.size for rank in job.ranks))


def _own_step(rank: RankSteps) -> float | None:
    return None if rank.communication_share is None else rank.own_s


def _metric(name: str, text: str, compute: _Compute, kind: Kind = Kind.GAUGE) -> tuple[Metric, _Compute]:
    return Metric(name=name, kind=kind, help=text), compute


_COMPUTED: tuple[tuple[Metric, _Compute], ...] = (
    _metric(
        "corral_efa_dropped_packets_total",
        "Received packets that the node's EFA interfaces dropped.",
        _summed(lambda one: one.dropped),
        Kind.COUNTER,
    ),
    _metric(
        "corral_efa_received_bytes_total",
        "What an EFA interface has received, with RDMA.",
        _of_efa(lambda one: one.received_bytes),
        Kind.COUNTER,
    ),
    _metric(
        "corral_efa_resent_packets_total",
        "Packets that the node's EFA interfaces have sent again.",
        _summed(lambda one: one.resent),
        Kind.COUNTER,
    ),
    _metric(
        "corral_efa_sent_bytes_total",
        "What an EFA interface has sent, with RDMA.",
        _of_efa(lambda one: one.sent_bytes),
        Kind.COUNTER,
    ),
    _metric("corral_gpu_clock_hertz", "Clock of a GPU's cores.", _of_gpus(lambda gpu: gpu.clock_hz)),
    _metric(
        "corral_gpu_memory_errors",
        "Errors of a GPU's memory since its driver was loaded, by whether ECC corrected them.",
        _memory_errors,
    ),
    _metric("corral_gpu_memory_total_bytes", "Memory of a GPU.", _of_gpus(lambda gpu: gpu.memory_total)),
    _metric("corral_gpu_memory_used_bytes", "Memory of a GPU in use.", _of_gpus(lambda gpu: gpu.memory_used)),
    _metric("corral_gpu_power_watts", "Power that a GPU draws.", _of_gpus(lambda gpu: gpu.power_w)),
    _metric(
        "corral_gpu_slowed", "1 if this holds a GPU's clocks back now. sw_power_cap is usual at full load.", _slowed
    ),
    _metric("corral_gpu_temperature_celsius", "Temperature of a GPU.", _of_gpus(lambda gpu: gpu.temperature_c)),
    _metric(
        "corral_gpu_utilization_ratio",
        "Share of the last second in which a kernel ran on a GPU.",
        _of_gpus(lambda gpu: gpu.utilization),
    ),
    _metric(
        "corral_gpu_xid",
        "1 for each Xid error of a GPU since the machine booted, by what corral does about it.",
        _xids,
    ),
    _metric(
        "corral_job_checkpoint_age_seconds",
        "Time since a process last saved a checkpoint.",
        _age(lambda rank: rank.saved_at),
    ),
    _metric(
        "corral_job_checkpoint_interval_seconds",
        "Time between the last two checkpoints of a process.",
        _of_ranks(lambda rank: rank.saved_after_s, also_standing=True),
    ),
    _metric(
        "corral_job_communication_ratio",
        "Share of a step in which a process waits for others.",
        _of_ranks(lambda rank: rank.communication_share),
    ),
    _metric(
        "corral_job_data_wait_ratio",
        "Share of a step in which a process waits for data.",
        _of_ranks(lambda rank: rank.data_share),
    ),
    _metric(
        "corral_job_own_step_seconds",
        "A step without the waits for data and for others, if the program records these.",
        _of_ranks(_own_step),
    ),
    _metric(
        "corral_job_run_processes",
        "Processes of a job, on all its nodes, that names a declared run (CORRAL_RUN).",
        _processes_of_runs,
    ),
    _metric(
        "corral_job_step_age_seconds",
        "Time since the last step of a process that still records.",
        _age(lambda rank: None if rank.is_closed else rank.last_at),
    ),
    _metric(
        "corral_job_step_seconds",
        "Median step of a process in its last minute; missing while it makes none.",
        _of_ranks(lambda rank: rank.step_s),
    ),
    _metric("corral_job_tokens_per_second", "Tokens of a process a second.", _of_ranks(lambda rank: rank.tokens_per_s)),
)
