"""The alerts on the head's metrics, as data. docs/runbooks has a page for each; the tests run each by promtool.

An alert uses only metrics that something exports. All but the head's own are silent while a deployment or a shutdown
changes the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_STABLE = " unless on () corral_cluster_changing == 1"
_HOURS_PER_MONTH = 730


class Severity(StrEnum):
    """Critical: jobs do not run, so somebody must act now. Warning: it costs money or time. Info: a date to know."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert: what is true for how long. `summary`: one line with the values, in Prometheus's templates."""

    name: str
    expression: str
    holds_for: str
    severity: Severity
    summary: str


def _stable(expression: str) -> str:
    return f"({expression}){_STABLE}"


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
)
