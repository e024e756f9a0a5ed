"""The alerts on the metrics of head, nodes and Alertmanager, as data: each has a page in docs/runbooks and a test.

Also what Prometheus records of jobs. Of a declared run, head and nodes know only one half each.

An alert uses only metrics that something exports. All but the head's own are silent while a deployment or a shutdown
changes the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_STABLE = " unless on () corral_cluster_changing == 1"
_HOURS_PER_MONTH = 730
# The limits of jobs are those of `corral diagnose` (catalog/data/diagnosis.toml) and of the project's goals.
_UTILIZATION, _COMMUNICATION, _STRAGGLER, _SLOWED = 0.9, 0.2, 1.15, 0.1
_SLOWER = 1.3  # choice: evaluations and data of another length make steps some percent longer
_MISSED_CHECKPOINTS = 2
# An idle GPU has less than this of its memory in use, and one that a job trains on has more.
_HAS_PROGRAM = "corral_gpu_memory_used_bytes / corral_gpu_memory_total_bytes > 0.02"
# Steps of a synchronous job are equally long in all processes; six hours of thousands of them take Prometheus seconds.
_FIRST = 'corral_job_step_seconds{rank="0"}'
_JOBS_OF_NODES = "max by (node, job_id, user) (corral_job_step_seconds)"
_MEDIAN_STEP = f"quantile_over_time(0.5, {_FIRST}[6h])"
_IDLE = 0.01  # one sample of twenty with a fifth of its second in a kernel: choice
# Evaluations and checkpoints of half an hour exist, and so do steps of minutes: choices.
_PAUSE_S, _STEPS_MISSED = 1800, 10
_FELL = 0.5  # the same work sends as much in each step; NCCL that has left EFA sends nothing there: choice
_PER_STEP = "corral_job_efa_sent_bytes_per_step"
_DIAGNOSE = "corral diagnose ENV {{ $labels.job_id }}"
_OWN_BY_NODE = "avg by (job_id, user, node) (avg_over_time(corral_job_own_step_seconds[10m]))"


# A job is a declared run if it names it, runs on as many nodes of its queue, and all of these export its steps.
_OF_RUN = "max by (job_id, user, run, queue) (corral_job_run_processes)"
_IS_RUN = (
    "count by (job_id, user, run, queue) (corral_job_run_processes)"
    " == on (run, queue) group_left () corral_forecast_nodes"
)
_RATIO = "corral_job_forecast_ratio"
# The mean of the processes that are scraped now, times all: a process that is missing in one scrape changes nothing.
_TOKENS = "avg by (job_id, user) (corral_job_tokens_per_second > 0)"


class Severity(StrEnum):
    """Critical: jobs do not run, so somebody must act now. Warning: it costs money or time. Info: a date to know."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert: what is true for how long. `summary`: one line with the values, in Prometheus's templates.

    `first_command`: where its runbook begins to look, in these templates; ENV stands for the cluster.
    """

    name: str
    expression: str
    holds_for: str
    severity: Severity
    summary: str
    first_command: str = "corral status ENV"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A series that Prometheus computes. `text`: what it is, for docs/monitoring.md."""

    name: str
    expression: str
    text: str


RECORDINGS = (
    Recording(
        name="corral_job_tokens_per_second_per_gpu",
        expression=(
            f"({_OF_RUN} and {_IS_RUN}) * on (job_id, user) group_left () {_TOKENS}"
            " / on (run, queue) group_left () corral_forecast_gpus"
        ),
        text="Speed of a job that is a declared run.",
    ),
    Recording(
        name=_RATIO,
        expression=(
            "corral_job_tokens_per_second_per_gpu"
            " / on (run, queue) group_left () corral_forecast_tokens_per_second_per_gpu"
        ),
        text="This speed as a share of the forecast's.",
    ),
    Recording(
        name="corral_job_mfu_ratio",
        expression=f"{_RATIO} * on (run, queue) group_left () corral_forecast_mfu_ratio",
        text="Model FLOPs of such a job as a share of the peak, as the forecast counts them.",
    ),
    Recording(
        name=_PER_STEP,
        expression=(
            f"{_JOBS_OF_NODES} * on (node) group_left () sum by (node) (rate(corral_efa_sent_bytes_total[10m]))"
            f" and on (job_id) count by (job_id) ({_JOBS_OF_NODES}) > 1"
        ),
        text="What a node of a job of several nodes sends over EFA in each step.",
    ),
)


