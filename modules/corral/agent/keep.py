"""The keeper of a cluster: the one process on the head that launches and ends machines. `corral-agent keep`."""

import contextlib
import logging
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from corral.agent import power, slurm
from corral.agent.alone import alone
from corral.agent.decide import Seen
from corral.agent.ec2 import Ec2
from corral.agent.errors import AgentError
from corral.agent.reconcile import reconcile
from corral.agent.requeued import Delayed, release
from corral.agent.spool import BELL, SPOOL, Note, notes
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.node_names import fold

LOOK_EACH_S, SOON_S = 5.0, 1.0  # at jobs that wait to start again; sooner where there are some
TURN_S = 30.0  # how long a note can lie where its bell was not heard
# slurm.conf's ResumeTimeout: by then slurmctld has set the nodes down, and asks anew if a job still wants them.
RESUMED_WITHIN_S = 1200
_REASON_LENGTH = 200  # characters; what `sinfo -R` can still show
_SLURM_USER = "slurm"

log = logging.getLogger("corral.agent")


class Stopped(BaseException):
    """The keeper was told to end. botocore takes an Exception for a failure of the network and tries again."""


def keep(
    plan: ClusterPlan,
    deployed: Deployed,
    ec2: Ec2,
    spool: Path = SPOOL,
    bell: Path = BELL,
    turn_s: float = TURN_S,
) -> None:
    """Answers notes until it is told to end; at once where another keeper runs already."""
    bell.parent.mkdir(parents=True, exist_ok=True)  # /run is empty after a reboot
    with alone(bell.with_suffix(".lock")) as first:
        if not first:
            log.info("keep: another keeper runs")
            return
        signal.signal(signal.SIGTERM, _stop)
        with contextlib.suppress(Stopped), _listening(bell, spool) as line:
            _live(plan, deployed, ec2, spool, line, turn_s)


def _live(plan: ClusterPlan, deployed: Deployed, ec2: Ec2, spool: Path, line: socket.socket, turn_s: float) -> None:
    """Notes when the bell rings and at every turn; in between, a look at the jobs that wait to start again."""
    due, compare, delayed = 0.0, time.monotonic() + turn_s, Delayed()
    seen: Seen = {}
    while True:
        if time.monotonic() >= due:
            left = _turn(plan, deployed, ec2, spool)
            due = time.monotonic() + turn_s
        if time.monotonic() >= compare:
            seen = _compare(plan, ec2, left, seen)
            compare = time.monotonic() + turn_s
        delayed = release(delayed, datetime.now())  # Slurm prints this machine's time, without a zone
        line.settimeout(min(turn_s, SOON_S if delayed.since else LOOK_EACH_S))
        with contextlib.suppress(TimeoutError):
            line.recv(1)
            due = 0.0


def prepare_spool(root: Path = Path("/")) -> None:
    """Makes the directory that slurmctld's user writes to."""
    spool = root / SPOOL.relative_to("/")
    spool.mkdir(parents=True, exist_ok=True)
    shutil.chown(spool, _SLURM_USER)
    spool.chmod(0o700)


def _compare(plan: ClusterPlan, ec2: Ec2, asked_for: Iterable[str], seen: Seen) -> Seen:
    try:
        return reconcile(plan, ec2, asked_for, seen)
    except AgentError as error:
        log.error("compare Slurm and EC2: %s", error)
        return seen


def _turn(plan: ClusterPlan, deployed: Deployed, ec2: Ec2, spool: Path) -> frozenset[str]:
    """The nodes whose notes wait for the next turn: of those that failed, and of later ones of their nodes."""
    waiting = set[str]()
    for note in notes(spool):
        if waiting.isdisjoint(note.nodes) and _answer(note, plan, deployed, ec2):
            note.file.unlink(missing_ok=True)
        else:
            waiting.update(note.nodes)
    return frozenset(waiting)


def _answer(note: Note, plan: ClusterPlan, deployed: Deployed, ec2: Ec2) -> bool:
    """True if what a note asks for is done, or need not be."""
    try:
        if note.verb == "resume":
            _resume(note, plan, deployed, ec2)
        else:
            ended = power.end(note.nodes, ec2)
            machines = ", ".join(one.instance_id for one in ended) or "there is no machine"
            log.info("%s %s: %s", note.verb, fold(note.nodes), machines)
    except AgentError as error:
        log.error("%s %s: %s; tried again", note.verb, fold(note.nodes), error)
        return False
    except Exception:  # whatever nobody has thought of must not keep all other nodes from being launched and ended
        log.exception("%s %s failed; tried again", note.verb, fold(note.nodes))
        return False
    return True


def _resume(note: Note, plan: ClusterPlan, deployed: Deployed, ec2: Ec2) -> None:
    if time.time() > note.asked_at + RESUMED_WITHIN_S:
        log.warning("give up %s: wanted more than %s s ago", fold(note.nodes), RESUMED_WITHIN_S)
        return
    held = ec2.nodes()
    for wish in power.wishes(plan, note.jobs):
        outcome = power.launch(wish, deployed, ec2, note.file.stem, held=held)
        if found := power.addresses(outcome.instances):
            slurm.place(found)
        _give_up(outcome.without, outcome.reason)
    _give_up(power.strangers(plan, note.nodes), f"cluster {plan.name} has no such queue")


def _give_up(nodes: Sequence[str], reason: str) -> None:
    if nodes:
        log.warning("give up %s: %s", fold(nodes), reason)
        slurm.power_down(nodes, f"corral: {reason}"[:_REASON_LENGTH])


def _stop(*_: object) -> None:
    raise Stopped


@contextlib.contextmanager
def _listening(bell: Path, spool: Path) -> Iterator[socket.socket]:
    """The bell is rung by those who leave notes, and belongs to them."""
    bell.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(bell))
        owner = spool.stat()
        os.chown(bell, owner.st_uid, owner.st_gid)
        yield line
