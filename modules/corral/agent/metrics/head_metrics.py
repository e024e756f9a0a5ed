"""The metrics of a head: pure, from one reading to families. docs/monitoring.md lists them, and a test compares both.

Every series of the plan's queues and offers exists from the beginning, with zero: an alert on the increase of a counter
needs its value before.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from corral.agent.cluster.models import Instance, SlurmNode
from corral.agent.cluster.state import Backoff, BootFailures
from corral.agent.metrics.event_counts import EventCounts
from corral.agent.metrics.file_systems import FileSystem
from corral.agent.metrics.slurm_jobs import JobRow
from corral.agent.metrics.spending import Spending
from corral.agent.metrics.text_format import Family, Kind, Metric, Sample, histogram
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.node_names import queue_of
from corral.model.run_forecast import RunForecastNumbers

NODE_STATES = ("off", "booting", "idle", "allocated", "draining", "down", "stopping")
_BOOT_BUCKETS_S = (60, 120, 180, 240, 300, 450, 600, 900, 1800)
_HAVE_JOBS = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadReading:
    """What is known at `now`. Times are seconds since 1970.

    `jobs`: None if slurmctld did not answer. `spending`: None without prices. `block_ends`: by offer. `ends_at`: None
    if the cluster has no end. `last_cycle`: when the autoscaler last completed a cycle; None if it has not yet.
    `is_changing`: the cluster is deployed or shut down now, so alerts are silent.
    """

    now: float
    plan: ClusterPlan
    nodes: Sequence[SlurmNode]
    instances: Sequence[Instance]
    backoffs: Mapping[str, Backoff]
    boot_failures: Mapping[str, BootFailures]
    events: EventCounts
    jobs: Sequence[JobRow] | None
    requeues: Mapping[str, int] = field(default_factory=dict)
    file_systems: Sequence[FileSystem] = ()
    spending: Spending | None = None
    block_ends: Mapping[str, float] = field(default_factory=dict)
    ends_at: float | None = None
    last_cycle: float | None = None
    is_changing: bool = False


_Compute = Callable[[HeadReading], Iterable[Sample]]


def head_families(reading: HeadReading) -> tuple[Family, ...]:
    """The head's metrics, by name."""
    return tuple(Family(metric=metric, samples=tuple(compute(reading))) for metric, compute in _COMPUTED)


def head_metrics() -> tuple[Metric, ...]:
    """All metrics that a head may have, by name."""
    return tuple(metric for metric, _ in _COMPUTED)


def node_state(node: SlurmNode) -> str:
    """One of NODE_STATES for a node: what matters most first."""
    states = node.states
    if not node.wants_machine:
        if states & _HAVE_JOBS:
            return "allocated"
        return "off" if "POWERED_DOWN" in states else "stopping"
    if "POWERING_UP" in states:
        return "booting"
    if states & {"DOWN", "NOT_RESPONDING", "UNKNOWN", "FAIL", "ERROR"}:
        return "down"
    if "DRAIN" in states:
        return "draining"
    return "allocated" if states & _HAVE_JOBS else "idle"


def _nodes(reading: HeadReading) -> Iterator[Sample]:
    found = Counter((queue_of(node.name), node_state(node)) for node in reading.nodes)
    for queue in reading.plan.queues:
        for state in NODE_STATES:
            yield Sample(labels={"queue": queue.name, "state": state}, value=found[queue.name, state])


def _gpus(reading: HeadReading) -> Iterator[Sample]:
    """The GPUs of machines that are up or boot. Those of a node that is drained or down serve no new job."""
    per_node = {queue.name: gpus for queue in reading.plan.queues if (gpus := _gpus_of(queue))}
    found = Counter[tuple[str, str]]()
    for node in reading.nodes:
        queue, state = queue_of(node.name), node_state(node)
        if queue in per_node and state not in ("off", "stopping"):
            found[queue, "allocated"] += node.gpus_allocated
            is_free = state in ("idle", "allocated")
            found[queue, "idle" if is_free else "unavailable"] += max(0, per_node[queue] - node.gpus_allocated)
    for queue in per_node:
        for state in ("allocated", "idle", "unavailable"):
            yield Sample(labels={"queue": queue, "state": state}, value=found[queue, state])


def _gpus_of(queue: QueuePlan) -> int:
    gres = queue.node.gres
    return gres.count if gres and gres.name == "gpu" else 0


def _node_gpus(reading: HeadReading) -> Iterator[Sample]:
    for node in reading.nodes:
        if gpus := node.gpus_allocated:
            yield Sample(labels={"node": node.name}, value=gpus)


