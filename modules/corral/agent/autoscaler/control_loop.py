"""The autoscaler's loop: reload records, serve requests, reconcile, release requeued jobs, end preempted ones.

An error in one step is logged, and the other steps run: without an autoscaler no machine is launched or terminated.
"""

import logging
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from corral.agent.autoscaler.force_state_save import ForcedSave
from corral.agent.autoscaler.grace_end import end_graces
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.autoscaler.request_queue import pending_requests, remove
from corral.agent.autoscaler.requeue_release import DelayedJobs, closed_queues, release
from corral.agent.autoscaler.unexpected_reboots import RebootWatcher
from corral.agent.cluster.models import SlurmNode
from corral.agent.config.watcher import RecordsWatcher
from corral.agent.errors import AgentError
from corral.agent.events import EventLog

CHECK_EVERY_S, CHECK_SOON_S = 5.0, 1.0  # for requeued and preempted jobs; the latter if there are some
RETRY_S = 1.0  # half of the first delay before a failed request is tried again

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class ControlLoop:
    """`interval_s`: how long a request may wait if its wake-up is lost. `heartbeat`: the file touched in each cycle.

    `records`: None if they cannot change.
    """

    autoscaler: Autoscaler
    journal: EventLog
    spool: Path
    interval_s: float
    heartbeat: Path
    records: RecordsWatcher | None = None
    clock: Callable[[], float] = time.monotonic
    _due: float = 0.0
    _reconcile_at: float = 0.0
    _retry_s: float = RETRY_S
    _waiting: frozenset[str] = frozenset()
    _delayed: DelayedJobs = DelayedJobs()  # noqa: RUF009  frozen
    _ending: frozenset[str] | None = None
    _checked: dict[Callable[[Sequence[SlurmNode]], None], Sequence[SlurmNode]] = field(default_factory=dict)
    _problems: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._reboots, self._forced_save = RebootWatcher(journal=self.journal), ForcedSave()
        self._reconcile_at = self.clock()

    def run(self, wake_socket: socket.socket) -> None:
        """Run a cycle at each wake-up and whenever a step is due, forever."""
        self._reconcile_at += self.interval_s
        while True:
            self.run_once()
            wake_socket.settimeout(self._idle_s())
            with suppress(TimeoutError, BlockingIOError):
                wake_socket.recv(1)
                self._due = 0.0

    def run_once(self) -> None:
        """Run the steps that are due."""
        for name, act in (
            ("read the records", self._reload_records),
            ("serve requests", self._process_requests),
            ("compare Slurm and EC2", self._reconcile),
            ("make slurmctld save its state", partial(self._check_nodes, self._forced_save.save_new)),
            ("check for rebooted machines", partial(self._check_nodes, self._reboots.check)),
            ("check waiting jobs", self._release),
            ("end preempted jobs", self._end_graces),
        ):
            self._run_step(name, act)
        with suppress(OSError):  # `corral status` then shows an older time
            self.heartbeat.touch()

    def _run_step(self, name: str, act: Callable[[], bool]) -> None:
        """Run a step. The same error is logged once until the step succeeds. `act`: False if it was not due."""
        try:
            if act():
                self._problems.pop(name, None)
        except Exception as error:  # also unexpected ones: the next cycle may succeed
            if self._problems.get(name) != str(error):
                known = isinstance(error, AgentError | OSError)
                log.error("%s: %s", name, error) if known else log.exception("%s failed", name)
            self._problems[name] = str(error)

    def _reload_records(self) -> bool:
        if self.records and (newer := self.records.newer()):
            self.autoscaler.configure(*newer)
        return True

    def _process_requests(self) -> bool:
        if self.clock() < self._due:
            return False
        self._due = self.clock() + self.interval_s  # also after a failure
        self._waiting = self.autoscaler.process_requests(
            tuple(pending_requests(self.spool)), partial(remove, spool=self.spool)
        )
        # Failed requests are tried again soon, then less often: retries must not add to throttling.
        self._retry_s = min(2 * self._retry_s, self.interval_s) if self._waiting else RETRY_S
        self._due = self.clock() + (self._retry_s if self._waiting else self.interval_s)
        return True

    def _reconcile(self) -> bool:
        if self.clock() < self._reconcile_at:
            return False
        try:
            self.autoscaler.reconcile(self._waiting, tuple(pending_requests(self.spool)))
        finally:
            self._reconcile_at = self.clock() + self.interval_s
        return True

    def _check_nodes(self, check: Callable[[Sequence[SlurmNode]], None]) -> bool:
        """Call `check` once with the nodes of each reconciliation; again if it fails."""
        nodes = self.autoscaler.nodes
        if nodes is self._checked.get(check, ()):
            return False
        check(nodes)
        self._checked[check] = nodes
        return True

    def _release(self) -> bool:
        if self.autoscaler.is_closing:
            return False
        waited = self._delayed.since.keys()
        closed = closed_queues(self.autoscaler.plan.queues, self.autoscaler.state.backoffs, time.time())
        self._delayed = release(self._delayed, closed, datetime.now(), self.journal)
        if self._delayed.since.keys() - waited:
            self._reconcile_at = 0.0  # terminates silent machines before their jobs run elsewhere
        return True

    def _end_graces(self) -> bool:
        if self.autoscaler.is_closing or not (plan := self.autoscaler.plan).requeues_ended_in_grace:
            return False
        self._ending = end_graces(plan.accounts.qos, self._ending or frozenset(), datetime.now())
        return True

    def _idle_s(self) -> float:
        check_s = CHECK_EVERY_S if not self._delayed.since and self._ending is None else CHECK_SOON_S
        return max(0.0, min(self.interval_s, self._due - self.clock(), check_s))
