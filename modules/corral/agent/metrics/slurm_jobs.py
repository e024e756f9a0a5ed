"""The jobs for the metrics: one call of squeue, and the pure counts of its rows.

Accounts are users' text, so they are read from columns of fixed width (decision 162), and made labels here.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corral.agent.metrics.text_format import label_value
from corral.agent.slurm import SlurmError, fixed_rows, query

# Widths in bytes. An account is cut, so that a long one costs no more.
_WIDTHS: Mapping[str, int] = {
    "JobArrayID": 48, "Partition": 200, "State": 24, "EligibleTime": 24, "Reason": 60, "RestartCnt": 12,
    "Account": 256,
}  # fmt: skip
_JOBS = "--Format=" + ",".join(f"{name}:{width}" for name, width in _WIDTHS.items())
_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
OTHER = "other"  # the queue or account of the rest
MOST_ACCOUNTS = 100  # that have series of their own; the rest is one together
# Slurm's reasons of jobs that wait for a machine, not for their own time, limit or dependency.
# Source: squeue(1), "JOB REASON CODES".
_WANTS_MACHINE = frozenset(
    {
        *("None", "Resources", "Priority", "Cleaning", "NodeDown", "PartitionDown", "PartitionInactive"),
        *("ReqNodeNotAvail", "Nodes_required_for_job_are_DOWN"),  # the latter is text of slurmctld itself
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job that has not ended. `waits_since`: since when it waits for machines; None if it does not."""

    job_id: str
    queue: str
    account: str
    state: str
    waits_since: int | None
    restarts: int


@dataclass(slots=True)
class RequeueCounter:
    """Counts requeues by queue, from what squeue reports of each job at each reading."""

    counts: Counter[str] = field(default_factory=Counter)
    _restarts: Mapping[str, int] | None = None

    def add(self, jobs: Sequence[JobRow]) -> None:
        """Count what was requeued since the last reading; the first one only begins."""
        if self._restarts is not None:
            for job in jobs:
                self.counts[job.queue] += max(0, job.restarts - self._restarts.get(job.job_id, 0))
        self._restarts = {job.job_id: job.restarts for job in jobs}


def jobs_now(queues: Sequence[str]) -> tuple[JobRow, ...]:
    """The jobs that have not ended. Raises SlurmError."""
    output = query("squeue", "--noheader", "--all", _JOBS, environment=_SECONDS)
    return read_jobs(fixed_rows(output, [*_WIDTHS.values()]), queues)


def read_jobs(rows: Iterable[Sequence[str]], queues: Sequence[str]) -> tuple[JobRow, ...]:
    """The jobs in these rows. Raises SlurmError if one is not of squeue.

    A job of several queues counts for the first. One of a queue that the plan lacks, such as a removed one that still
    runs it, is of the queue `other`.
    """
    try:
        return _with_known_accounts([_read(dict(zip(_WIDTHS, row, strict=True)), queues) for row in rows])
    except ValueError as error:
        raise SlurmError(f"squeue prints jobs in an unknown form: {error}") from error


def _read(cells: Mapping[str, str], queues: Sequence[str]) -> JobRow:
    queue, state = cells["Partition"].partition(",")[0], cells["State"].lower()
    eligible, reason = cells["EligibleTime"], cells["Reason"].partition(",")[0]
    waits = state == "pending" and reason in _WANTS_MACHINE and eligible.isdigit()
    return JobRow(
        job_id=cells["JobArrayID"],
        queue=queue if queue in queues else OTHER,
        account="" if cells["Account"] == "(null)" else label_value(cells["Account"]),
        state=state,
        waits_since=int(eligible) if waits else None,
        restarts=int(cells["RestartCnt"] or 0),
    )


def _with_known_accounts(jobs: Sequence[JobRow]) -> tuple[JobRow, ...]:
    """The jobs with at most so many accounts: without limits in Slurm, each job may name another."""
    accounts = Counter(job.account for job in jobs)
    if len(accounts) <= MOST_ACCOUNTS:
        return tuple(jobs)
    kept = {account for account, _ in accounts.most_common(MOST_ACCOUNTS)}
    return tuple(job if job.account in kept else replace(job, account=OTHER) for job in jobs)