def _machines(reading: HeadReading) -> Iterator[Sample]:
    found = Counter(one.offer for one in reading.instances if one.active)
    for queue in reading.plan.queues:
        for offer in queue.offers:
            yield Sample(
                labels={"queue": queue.name, "offer": offer.key, "market": str(offer.market)}, value=found[offer.key]
            )


def _backoffs(reading: HeadReading) -> Iterator[Sample]:
    for queue in reading.plan.queues:
        for offer in queue.offers:
            held = reading.backoffs.get(offer.key)
            left = max(0.0, held.until - reading.now) if held else 0.0
            yield Sample(labels={"queue": queue.name, "offer": offer.key}, value=round(left))


def _launches(reading: HeadReading) -> Iterator[Sample]:
    for queue in reading.plan.queues:
        for offer in queue.offers:
            for outcome in ("launched", "refused"):
                yield _launch(reading, queue.name, offer.key, outcome)
        yield _launch(reading, queue.name, "", "failed")


def _launch(reading: HeadReading, queue: str, offer: str, outcome: str) -> Sample:
    labels = {"queue": queue, "offer": offer, "outcome": outcome}
    return Sample(labels=labels, value=reading.events.launches[queue, offer, outcome])


def _boots(reading: HeadReading) -> Iterator[Sample]:
    for queue in reading.plan.queues:
        yield from histogram({"queue": queue.name}, reading.events.boots.get(queue.name, ()), _BOOT_BUCKETS_S)


def _boot_failures(reading: HeadReading) -> Iterator[Sample]:
    return _by_queue(reading, {queue: held.count for queue, held in reading.boot_failures.items()})


def _notices(reading: HeadReading) -> Iterator[Sample]:
    return _by_queue(reading, reading.events.notices)


def _requeues(reading: HeadReading) -> Iterator[Sample]:
    return _by_queue(reading, reading.requeues)


def _by_queue(reading: HeadReading, counts: Mapping[str, int]) -> Iterator[Sample]:
    for queue in reading.plan.queues:
        yield Sample(labels={"queue": queue.name}, value=counts.get(queue.name, 0))


def _jobs(reading: HeadReading) -> Iterator[Sample]:
    found = Counter((job.queue, job.account, job.state) for job in reading.jobs or ())
    for (queue, account, state), count in sorted(found.items()):
        yield Sample(labels={"queue": queue, "account": account, "state": state}, value=count)


def _waits(reading: HeadReading) -> Iterator[Sample]:
    since = dict[tuple[str, str], int]()
    for job in reading.jobs or ():
        if job.waits_since is not None:
            key = job.queue, job.account
            since[key] = min(since.get(key, job.waits_since), job.waits_since)
    for (queue, account), first in sorted(since.items()):
        yield Sample(labels={"queue": queue, "account": account}, value=max(0, round(reading.now) - first))


def _usd_per_hour(reading: HeadReading) -> Iterator[Sample]:
    if reading.spending:
        yield Sample(labels={"estimate": "low"}, value=reading.spending.rate.low)
        yield Sample(labels={"estimate": "high"}, value=reading.spending.rate.high)


def _usd_so_far(reading: HeadReading) -> Iterator[Sample]:
    if reading.spending:
        yield Sample(labels={"estimate": "low"}, value=reading.spending.sum.low)
        yield Sample(labels={"estimate": "high"}, value=reading.spending.sum.high)


def _budget(reading: HeadReading) -> Iterator[Sample]:
    if budget := reading.plan.monitoring.budget_usd_per_month:
        yield Sample(value=budget)


def _time_left(reading: HeadReading) -> Iterator[Sample]:
    if reading.ends_at is not None:
        yield Sample(value=round(reading.ends_at - reading.now))


def _block_time_left(reading: HeadReading) -> Iterator[Sample]:
    for queue in reading.plan.queues:
        for offer in queue.offers:
            if offer.key in reading.block_ends:
                labels = {"queue": queue.name, "offer": offer.key}
                yield Sample(labels=labels, value=round(reading.block_ends[offer.key] - reading.now))


def _sizes(reading: HeadReading) -> Iterator[Sample]:
    yield from (Sample(labels={"mount": one.mount}, value=one.size) for one in reading.file_systems)


def _free(reading: HeadReading) -> Iterator[Sample]:
    yield from (Sample(labels={"mount": one.mount}, value=one.free) for one in reading.file_systems)


def _cycle_age(reading: HeadReading) -> Iterator[Sample]:
    if reading.last_cycle is not None:
        yield Sample(value=max(0, round(reading.now - reading.last_cycle)))


def _slurmctld(reading: HeadReading) -> Iterator[Sample]:
    yield Sample(value=reading.jobs is not None)


