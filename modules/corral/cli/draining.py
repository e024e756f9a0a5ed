"""The jobs of a cluster that goes down: asked of its head, and ended there before the first machine ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from corral.cli import on_head
from corral.cli.on_head import Head, Unreachable, head_at
from corral.engine.errors import REFUSED, EngineError
from corral.engine.stack import Stack
from corral.engine.workplace import account_of
from corral.inventory.heads import head_of
from corral.inventory.machines import launched_machines
from corral.model.head import NOT_DUMPED, NOT_KEPT, Drained, HeadState
from corral.report.jobs import job_line

Found = TypeVar("Found")
_SHOWN = 8  # jobs of a refusal; the rest is counted


class Draining:
    """What `engine.down` asks before a cluster goes. `now`: also where jobs run, or where nobody can tell.

    `done`: what the head's drain did; None as long as there was none.
    """

    def __init__(self, *, now: bool, grace_s: float) -> None:
        self._now, self._grace_s = now, grace_s
        self.done: Drained | None = None
        self._told = ""

    def look(self, cluster: Stack) -> None:
        """Raises EngineError where jobs run and `now` was not said. Says how many wait."""
        found = self._asked(cluster, on_head.state_of)
        if found is None:
            return
        if found.running and not self._now:
            raise refusal(cluster.title, found, down_now(cluster))
        if found.waiting:
            cluster.printer.say(f"{cluster.title}: {found.waiting} jobs wait, they are lost with the cluster")

    def end(self, cluster: Stack) -> None:
        """Closes the queues, lets jobs save and ends them; the records of jobs are written to the bucket."""
        if self._now:
            cluster.printer.say(
                f"{cluster.title}: no job starts any more; those that run have {self._grace_s:.0f} s to save"
            )
        found = self._asked(cluster, self._drain)
        if found is None:
            return
        done, complaint = found
        if done.refused:
            hints = ("the queues are open again", _ended_with(down_now(cluster)))
            raise EngineError(f"{cluster.title}: a job has begun meanwhile: nothing was changed", hints, REFUSED)
        self.done = done
        for line in (drained_line(done), *unsaved(complaint)):
            if line:
                cluster.printer.say(f"{cluster.title}: {line}")

    def _drain(self, head: Head) -> tuple[Drained, str]:
        return on_head.drain(head, now=self._now, grace_s=self._grace_s)

    def _asked(self, cluster: Stack, ask: Callable[[Head], Found]) -> Found | None:
        """What the head says; None where it cannot be asked and the cluster may go all the same."""
        account = account_of(cluster)
        head = head_of(account, cluster.name)
        try:
            if head is None:
                raise Unreachable("there is no head")
            environment = cluster.engine.environment
            place = environment.get("CORRAL_BOX_DIR")
            return ask(head_at(head.id, account, environment.get("AWS_ENDPOINT_URL"), Path(place) if place else None))
        except Unreachable as error:
            if error.idle:
                return None
            running = len(launched_machines(account, cluster.name))
            if running and not self._now:
                raise unreached(cluster.title, str(error), running, down_now(cluster)) from None
            if str(error) != self._told:
                cluster.printer.say(f"{cluster.title}: {error}; {running} launched machines run")
            self._told = str(error)
            return None


def down_now(cluster: Stack) -> str:
    """The command that takes the cluster down with its jobs."""
    return f"corral down {cluster.name}{cluster.account_option} --now"


def refusal(title: str, state: HeadState, command: str) -> EngineError:
    """Why a cluster in which jobs run stays, with what would be lost. `command`: what takes it down all the same."""
    now = datetime.fromtimestamp(state.at, UTC)
    listed = [job_line(job, now) for job in state.jobs if not job.waits]
    jobs = "1 job runs" if state.running == 1 else f"{state.running} jobs run"
    wait = (f"{state.waiting} more wait, and are lost with the cluster",) if state.waiting else ()
    hints = (*_some(listed, state.running), *wait, _ended_with(command))
    return EngineError(f"{title}: {jobs}: nothing was changed", hints, REFUSED)


def unreached(title: str, why: str, running: int, command: str) -> EngineError:
    """Why a cluster stays whose head cannot say whether jobs run. `command`: what takes it down all the same."""
    machines = "1 launched machine runs" if running == 1 else f"{running} launched machines run"
    hints = (f"{machines}, so jobs may run there", f"take it down all the same: {command}")
    return EngineError(f"{title}: {why}: nothing was changed", hints, REFUSED)


def drained_line(done: Drained) -> str:
    """What became of the jobs; empty where there were none."""
    parts = (
        (f"{len(done.asked)} asked for a checkpoint", done.asked),
        (f"{len(done.ended)} ended by themselves", done.ended),
        (f"{len(done.requeued)} ended by a requeue", done.requeued),
        (f"{len(done.cancelled)} cancelled", done.cancelled),
        (f"{done.waiting} that wait are lost", done.waiting),
    )
    told = ", ".join(text for text, some in parts if some)
    return f"jobs: {told}" if told else ""


def unsaved(complaint: str) -> tuple[str, ...]:
    """What of the head's words says that something is not in the bucket."""
    return tuple(line for line in complaint.splitlines() if line.startswith((NOT_DUMPED, NOT_KEPT)))


def _ended_with(command: str) -> str:
    return f"end them with it: {command} (they are asked for a checkpoint, then ended)"


def _some(lines: Sequence[str], all_of_them: int) -> tuple[str, ...]:
    more = all_of_them - len(lines[:_SHOWN])
    return (*lines[:_SHOWN], *([f"and {more} more"] if more > 0 else []))
