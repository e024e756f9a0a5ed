"""The end of a cluster, done on its head: what `lifetime` says. The keeper's chore."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from corral.agent import slurm
from corral.agent.drain import drain
from corral.agent.ec2 import Ec2
from corral.agent.errors import AgentError
from corral.agent.events import Event, Journal
from corral.agent.hosts import Host
from corral.agent.jobs import running_jobs
from corral.agent.lifetime import Life, Moment, Progress, Step, next_steps, why_over
from corral.agent.pulse import seconds
from corral.agent.turn import Keeper

LOOK_EACH_S = 30.0

log = logging.getLogger("corral.agent")


@dataclass(kw_only=True)
class Closing:
    """`publish`: to those who hear of the cluster. `save`: the records of jobs, to the bucket. May each be repeated."""

    ec2: Ec2
    host: Host
    journal: Journal
    publish: Callable[[str, str], object]
    save: Callable[[], object]
    clock: Callable[[], float] = time.time
    _began_at: float | None = None
    _used_at: float = 0.0
    _progress: Progress = Progress()  # noqa: RUF009  frozen

    def look(self, keeper: Keeper) -> None:
        """Does what is due. Raises AgentError; then it is tried again."""
        now = self.clock()
        life = Life(ends_at=seconds(keeper.deployed.ends_at), idle_s=keeper.plan.lifetime.idle_s)
        moment = self._moment(now)
        steps = next_steps(life, moment, self._progress)
        for step in steps:
            self._do(step, keeper, why_over(life, moment))

    def _moment(self, now: float) -> Moment:
        jobs = len(slurm.squeue("--all", "--format=%i").splitlines())
        if self._began_at is None:
            self._began_at = self._used_at = now
        if jobs:
            self._used_at = now
        machines = sum(not one.ended for one in self.ec2.instances())
        return Moment(now=now, began_at=self._began_at, used_at=self._used_at, jobs=jobs, machines=machines)

    def _do(self, step: Step, keeper: Keeper, why: str) -> None:
        name, queues = keeper.plan.name, tuple(queue.name for queue in keeper.plan.queues)
        match step:
            case Step.WARN:
                self._warn(name, str(keeper.deployed.ends_at))
            case Step.CLOSE:
                self._tell(Event.CLUSTER_ENDS, f"cluster {name} ends: {why}")
                keeper.is_closing = True
                drain(queues, self.journal, now=True)
                self._progress = replace(self._progress, closed=True)
            case Step.END_MACHINES:
                slurm.power_down(_up(), f"corral: the cluster ends: {why}")
            case Step.SAVE:
                self._save(name)
                self._progress = replace(self._progress, saved=True)
            case Step.LEAVE:
                self.journal.tell(Event.CLUSTER_ENDS, f"the head of {name} ends itself")
                self.host.power_off()

    def _warn(self, name: str, when: str) -> None:
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
            self.publish(text.partition(":")[0], text)
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


def _up() -> Sequence[str]:
    """The nodes with which Slurm still reckons; those that are being ended already are left alone."""
    return [node.name for node in slurm.nodes() if node.wants_machine]