def _changing(reading: HeadReading) -> Iterator[Sample]:
    yield Sample(value=reading.is_changing)


def _of_runs(value: Callable[[RunForecastNumbers], float], *, also_too_large: bool = False) -> _Compute:
    """A number of each declared run. Of one that does not fit into memory, its speed is that of no job."""

    def compute(reading: HeadReading) -> Iterator[Sample]:
        for run in reading.plan.runs:
            if run.fits or also_too_large:
                yield Sample(labels={"run": run.name, "queue": run.queue}, value=value(run))

    return compute


def _gauge(name: str, text: str) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, help=text)


def _counter(name: str, text: str) -> Metric:
    return Metric(name=name, kind=Kind.COUNTER, help=text)


_COMPUTED: tuple[tuple[Metric, _Compute], ...] = (
    (_gauge("corral_autoscaler_cycle_age_seconds", "Time since the autoscaler last completed a cycle."), _cycle_age),
    (_gauge("corral_block_time_left_seconds", "Time until the capacity block of an offer ends."), _block_time_left),
    (_gauge("corral_budget_usd_per_month", "The declared budget of the base."), _budget),
    (_gauge("corral_cluster_changing", "1 while a deployment or a shutdown changes the cluster."), _changing),
    (_gauge("corral_cluster_time_left_seconds", "Time until the cluster shuts itself down."), _time_left),
    (
        _gauge("corral_cost_usd_per_hour", "Cost of what runs now, by catalog prices, without the base's network."),
        _usd_per_hour,
    ),
    (
        _counter("corral_cost_usd_total", "Cost since monitoring began on this cluster, at those prices."),
        _usd_so_far,
    ),
    (_gauge("corral_file_system_free_bytes", "Free space of a file system of the head, for users."), _free),
    (_gauge("corral_file_system_size_bytes", "Size of a file system of the head."), _sizes),
    (
        _gauge(
            "corral_forecast_communication_ratio", "Forecast of a declared run: communication as a share of a step."
        ),
        _of_runs(lambda run: run.communication_share),
    ),
    (_gauge("corral_forecast_gpus", "GPUs of a declared run."), _of_runs(lambda run: run.gpus)),
    (
        _gauge("corral_forecast_memory_bytes", "Forecast of a declared run: memory of a GPU."),
        _of_runs(lambda run: run.memory_gib * _GIB, also_too_large=True),
    ),
    (
        _gauge("corral_forecast_mfu_ratio", "Forecast of a declared run: model FLOPs as a share of the peak."),
        _of_runs(lambda run: run.mfu),
    ),
    (_gauge("corral_forecast_nodes", "Nodes of a declared run."), _of_runs(lambda run: run.nodes)),
    (
        _gauge("corral_forecast_step_seconds", "Forecast of a declared run: a step of its whole batch."),
        _of_runs(lambda run: run.step_s),
    ),
    (
        _gauge("corral_forecast_tokens_per_second_per_gpu", "Forecast of a declared run: its speed."),
        _of_runs(lambda run: run.tokens_per_s_per_gpu),
    ),
    (
        _gauge("corral_forecast_uncertainty_ratio", "Forecast of a declared run: how far its speed may be off."),
        _of_runs(lambda run: run.uncertainty),
    ),
    (_gauge("corral_gpus", "GPUs of machines that are up, by whether jobs have them."), _gpus),
    (_counter("corral_job_requeues_total", "Requeues of jobs since the agent started."), _requeues),
    (_gauge("corral_job_wait_seconds", "Longest time that a pending job now waits for machines."), _waits),
    (_gauge("corral_jobs", "Jobs that have not ended."), _jobs),
    (_counter("corral_launches_total", "Launches by outcome: failed ones found no offer at all."), _launches),
    (_gauge("corral_machines", "Instances of nodes by the offer that they come from."), _machines),
    (_gauge("corral_node_boot_failures", "Machines in a row that did not boot; 0 after one that did."), _boot_failures),
    (
        Metric(
            name="corral_node_boot_seconds",
            kind=Kind.HISTOGRAM,
            help="Time from the launch of a machine to the start of its slurmd.",
        ),
        _boots,
    ),
    (_gauge("corral_node_gpus_allocated", "GPUs of a node that jobs have, if any."), _node_gpus),
    (_gauge("corral_nodes", "Slurm's nodes."), _nodes),
    (_gauge("corral_offer_backoff_seconds", "Time until an offer is tried again; 0 if it is tried now."), _backoffs),
    (_gauge("corral_slurmctld_up", "1 if slurmctld answered this query."), _slurmctld),
    (_counter("corral_spot_notices_total", "Nodes whose machine EC2 announced to reclaim."), _notices),
)
