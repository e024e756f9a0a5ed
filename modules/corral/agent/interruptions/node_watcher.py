"""The daemon of a node that polls the metadata service for spot notices and follows `spot`. `corral-agent node-watch`.

It also checks the head's liveness, see `shutdown.head_liveness`, and follows the cluster's people, see `users`.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from corral.agent import imds_client, node_jobs, slurm
from corral.agent.cluster.node_events import notice_comment
from corral.agent.errors import AgentError
from corral.agent.host.self_termination import first_after_s
from corral.agent.interruptions.spot import SpotProgress, SpotStep, is_new_hint, rebalance_at, reclaimed_at, spot_steps
from corral.agent.node_identity import NodeIdentity
from corral.agent.node_jobs import NodeJob, Phase
from corral.agent.process_lock import exclusive
from corral.agent.slurm import SlurmError
from corral.model.node_names import number_of

POLL_EVERY_S = 5.0  # as AWS recommends; a notice comes two minutes ahead
STEP_EVERY_S = 1.0  # after a notice
LOCK = Path("/run/corral/watch.lock")
_DOCUMENT, _HINT = "spot/instance-action", "events/recommendations/rebalance"

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """The reclaim of this machine: when it ends, and what was done."""

    end: datetime
    progress: SpotProgress


def watch(
    identity: NodeIdentity,
    check_head: Callable[[], object],
    follow_users: Callable[[], object],
    sleep: Callable[[float], None] = time.sleep,
    lock: Path = LOCK,
) -> None:
    """Watch until the machine ends. Returns at once if another watcher runs.

    `check_head`: HeadMonitor.check. `follow_users`: FollowedUsers.poll.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(lock) as first:
        if not first:
            log.info("node-watch %s: another one is already running", identity.node)
            return
        reclaim: Reclaim | None = None
        handled: str | None = None
        quiet, pause_s = divmod(first_after_s(number_of(identity.node)), POLL_EVERY_S)
        while True:
            try:
                reclaim = check_notice(identity, reclaim, datetime.now(UTC))
                handled = handled if reclaim else check_rebalance(identity, handled)
                follow_users()
            except (AgentError, OSError, ValueError) as error:
                log.error("node-watch %s: %s", identity.node, error)
            except Exception:  # an unexpected error must not end the only process that sees a notice
                log.exception("node-watch %s failed", identity.node)
            if quiet >= 0:
                quiet -= 1
            else:
                _run_head_check(identity, check_head)
            sleep(STEP_EVERY_S if reclaim else pause_s)
            pause_s = POLL_EVERY_S


def _run_head_check(identity: NodeIdentity, check_head: Callable[[], object]) -> None:
    try:
        check_head()
    except (AgentError, OSError) as error:
        log.error("check the head from %s: %s", identity.node, error)


def check_notice(identity: NodeIdentity, reclaim: Reclaim | None, now: datetime) -> Reclaim | None:
    """The reclaim after one poll and its steps; None without a notice. Raises AgentError; the next call repeats it."""
    if reclaim is None:
        end = reclaimed_at(imds_client.read(_DOCUMENT))
        if end is None:
            return None
        log.warning("notice %s: the machine is reclaimed at %s", identity.node, end.isoformat())
        reclaim = Reclaim(end=end, progress=SpotProgress())
    here = {job.job_id: job for job in node_jobs.jobs_on(identity.node)}
    for step, jobs in spot_steps(reclaim.end, now, tuple(here.values()), reclaim.progress):
        progress = _do(step, tuple(here[job] for job in jobs), identity, reclaim)
        reclaim = replace(reclaim, progress=progress)
    return reclaim


def check_rebalance(identity: NodeIdentity, handled: str | None) -> str | None:
    """The last rebalance recommendation that was handled, after one poll. A new one signals the jobs here.

    Many recommendations precede no notice, and many notices come without one, so nothing else is done. Raises
    AgentError; the next call repeats it.
    """
    hint = rebalance_at(imds_client.read(_HINT))
    if not is_new_hint(hint, handled):
        return handled
    here = tuple(job for job in node_jobs.jobs_on(identity.node) if job.phase is Phase.RUNNING)
    listed = ", ".join(job.job_id for job in here) or "-"
    log.warning("rebalance %s: recommended at %s; request a checkpoint of jobs %s", identity.node, hint, listed)
    _each(here, node_jobs.request_checkpoint)
    return hint


def _do(step: SpotStep, jobs: tuple[NodeJob, ...], identity: NodeIdentity, reclaim: Reclaim) -> SpotProgress:
    log.info("%s %s: %s", step, identity.node, ", ".join(sorted(job.job_id for job in jobs)) or "-")
    match step:
        case SpotStep.DRAIN:
            _drain(identity.node, reclaim.end)
            return replace(reclaim.progress, drained=True)
        case SpotStep.REQUEST_CHECKPOINT:
            return replace(
                reclaim.progress, signalled=reclaim.progress.signalled | _each(jobs, node_jobs.request_checkpoint)
            )
        case SpotStep.REQUEUE:
            return replace(reclaim.progress, requeued=reclaim.progress.requeued | _each(jobs, node_jobs.requeue))
        case SpotStep.RELEASE:
            slurm.release(identity.node, "corral: reclaimed by the spot market")
            return replace(reclaim.progress, released=True)


def _drain(node: str, end: datetime) -> None:
    updates = [f"comment={notice_comment(datetime.now(UTC), end)}"]  # the autoscaler logs it as an event
    if not slurm.node(node).drained_by_hand:
        updates += ["state=drain", f"reason=corral: spot, ends at {end:%H:%M:%S}"]
    slurm.scontrol("update", f"nodename={node}", *updates)


def _each(jobs: Sequence[NodeJob], act: Callable[[NodeJob], object]) -> frozenset[str]:
    """The jobs for which `act` succeeded. One that Slurm refuses, e.g. `--no-requeue`, does not stop the others."""
    done = set[str]()
    for job in jobs:
        try:
            act(job)
        except SlurmError as error:  # tried again at the next step
            log.error("job %s: %s", job.job_id, error)
        else:
            done.add(job.job_id)
    return frozenset(done)
