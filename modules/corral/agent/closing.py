"""The end of a cluster, done on its head: what `lifetime` says. The keeper's chore."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from corral.agent import slurm
from corral.agent.drain import drain
from corral.agent.ec2 import Ec2
from corral.agent.errors import AgentError
from corral.agent.events import Event, Journal
from corral.agent.hosts import Host
from corral.agent.jobs import running_jobs
from corral.agent.lifetime import (
    FIRST_LOOK_S,
    Life,
    Moment,
    Progress,
    Step,
    next_steps,
    steps_without_slurm,
    why_over,
)
from corral.agent.partitions import not_open
from corral.agent.pulse import seconds
from corral.agent.slurm import SlurmError
from corral.agent.turn import Keeper
from corral.model.timers import WARN_AHEAD_S

LOOK_EACH_S = 30.0
NOTE = Path("/run/corral/closing")  # gone with the head, as the state of its queues is
STEP_EACH_S = 5.0  # between the steps of an end that has begun: what waits there costs
_STEPS_A_LOOK = 6  # then other chores have their turn

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class Closing:
    """`publish`: to those who hear of the cluster. `save`: the records of jobs, to the bucket. `ship`: events, to the
    log group. May each be repeated. `newest`: the end as the bucket has it, which `corral extend` may just have moved.
    `note`: there while an end has begun, whatever process began it, with the queues that somebody else had stopped.
    """

    ec2: Ec2
    host: Host
    journal: Journal
    publish: Callable[[str, str], object]
    save: Callable[[], object]
    ship: Callable[[], object]
    newest: Callable[[], str | None]
    first_look_s: float = FIRST_LOOK_S
    note: Path = NOTE
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    _began_at: float | None = None
    _used_at: float = 0.0
    _jobs: int = 1  # as if there were one, until Slurm has said
    _silent_since: float | None = None
    _ends_at: float | None = None
    _progress: Progress = Progress()  # noqa: RUF009  frozen

    def __post_init__(self) -> None:
        self._progress = Progress(begun=self.note.exists())

    def look(self, keeper: Keeper) -> None:
        """Does what is due. Raises AgentError; then it is tried again. Once it has begun the next steps follow soon."""
        for _ in range(_STEPS_A_LOOK):
            if not (self._did(keeper) and self._progress.closed):
                return
            self.sleep(STEP_EACH_S)

    def _did(self, keeper: Keeper) -> bool:
        """True if anything was due, and was done; the head's own end is the last."""
        now = self.clock()
        look_s = 0.0 if self._progress.begun else self.first_look_s  # what has begun goes on
        life = Life(ends_at=self._end(keeper, now), idle_s=keeper.plan.lifetime.idle_s, first_look_s=look_s)
        if self._began_at is None:
            self._began_at = self._used_at = now
        try:
            moment = self._asked_of_slurm(now)
            steps = next_steps(life, moment, self._progress)
            self._do_all(steps, keeper, why_over(life, moment))
        except SlurmError as error:
            if self._silent_since is None:
                self._silent_since = now
            moment = self._moment(now)
            if not (steps := steps_without_slurm(life, moment, self._progress)):
                raise
            log.error("the end goes on without Slurm: %s", error)
            self._do_all(steps, keeper, why_over(life, moment))
        else:
            self._silent_since = None
        return bool(steps) and Step.LEAVE not in steps

    def _do_all(self, steps: Sequence[Step], keeper: Keeper, why: str) -> None:
        for step in steps:
            self._do(step, keeper, why)

    def _end(self, keeper: Keeper, now: float) -> float | None:
        """The end of the cluster: where it is near, as the bucket has it now. Another one is warned of anew."""
        found = seconds(keeper.deployed.ends_at)
        if found is not None and now >= found - WARN_AHEAD_S:
            found = self._asked(found)
        if found != self._ends_at:
            self._ends_at, self._progress = found, replace(self._progress, warned=False)
        return found

    def _asked(self, known: float) -> float | None:
        """What cannot be asked is as it was at the last look: an end that was moved once does not come back."""
        try:
            return seconds(self.newest())
        except (AgentError, OSError, ValueError) as error:
            log.error("the end of the cluster cannot be asked: %s", error)
            return self._ends_at or known

    def _asked_of_slurm(self, now: float) -> Moment:
        self._jobs = len(slurm.squeue("--all", "--format=%i").splitlines())
        if self._jobs:
            self._used_at = now
        return self._moment(now)

    def _moment(self, now: float) -> Moment:
        return Moment(
            now=now,
            began_at=self._began_at or now,
            used_at=self._used_at,
            jobs=self._jobs,
            machines=len(self._machines()),
            silent_since=self._silent_since,
        )

    def _machines(self) -> Sequence[str]:
        return [one.instance_id for one in self.ec2.instances() if not one.ended]

    def _do(self, step: Step, keeper: Keeper, why: str) -> None:
        name = keeper.plan.name
        match step:
            case Step.WARN:
                self._warn(name)
            case Step.CLOSE:
                self._close(keeper, why)
            case Step.OPEN:
                self._open(keeper)
            case Step.END_MACHINES:
                slurm.power_down(_up(), f"corral: the cluster ends: {why}")
            case Step.END_INSTANCES:
                self._end_instances(why)
            case Step.SAVE:
                self._save(name)
                self._progress = replace(self._progress, saved=True)
            case Step.LEAVE:
                self.journal.tell(Event.CLUSTER_ENDS, f"the head of {name} ends itself")
                self._ship()
                self.host.power_off()

    def _close(self, keeper: Keeper, why: str) -> None:
        queues = tuple(queue.name for queue in keeper.plan.queues)
        self._tell(Event.CLUSTER_ENDS, f"cluster {keeper.plan.name} ends: {why}")
        if not self.note.exists():  # else they are stopped by an attempt that was cut off
            stopped = not_open(queues)
            self.note.parent.mkdir(parents=True, exist_ok=True)
            self.note.write_text(" ".join(stopped), encoding="utf-8")
        keeper.is_closing, self._progress = True, replace(self._progress, begun=True)
        drain(queues, self.journal, now=True)
        self._progress = replace(self._progress, closed=True)

    def _end_instances(self, why: str) -> None:
        """EC2 says whose they are by their tags, so the head is not among them."""
        ids = list(self._machines())
        self.ec2.terminate(ids)
        why = f"the cluster ends ({why}), and Slurm cannot be asked"
        self.journal.tell(Event.TERMINATED, f"{', '.join(ids)}: {why}", instances=ids, why=why)

    def _open(self, keeper: Keeper) -> None:
        stopped = self.note.read_text(encoding="utf-8").split()
        for queue in keeper.plan.queues:
            if queue.name not in stopped:
                slurm.open_queue(queue.name)
        self.note.unlink()
        keeper.is_closing, self._progress = False, Progress()
        self._tell(Event.GOES_ON, f"cluster {keeper.plan.name} goes on: its queues are open again")

    def _warn(self, name: str) -> None:
        when = datetime.fromtimestamp(self._ends_at or 0.0, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = f"cluster {name} ends at {when}: `corral extend {name} TIME` moves it"
        self._progress = replace(self._progress, warned=True)
        self._tell(Event.ENDS_SOON, text)
        # Only told: the signal that asks for a checkpoint ends a script that does not know it.
        for job in running_jobs():
            try:
                slurm.scontrol("update", f"jobid={job.job_id}", f"AdminComment=corral: {text}")
            except AgentError as error:  # it has just ended
                log.info("tell job %s: %s", job.job_id, error)

    def _tell(self, event: Event, text: str) -> None:
        self.journal.tell(event, text)
        try:
            self.publish(text.partition(": ")[0], text)
        except Exception as error:  # nobody may be there to hear; the end comes all the same
            log.error("tell that %s: %s", text, error)

    def _save(self, name: str) -> None:
        """Data that cannot be saved now are on the state volume still."""
        try:
            self.save()
        except AgentError as error:
            log.error("save the records of jobs: %s", error)
        text = f"cluster {name} has ended: its head ends itself, volumes stay; `corral down {name}` removes it"
        self._tell(Event.CLUSTER_ENDS, text)

    def _ship(self) -> None:
        """The last chance: what is not shipped stays on the state volume."""
        try:
            self.ship()
        except AgentError as error:
            log.error("ship the last events: %s", error)


def _up() -> Sequence[str]:
    """The nodes with which Slurm still reckons; those that are being ended already are left alone."""
    return [node.name for node in slurm.nodes() if node.wants_machine]
