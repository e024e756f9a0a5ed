"""The watch of a node: it asks the metadata service for notices, and follows `notice`. `corral-agent watch`."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from corral.agent import jobs, metadata, slurm
from corral.agent.alone import alone
from corral.agent.errors import AgentError
from corral.agent.heartbeat import first_after_s
from corral.agent.identity import Identity
from corral.agent.jobs import NodeJob, Phase
from corral.agent.notice import Progress, Step, ends_at, hinted_at, next_steps, to_ask
from corral.agent.observed import comment_of
from corral.agent.slurm import SlurmError
from corral.model.node_names import number_of

LOOK_EACH_S = 5.0  # AWS's own advice; a notice is two minutes
STEP_EACH_S = 1.0  # once there is one
LOCK = Path("/run/corral/watch.lock")
_DOCUMENT, _HINT = "spot/instance-action", "events/recommendations/rebalance"

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A node that is being taken back: when it ends, and what was done about it."""

    end: datetime
    progress: Progress


def watch(
    identity: Identity,
    beat: Callable[[], object],
    sleep: Callable[[float], None] = time.sleep,
    lock: Path = LOCK,
) -> None:
    """Watches until the machine ends; returns at once where another watch does. `beat`: pulse.Heart.beat."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with alone(lock) as first:
        if not first:
            log.info("watch %s: another watch runs", identity.node)
            return
        taken: Taken | None = None
        answered: str | None = None
        quiet, pause_s = divmod(first_after_s(number_of(identity.node)), LOOK_EACH_S)
        while True:
            try:
                taken = turn(identity, taken, datetime.now(UTC))
                answered = answered if taken else heed(identity, answered)
            except (AgentError, OSError, ValueError) as error:
                log.error("watch %s: %s", identity.node, error)
            except Exception:  # whatever nobody has thought of must not end the only one who hears of a notice
                log.exception("watch %s failed", identity.node)
            if quiet >= 0:
                quiet -= 1
            else:
                _beat(identity, beat)
            sleep(STEP_EACH_S if taken else pause_s)
            pause_s = LOOK_EACH_S


def _beat(identity: Identity, beat: Callable[[], object]) -> None:
    try:
        beat()
    except (AgentError, OSError) as error:
        log.error("heartbeat of %s: %s", identity.node, error)


def turn(identity: Identity, taken: Taken | None, now: datetime) -> Taken | None:
    """What is known after one look and the steps that followed from it. Raises AgentError; then it can be repeated."""
    if taken is None:
        end = ends_at(metadata.read(_DOCUMENT))
        if end is None:
            return None
        log.warning("notice %s: the machine is taken back at %s", identity.node, end.isoformat())
        taken = Taken(end=end, progress=Progress())
    here = {job.job_id: job for job in jobs.jobs_on(identity.node)}
    for step, concerned in next_steps(taken.end, now, tuple(here.values()), taken.progress):
        progress = _do(step, tuple(here[job] for job in concerned), identity, taken)
        taken = replace(taken, progress=progress)
    return taken


def heed(identity: Identity, answered: str | None) -> str | None:
    """The hint that was acted on last, after one look: for a new one, the jobs here were asked for a checkpoint.

    A hint is often followed by no notice, and a notice often comes without one: nothing else is done about it. Raises
    AgentError; then it can be repeated.
    """
    hint = hinted_at(metadata.read(_HINT))
    if not to_ask(hint, answered):
        return answered
    here = tuple(job for job in jobs.jobs_on(identity.node) if job.phase is Phase.RUNS)
    listed = ", ".join(job.job_id for job in here) or "-"
    log.warning(
        "rebalance %s: likely to be taken back, said at %s; a checkpoint is asked of %s", identity.node, hint, listed
    )
    _each(here, jobs.ask_for_checkpoint)
    return hint


def _do(step: Step, concerned: tuple[NodeJob, ...], identity: Identity, taken: Taken) -> Progress:
    log.info("%s %s: %s", step, identity.node, ", ".join(sorted(job.job_id for job in concerned)) or "-")
    match step:
        case Step.DRAIN:
            _drain(identity.node, taken.end)
            return replace(taken.progress, drained=True)
        case Step.ASK:
            return replace(taken.progress, asked=taken.progress.asked | _each(concerned, jobs.ask_for_checkpoint))
        case Step.REQUEUE:
            return replace(taken.progress, requeued=taken.progress.requeued | _each(concerned, jobs.requeue))
        case Step.LET_GO:
            keeps = slurm.node(identity.node).drained_by_hand
            slurm.power_down([identity.node], "" if keeps else "corral: taken back by the spot market")
            return replace(taken.progress, let_go=True)


def _drain(node: str, end: datetime) -> None:
    words = [f"comment={comment_of(datetime.now(UTC), end)}"]  # for the keeper, who writes it down
    if not slurm.node(node).drained_by_hand:
        words += ["state=drain", f"reason=corral: spot, ends at {end:%H:%M:%S}"]
    slurm.scontrol("update", f"nodename={node}", *words)


def _each(concerned: Sequence[NodeJob], act: Callable[[NodeJob], object]) -> frozenset[str]:
    """The jobs with which it was done. One that Slurm refuses, as a requeue of `--no-requeue`, keeps none waiting."""
    done = set[str]()
    for job in concerned:
        try:
            act(job)
        except SlurmError as error:  # it is tried again at the next step
            log.error("job %s: %s", job.job_id, error)
        else:
            done.add(job.job_id)
    return frozenset(done)
