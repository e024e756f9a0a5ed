"""Handles the jobs of a cluster to delete: queries its head and stops the jobs before instances terminate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from corral.cli.support import remote
from corral.cli.support.remote import SENTENCE, HeadConnection, HeadUnreachable, head_at
from corral.engine.engine_errors import REFUSED, EngineError
from corral.engine.lifecycle.session import stack_account
from corral.engine.pulumi.stack import Stack
from corral.inventory.compute_instances import list_compute_instances
from corral.inventory.head_instance import head_of
from corral.model.head_report import ACCOUNTING_NOT_SAVED, HISTORY_NOT_SAVED, DrainResult, HeadStatus
from corral.model.printable import printable
from corral.report.account.job_view import job_line

Found = TypeVar("Found")
_SHOWN = 8  # jobs listed in a refusal; the rest is counted


class ClusterJobDrain:
    """Checks and drains the jobs for `corral down`. `now`: go on even if jobs run or the head does not answer.

    `result`: the outcome of the head's drain; None before.
    """

    def __init__(self, *, now: bool, grace_s: float) -> None:
        self._now, self._grace_s = now, grace_s
        self.result: DrainResult | None = None
        self._reported = ""

    def check(self, cluster: Stack) -> None:
        """Raises EngineError if jobs run and `now` is not set. Prints how many jobs wait."""
        found = self._query(cluster, remote.fetch_state)
        if found is None:
            return
        if found.running and not self._now:
            raise jobs_running_error(cluster.title, found, down_now(cluster))
        if found.waiting:
            cluster.display.write(f"{cluster.title}: {found.waiting} waiting jobs will be lost")

    def drain(self, cluster: Stack) -> None:
        """Closes the queues, checkpoints and stops the jobs, and uploads the accounting records to the bucket."""
        if self._now:
            cluster.display.write(
                f"{cluster.title}: queues are closed; running jobs have {self._grace_s:.0f} s to checkpoint"
            )
        found = self._query(cluster, self._drain)
        if found is None:
            return
        done, stderr = found
        if done.refused:
            hints = ("the queues are open again", _ended_with(down_now(cluster)))
            raise EngineError(f"{cluster.title}: a job has started meanwhile: nothing was changed", hints, REFUSED)
        self.result = done
        for line in (drained_line(done), *unsaved(stderr)):
            if line:
                cluster.display.write(f"{cluster.title}: {line}")

    def _drain(self, head: HeadConnection) -> tuple[DrainResult, str]:
        return remote.drain_head(head, now=self._now, grace_s=self._grace_s)

    def _query(self, cluster: Stack, query: Callable[[HeadConnection], Found]) -> Found | None:
        """The head's answer; None if it does not answer and the cluster may be deleted anyway."""
        account = stack_account(cluster)
        head = head_of(account, cluster.name)
        try:
            if head is None:
                raise HeadUnreachable("no head")
            environment = cluster.engine.environment
            box_directory = environment.get("CORRAL_BOX_DIR")
            return query(
                head_at(
                    head.id,
                    account,
                    environment.get("AWS_ENDPOINT_URL"),
                    Path(box_directory) if box_directory else None,
                )
            )
        except HeadUnreachable as error:
            if error.idle:
                return None
            running = len(list_compute_instances(account, cluster.name))
            if running and not self._now:
                raise head_unreachable_error(cluster.title, str(error), running, down_now(cluster)) from None
            if str(error) != self._reported:
                cluster.display.write(f"{cluster.title}: {error}; {running} launched instances run")
            self._reported = str(error)
            return None


def down_now(cluster: Stack) -> str:
    """The command that deletes the cluster despite its jobs."""
    return f"corral down {cluster.name}{cluster.account_option} --now"


def jobs_running_error(title: str, state: HeadStatus, command: str) -> EngineError:
    """The refusal to delete a cluster with running jobs, which it lists. `command`: deletes it anyway."""
    now = datetime.fromtimestamp(state.at, UTC)
    listed = [job_line(job, now) for job in state.jobs if not job.is_pending]
    jobs = "1 job runs" if state.running == 1 else f"{state.running} jobs run"
    wait = (f"{state.waiting} waiting jobs would be lost",) if state.waiting else ()
    hints = (*_some(listed, state.running), *wait, _ended_with(command))
    return EngineError(f"{title}: {jobs}: nothing was changed", hints, REFUSED)


def head_unreachable_error(title: str, why: str, running: int, command: str) -> EngineError:
    """The refusal to delete a cluster whose head does not answer. `command`: deletes it anyway."""
    instances = "1 launched instance runs" if running == 1 else f"{running} launched instances run"
    hints = (f"{instances}, so jobs may run there", f"to delete it anyway: {command}")
    return EngineError(f"{title}: {why}: nothing was changed", hints, REFUSED)


def drained_line(done: DrainResult) -> str:
    """The outcome for the jobs; empty if there were none."""
    parts = (
        (f"{len(done.signalled)} signalled to checkpoint", done.signalled),
        (f"{len(done.ended)} completed", done.ended),
        (f"{len(done.requeued)} requeued", done.requeued),
        (f"{len(done.cancelled)} cancelled", done.cancelled),
        (f"{done.waiting} waiting jobs lost", done.waiting),
    )
    text = ", ".join(text for text, some in parts if some)
    return f"jobs: {text}" if text else ""


def unsaved(stderr: str) -> tuple[str, ...]:
    """The lines of the head's stderr about data that was not uploaded to the bucket."""
    found = (line for line in stderr.splitlines() if line.startswith((ACCOUNTING_NOT_SAVED, HISTORY_NOT_SAVED)))
    return tuple(printable(line, SENTENCE) for line in found)


def _ended_with(command: str) -> str:
    return f"to checkpoint and stop them: {command}"


def _some(lines: Sequence[str], all_of_them: int) -> tuple[str, ...]:
    more = all_of_them - len(lines[:_SHOWN])
    return (*lines[:_SHOWN], *([f"and {more} more"] if more > 0 else []))
