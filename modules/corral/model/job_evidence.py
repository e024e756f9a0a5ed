"""What a cluster's head knows about one job: Slurm's record, steps of its processes, its output, samples of its nodes.

The agent on the head writes these records, and `corral diagnose` reads them. Texts and numbers of steps, variables and
output are the job's own: whoever runs it can write anything there. Times are whole seconds since 1970.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from corral.model.run_forecast import NO_FORECAST, FoundForecast

JOB_ID = re.compile(r"[0-9]{1,9}(_[0-9]{1,9})?")  # such as 17, or 17_3 for a task of an array


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """Slurm's record of the newest run of a job. `state`: in small letters; `exit_code`: Slurm's, such as `1:0`.

    `started`, `ended`: None if not yet. `runs`: how often it was started. `gpus`: of all its nodes. `step_states`: the
    states of its steps, which name an end for lack of memory that the job's own state may not.
    """

    job_id: str
    user: str
    name: str
    queue: str
    state: str
    exit_code: str
    nodes: str
    node_count: int
    gpus: int
    runs: int
    started: int | None
    ended: int | None
    step_states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSteps:
    """The newest steps of one process, at most those of the last 600 lines that it wrote, without its first ones.

    `seconds`: the time that they cover, without checkpoints. `step_s`, `slow_step_s`: the median and the 95th
    percentile of a step; `own_s`: the median without the waits for data and for other processes. The shares are of
    `seconds`, `checkpoint_share` of both. `checkpoints`: how many; `checkpoint_s`: the longest one. `write_s`: the
    median time of a write to the file system that the job's directory is on. Memory is the GPU's, in bytes, at the
    peak: `memory_peak` is in use, `memory_reserved` is held by the allocator; `memory_retries`: how often the allocator
    emptied its cache to go on.
    `saved_at`: when the last checkpoint was complete; `saved_after_s`: how long after the one before it.
    None: not recorded. `error`, `message`: what ended the process. `is_closed`: its training has ended.
    """

    rank: int
    node: str
    size: int
    restarts: int
    lines: int = 0
    steps: int = 0
    last_step: int = 0
    last_at: int = 0
    seconds: float = 0.0
    step_s: float = 0.0
    slow_step_s: float = 0.0
    own_s: float = 0.0
    data_share: float = 0.0
    communication_share: float | None = None
    checkpoint_share: float = 0.0
    checkpoints: int = 0
    checkpoint_s: float = 0.0
    tokens_per_s: float = 0.0
    loss: float | None = None
    write_s: float | None = None
    saved_at: int | None = None
    saved_after_s: float | None = None
    memory_peak: int | None = None
    memory_reserved: int | None = None
    memory_total: int | None = None
    memory_retries: int = 0
    error: str = ""
    message: str = ""
    is_closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPoint:
    """Some consecutive steps of one process, up to step `step` at `at`: the mean of a step, and shares of the time.

    None: not recorded.
    """

    at: int
    step: int
    step_s: float
    tokens_per_s: float
    data_share: float
    communication_share: float | None
    loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSamples:
    """Samples of a GPU over some minutes, half a minute apart; None for what it does not report.

    `utilization`: the mean share of a second in which a kernel ran. `reason`: what held its clocks back most often, in
    the words of its driver, and `throttled_share`: in which share of the samples; heat and the power brake before a
    power cap, empty for nothing. `clock_mhz`: the median clock of its cores; `temperature_c`: the highest.
    """

    node: str
    gpu: int
    samples: int
    utilization: float | None
    throttled_share: float
    reason: str
    clock_mhz: float | None
    temperature_c: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSamples:
    """What a node has measured of itself in the last minutes.

    `efa_sent_bytes`: by all its EFA interfaces together in `efa_seconds`; None without EFA, or if that is not known.
    """

    gpus: tuple[GpuSamples, ...] = ()
    efa_sent_bytes: int | None = None
    efa_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNodes:
    """What the nodes of a running job measured of themselves in the last minutes, until `at`.

    `gpus`: of the job's GPUs those that are held back most, then those that work least. `gpu_count`: how many were
    measured; `utilization`, `clock_mhz`: the mean and the median of these. `efa_nodes`: the nodes with EFA whose
    counters are known; `silent_nodes`: those of them that have sent nothing in `efa_seconds` or longer. `unread_nodes`:
    those that did not answer. `problem`: why nothing was read, empty otherwise.
    """

    at: int = 0
    gpus: tuple[GpuSamples, ...] = ()
    gpu_count: int = 0
    utilization: float | None = None
    clock_mhz: float | None = None
    efa_nodes: int = 0
    silent_nodes: tuple[str, ...] = ()
    efa_seconds: float = 0.0
    unread_nodes: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCurves:
    """What Prometheus has of the newest run of a job: values every `every_s` from `first` to `last`.

    Each is of the `over_s` before it, and of `nodes` of the job's nodes; None: nothing was measured then. Tokens: the
    mean of the processes that record any; communication: of the one that waits least; GPUs: the mean of the job's own;
    EFA: the mean of the nodes that have it. `is_kept`: whether Prometheus is declared. `nodes` is 0 before the run is
    long enough for a value. `problem`: why something may be missing, empty if complete.
    """

    is_kept: bool = False
    first: int = 0
    last: int = 0
    every_s: int = 0
    over_s: int = 0
    nodes: int = 0
    tokens_per_s: tuple[float | None, ...] = ()
    communication_share: tuple[float | None, ...] = ()
    gpu_utilization: tuple[float | None, ...] = ()
    efa_sent_bytes_per_s: tuple[float | None, ...] = ()
    problem: str = ""


NO_CURVES = JobCurves()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPage:
    """What a user's job has written, of a page of its processes in the order of their ranks.

    `next`: the index of the next page, None after the last. `variables`: those of the first process that decide about
    communication. `output`: lines of the job's output. `problem`: why something may be missing, empty if complete.
    `curve`: the newest steps of the first process over time, in the first page only.
    """

    ranks: tuple[RankSteps, ...]
    next: int | None
    variables: Mapping[str, str]
    output: tuple[str, ...] = ()
    problem: str = ""
    curve: tuple[StepPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvidencePage:
    """A page of what the head knows about a job. `node_reasons`: Slurm's reasons by the node that is drained or down.

    `nodes`, `forecast`, `curves`: what its nodes measured, what is forecast of the run that it names, and what
    Prometheus has of it; in the first page only.
    """

    job: JobRecord
    steps: StepPage
    node_reasons: Mapping[str, str]
    nodes: JobNodes = JobNodes()
    forecast: FoundForecast = NO_FORECAST
    curves: JobCurves = NO_CURVES