def _stable(expression: str) -> str:
    return f"({expression}){_STABLE}"


def _since_last_step(offset: str = "") -> str:
    """Of the process of a job that stepped last; `offset`: at an earlier time."""
    return f"min by (job_id, user) (corral_job_step_age_seconds{offset})"


ALERTS = (
    Alert(
        name="CorralHeadUnwell",
        expression='up{job="corral"} == 0 or corral_slurmctld_up == 0 or corral_autoscaler_cycle_age_seconds > 300',
        holds_for="5m",
        severity=Severity.CRITICAL,
        summary="The head's autoscaler or slurmctld does not answer: no job starts, and no machine ends.",
    ),
    Alert(
        name="CorralNodesDoNotBoot",
        expression=_stable("max_over_time(corral_node_boot_failures[30m]) >= 2"),
        holds_for="0m",
        severity=Severity.CRITICAL,
        summary='Queue {{ $labels.queue }}: {{ $value | printf "%.0f" }} machines in a row did not boot.',
        first_command="corral timeline ENV --since 2h",
    ),
    Alert(
        name="CorralQueueStuck",
        # A queue that is busy lets jobs wait; one in which nothing runs or boots should not.
        expression=_stable(
            "max by (queue) (corral_job_wait_seconds) > 900"
            ' and on (queue) sum by (queue) (corral_nodes{state=~"allocated|booting|stopping"}) == 0'
        ),
        holds_for="5m",
        severity=Severity.CRITICAL,
        summary="Queue {{ $labels.queue }}: a job waits {{ $value | humanizeDuration }}, and no node runs or boots.",
    ),
    Alert(
        name="CorralOffersBackOff",
        expression=_stable(
            "min by (queue) (corral_offer_backoff_seconds) > 0"
            " and on (queue) max by (queue) (corral_job_wait_seconds) > 0"
        ),
        holds_for="15m",
        severity=Severity.WARNING,
        summary="Queue {{ $labels.queue }}: EC2 refuses all offers, next try in {{ $value | humanizeDuration }}.",
    ),
    Alert(
        name="CorralGpusIdle",
        expression=_stable(
            'sum by (queue) (corral_gpus{state="idle"}) > 0'
            ' and on (queue) sum by (queue) (corral_gpus{state="allocated"}) == 0'
        ),
        holds_for="2h",
        severity=Severity.WARNING,
        summary='Queue {{ $labels.queue }}: {{ $value | printf "%.0f" }} GPUs cost money, and no job had one for 2 h.',
    ),
    Alert(
        name="CorralFileSystemNearlyFull",
        expression=_stable("corral_file_system_free_bytes / corral_file_system_size_bytes < 0.1"),
        holds_for="10m",
        severity=Severity.WARNING,
        summary="{{ $labels.mount }} has {{ $value | humanizePercentage }} free.",
        first_command="corral connect ENV --root -- df -h",
    ),
    Alert(
        name="CorralSpendAboveBudget",
        expression=_stable(
            f'avg_over_time(corral_cost_usd_per_hour{{estimate="low"}}[1d]) * {_HOURS_PER_MONTH}'
            " > ignoring (estimate) corral_budget_usd_per_month"
        ),
        holds_for="1h",
        severity=Severity.WARNING,
        summary='As in the last day, a month costs {{ $value | printf "%.0f" }} USD, more than the budget of the base.',
        first_command="corral usage ENV --by day",
    ),
    Alert(
        name="CorralEndsSoon",
        expression=_stable("corral_cluster_time_left_seconds < 7200"),
        holds_for="0m",
        severity=Severity.INFO,
        summary="The cluster ends in {{ $value | humanizeDuration }}, and stops its jobs.",
    ),
    Alert(
        name="CorralBlockEndsSoon",
        expression=_stable("corral_block_time_left_seconds < 7200 and corral_block_time_left_seconds > 0"),
        holds_for="0m",
        severity=Severity.INFO,
        summary="The capacity block of {{ $labels.offer }} ends in {{ $value | humanizeDuration }}.",
    ),
    Alert(
        name="CorralAllocatedGpusIdle",
        # Which of a node's GPUs jobs have, only Slurm knows: of those that do nothing, as many may be free as it says.
        # A GPU that reports nothing, as with MIG, is no idle one.
        expression=_stable(
            f"count by (node) (avg_over_time(corral_gpu_utilization_ratio[10m]) < {_IDLE})"
            " - clamp_min(count by (node) (corral_gpu_utilization_ratio)"
            " - max by (node) (corral_node_gpus_allocated), 0) > 0"
        ),
        holds_for="1h",
        severity=Severity.WARNING,
        summary='{{ $value | printf "%.0f" }} GPUs of {{ $labels.node }} are in jobs and have done nothing for 1 h.',
        first_command="corral connect ENV --root -- squeue -w {{ $labels.node }}",
    ),
    Alert(
        name="CorralGpusUnderused",
        # Zero for each node on which a job makes steps, plus what the GPUs there do.
        expression=_stable(
            f"avg by (job_id, user) ({_JOBS_OF_NODES} * 0 + on (node) group_left () avg by (node)"
            f" (avg_over_time(corral_gpu_utilization_ratio[10m]) and {_HAS_PROGRAM})) < {_UTILIZATION}"
        ),
        holds_for="15m",
        severity=Severity.WARNING,
        summary="Job {{ $labels.job_id }} of {{ $labels.user }} uses its GPUs for {{ $value | humanizePercentage }}.",
        first_command=_DIAGNOSE,
    ),
    Alert(
        name="CorralCommunicationHigh",
        # The process that waits least: the others' waits may be for a slow one.
        expression=_stable(
            f"min by (job_id, user) (avg_over_time(corral_job_communication_ratio[10m])) > {_COMMUNICATION}"
        ),
        holds_for="15m",
        severity=Severity.WARNING,
        summary=(
            "Job {{ $labels.job_id }} of {{ $labels.user }} communicates for {{ $value | humanizePercentage }}"
            " of its steps."
        ),
        first_command=_DIAGNOSE,
    ),
    Alert(
        name="CorralStepsSlower",
        expression=_stable(
            f"max by (job_id, user) (avg_over_time({_FIRST}[10m]) / {_MEDIAN_STEP}"
            f" and count_over_time({_FIRST}[6h]) > 60) > {_SLOWER}"
        ),
        holds_for="10m",
        severity=Severity.WARNING,
        summary=(
            "Steps of job {{ $labels.job_id }} of {{ $labels.user }} take"
            ' {{ $value | printf "%.1f" }} times as long as before.'
        ),
        first_command=_DIAGNOSE,
    ),
    Alert(
        name="CorralJobHangs",
        # The process that stepped last counts. Its age half an hour ago is only there if the job ran then: what was
        # requeued begins with the age of its former run. The median is forgotten after six hours, the alert is not.
        expression=_stable(
            f"{_since_last_step()} > {_PAUSE_S} and {_since_last_step(' offset 30m')}"
            f" unless {_since_last_step()} < {_STEPS_MISSED} * max by (job_id, user) ({_MEDIAN_STEP})"
        ),
        holds_for="5m",
        severity=Severity.WARNING,
        summary=(
            "Job {{ $labels.job_id }} of {{ $labels.user }} runs, and has made no step for"
            " {{ $value | humanizeDuration }}."
        ),
        first_command=_DIAGNOSE,
    ),
    Alert(
        name="CorralSlowerThanForecast",
        expression=_stable(
            f"(avg_over_time({_RATIO}[10m]) and {_RATIO})"
            " < on (run, queue) group_left () 1 - corral_forecast_uncertainty_ratio"
        ),
        holds_for="10m",
        severity=Severity.WARNING,
        summary=(
            "Job {{ $labels.job_id }} of {{ $labels.user }} reaches {{ $value | humanizePercentage }} of the speed that"
            " is forecast of {{ $labels.run }}."
        ),
        first_command=_DIAGNOSE,
    ),
    Alert(
        name="CorralNodeSlow",
        # A quarter of the nodes, not half: of two nodes, half would lie between the slow one and the other.
        expression=_stable(
            f"{_OWN_BY_NODE} / on (job_id, user) group_left ()"
            f" quantile by (job_id, user) (0.25, {_OWN_BY_NODE}) > {_STRAGGLER}"
        ),
        holds_for="10m",
        severity=Severity.WARNING,
        summary=(
            '{{ $labels.node }} works {{ $value | printf "%.2f" }} times as long on a step of job'
            " {{ $labels.job_id }} as other nodes, which wait for it."
        ),
        first_command=_DIAGNOSE,
    ),
    Alert(
        name="CorralGpuErrors",
        expression=_stable(
            'max by (node, gpu) (corral_gpu_xid{action="replace"}) > 0'
            ' or max by (node, gpu) (corral_gpu_memory_errors{kind="uncorrected"}) > 0'
        ),
        holds_for="0m",
        severity=Severity.CRITICAL,
        summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is faulty: an Xid error, or its memory.",
        first_command="corral connect ENV --root -- scontrol show node {{ $labels.node }}",
    ),
    Alert(
        name="CorralEfaStandsStill",
        expression=_stable(f"max by (node) ({_PER_STEP}) == 0"),
        holds_for="5m",
        severity=Severity.WARNING,
        summary="A job of several nodes makes steps on {{ $labels.node }}, and EFA there sends nothing.",
        first_command="corral connect ENV --root -- squeue -w {{ $labels.node }}",
    ),
    Alert(
        name="CorralEfaFalls",
        # In a step, not in a second: slower steps are CorralStepsSlower's, and no fault of the network.
        expression=_stable(
            f"min by (job_id, user) ({_PER_STEP} / quantile_over_time(0.5, {_PER_STEP}[6h])"
            f" and {_PER_STEP} > 0 and count_over_time({_PER_STEP}[6h]) > 60) < {_FELL}"
        ),
        holds_for="15m",
        severity=Severity.WARNING,
        summary=(
            "A node of job {{ $labels.job_id }} of {{ $labels.user }} sends {{ $value | humanizePercentage }} of"
            " what it sent over EFA in a step before."
        ),
        first_command=_DIAGNOSE,
    ),
    Alert(
        name="CorralGpuSlowed",
        expression=_stable(
            f'max by (node, gpu) (avg_over_time(corral_gpu_slowed{{reason!="sw_power_cap"}}[10m])) > {_SLOWED}'
        ),
        holds_for="5m",
        severity=Severity.WARNING,
        summary=(
            "Heat or the power brake holds back GPU {{ $labels.gpu }} of {{ $labels.node }}"
            " for {{ $value | humanizePercentage }} of the time."
        ),
        first_command="corral connect ENV -- ssh {{ $labels.node }} nvidia-smi -q -d PERFORMANCE,TEMPERATURE",
    ),
    Alert(
        name="CorralCheckpointOld",
        expression=_stable(
            "min by (job_id, user) (corral_job_checkpoint_age_seconds / corral_job_checkpoint_interval_seconds)"
            f" > {_MISSED_CHECKPOINTS} and on (job_id, user) corral_job_step_seconds"
        ),
        holds_for="5m",
        severity=Severity.WARNING,
        summary=(
            "Job {{ $labels.job_id }} of {{ $labels.user }} makes steps, and its last checkpoint is"
            ' {{ $value | printf "%.1f" }} intervals old.'
        ),
        first_command=_DIAGNOSE,
    ),
    Alert(
        name="CorralNodeSilent",
        # A node that ran before Prometheus was declared has never answered, and is as it should be.
        expression=_stable(
            'max by (node, queue) (up{job="nodes"}) == 0'
            ' and on (node) max by (node) (max_over_time(up{job="nodes"}[1d])) == 1'
        ),
        holds_for="10m",
        severity=Severity.WARNING,
        summary="{{ $labels.node }} is up in Slurm and shows no metrics: alerts miss its GPUs, EFA and jobs.",
        first_command="corral connect ENV -- ssh {{ $labels.node }} systemctl status corral-watch",
    ),
    Alert(
        name="CorralAlertsUndelivered",
        # Alertmanager counts a delivery once it has given up, and tries again at the next look, minutes later.
        expression=_stable("sum by (integration) (increase(alertmanager_notifications_failed_total[15m])) > 0"),
        holds_for="0m",
        severity=Severity.CRITICAL,  # what it did not deliver may be, and so it goes to all who are left
        summary="Alertmanager cannot deliver alerts to {{ $labels.integration }}.",
        first_command="corral connect ENV --root -- journalctl -u prometheus-alertmanager -n 20",
    ),
)

# Without autoscaler and slurmctld these are true of every cluster, and their reason is the head's.
OF_AN_UNWELL_HEAD = (
    "CorralNodesDoNotBoot",
    "CorralQueueStuck",
    "CorralOffersBackOff",
    "CorralGpusIdle",
    "CorralAllocatedGpusIdle",
    "CorralNodeSilent",
)
