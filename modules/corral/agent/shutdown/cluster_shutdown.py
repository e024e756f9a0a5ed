"""Shut a cluster down from its head, by the steps of `lifetime`. A background task of the autoscaler."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from corral.agent import slurm
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.cluster.ec2_client import Ec2
from corral.agent.cluster.partition_state import not_open
from corral.agent.errors import AgentError
from corral.agent.events import Event, EventLog
from corral.agent.host.base import Host
from corral.agent.node_jobs import running_jobs
from corral.agent.shutdown.drain import drain_cluster
from corral.agent.shutdown.head_liveness import end_time
from corral.agent.shutdown.lifetime import (
    MIN_UPTIME_S,
    ClusterActivity,
    Lifetime,
    ShutdownProgress,
    ShutdownStep,
    shutdown_steps,
    steps_without_slurm,
    why_over,
)
from corral.agent.slurm import SlurmError
from corral.model.timeouts import EXPIRY_WARNING_S

POLL_EVERY_S = 30.0
CLOSING_MARK = Path("/run/corral/closing")  # on /run: lost with the head, as the state of its queues is
STEP_EVERY_S = 5.0  # between the steps of a shutdown: waiting costs money
_STEPS_PER_CALL = 6  # then the task waits for its next run

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class ClusterShutdown:
    """The shutdown of one cluster. `publish`: send a message to the topic. `save`: write job records to the bucket.

    `ship`: send events to the log group. Each may be repeated. `newest`: return the end in the bucket, which `corral
    extend` may just have moved. `mark`: exists during a shutdown; contains the queues that were stopped before.
    """

    ec2: Ec2
    host: Host
    journal: EventLog
    publish: Callable[[str, str], object]
    save: Callable[[], object]
    ship: Callable[[], object]
    newest: Callable[[], str | None]
    min_uptime_s: float = MIN_UPTIME_S
    mark: Path = CLOSING_MARK
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _began_at: float | None = None
    _used_at: float = 0.0
    _jobs: int = 1  # assume one until Slurm has answered
    _silent_since: float | None = None
    _ends_at: float | None = None
    _progress: ShutdownProgress = ShutdownProgress()  # noqa: RUF009  frozen

    def __post_init__(self) -> None:
        self._progress = ShutdownProgress(begun=self.mark.exists())

    def check(self, autoscaler: Autoscaler) -> None:
        """Take the steps that are due, during a shutdown several. Raises AgentError; the next call tries again."""
        for _ in range(_STEPS_PER_CALL):
            if not (self._step(autoscaler) and self._progress.closed):
                return
            self.sleep(STEP_EVERY_S)

    def _step(self, autoscaler: Autoscaler) -> bool:
        """Take the steps that are due. True if there were any, except the last one, the head's own end."""
        now = self.clock()
        look_s = 0.0 if self._progress.begun else self.min_uptime_s  # a shutdown in progress continues
        lifetime = Lifetime(
            ends_at=self._end(autoscaler, now), idle_s=autoscaler.plan.lifetime.idle_s, min_uptime_s=look_s
        )
        if self._began_at is None:
            self._began_at = self._used_at = now
        try:
            activity = self._query_slurm(now)
            steps = shutdown_steps(lifetime, activity, self._progress)
            self._take_all(steps, autoscaler, why_over(lifetime, activity))
        except SlurmError as error:
            if self._silent_since is None:
                self._silent_since = now
            activity = self._activity(now)
            if not (steps := steps_without_slurm(lifetime, activity, self._progress)):
                raise
            log.error("shutdown continues without Slurm: %s", error)
            self._take_all(steps, autoscaler, why_over(lifetime, activity))
        else:
            self._silent_since = None
        return bool(steps) and ShutdownStep.POWER_OFF_HEAD not in steps

    def _take_all(self, steps: Sequence[ShutdownStep], autoscaler: Autoscaler, reason: str) -> None:
        for step in steps:
            self._take(step, autoscaler, reason)

    def _end(self, autoscaler: Autoscaler, now: float) -> float | None:
        """The end of the cluster; near it, read again from the bucket. Users are warned again of a new end."""
        found = end_time(autoscaler.deployed.ends_at)
        if found is not None and now >= found - EXPIRY_WARNING_S:
            found = self._newest_end(found)
        if found != self._ends_at:
            self._ends_at, self._progress = found, replace(self._progress, warned=False)
        return found

    def _newest_end(self, known: float) -> float | None:
        """The end in the bucket, or the last known one: an end that was moved must not move back."""
        try:
            return end_time(self.newest())
        except (AgentError, OSError, ValueError) as error:
            log.error("cannot read the end of the cluster from the bucket: %s", error)
            return self._ends_at or known

    def _query_slurm(self, now: float) -> ClusterActivity:
        self._jobs = len(slurm.lines(slurm.squeue("--all", "--format=%i")))
        if self._jobs:
            self._used_at = now
        return self._activity(now)

    def _activity(self, now: float) -> ClusterActivity:
        return ClusterActivity(
            now=now,
            began_at=self._began_at or now,
            used_at=self._used_at,
            jobs=self._jobs,
            machines=len(self._machines()),
            slurm_silent_since=self._silent_since,
        )

    def _machines(self) -> Sequence[str]:
        return [one.instance_id for one in self.ec2.instances() if not one.ended]

    def _take(self, step: ShutdownStep, autoscaler: Autoscaler, reason: str) -> None:
        name = autoscaler.plan.name
        match step:
            case ShutdownStep.WARN:
                self._warn(name)
            case ShutdownStep.CLOSE:
                self._close(autoscaler, reason)
            case ShutdownStep.OPEN:
                self._open(autoscaler)
            case ShutdownStep.POWER_DOWN_NODES:
                slurm.power_down(_up(), f"corral: the cluster ends: {reason}")
            case ShutdownStep.TERMINATE_INSTANCES:
                self._terminate_instances(reason)
            case ShutdownStep.SAVE:
                self._save(name)
                self._progress = replace(self._progress, saved=True)
            case ShutdownStep.POWER_OFF_HEAD:
                self.journal.log_event(Event.CLUSTER_ENDS, f"the head of {name} powers itself off")
                self._ship()
                self.host.power_off()

    def _close(self, autoscaler: Autoscaler, reason: str) -> None:
        queues = tuple(queue.name for queue in autoscaler.plan.queues)
        self._announce(Event.CLUSTER_ENDS, f"cluster {autoscaler.plan.name} ends", reason)
        if not self.mark.exists():  # otherwise an interrupted attempt has stopped them
            stopped = not_open(queues)
            self.mark.parent.mkdir(parents=True, exist_ok=True)
            self.mark.write_text(" ".join(stopped), encoding="utf-8")
        autoscaler.is_closing, self._progress = True, replace(self._progress, begun=True)
        drain_cluster(queues, self.journal, now=True)
        self._progress = replace(self._progress, closed=True)

    def _terminate_instances(self, reason: str) -> None:
        """Terminate all machines of nodes through EC2. Their tags exclude the head."""
        ids = list(self._machines())
        self.ec2.terminate(ids)
        reason = f"the cluster ends ({reason}), and Slurm does not answer"
        self.journal.log_event(Event.TERMINATED, f"{', '.join(ids)}: {reason}", instances=ids, reason=reason)

    def _open(self, autoscaler: Autoscaler) -> None:
        stopped = self.mark.read_text(encoding="utf-8").split()
        for queue in autoscaler.plan.queues:
            if queue.name not in stopped:
                slurm.open_queue(queue.name)
        self.mark.unlink()
        autoscaler.is_closing, self._progress = False, ShutdownProgress()
        self._announce(
            Event.CLUSTER_CONTINUES, f"cluster {autoscaler.plan.name} continues", "its queues are open again"
        )

    def _warn(self, name: str) -> None:
        when = datetime.fromtimestamp(self._ends_at or 0.0, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        subject, command = f"cluster {name} ends at {when}", f"`corral extend {name} TIME` moves it"
        self._progress = replace(self._progress, warned=True)
        self._announce(Event.ENDS_SOON, subject, command)
        # Only a comment: the checkpoint signal would kill a script that does not trap it.
        for job in running_jobs():
            try:
                slurm.scontrol("update", f"jobid={job.job_id}", f"AdminComment=corral: {subject}: {command}")
            except AgentError as error:  # it has just ended
                log.info("set the comment of job %s: %s", job.job_id, error)

    def _announce(self, event: Event, subject: str, details: str) -> None:
        """Log an event and publish it: the subject of the mail, and both as its text."""
        text = f"{subject}: {details}"
        self.journal.log_event(event, text)
        try:
            self.publish(subject, text)
        except Exception as error:  # the shutdown continues without it
            log.error("publish %r: %s", text, error)

    def _save(self, name: str) -> None:
        """Save the job records. On failure they remain on the state volume."""
        try:
            self.save()
        except AgentError as error:
            log.error("save the records of jobs: %s", error)
        details = f"its head powers itself off, volumes remain; `corral down {name}` removes it"
        self._announce(Event.CLUSTER_ENDS, f"cluster {name} has ended", details)

    def _ship(self) -> None:
        """Ship the last events. On failure they remain on the state volume."""
        try:
            self.ship()
        except AgentError as error:
            log.error("ship the last events: %s", error)


def _up() -> Sequence[str]:
    """The nodes for which Slurm expects a machine, without those already powering down."""
    return [node.name for node in slurm.nodes() if node.wants_machine]
