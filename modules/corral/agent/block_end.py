"""What is done before a capacity block ends. Pure: the ends of blocks, nodes, instances and the time in, steps out.

It is like a notice of the spot market that comes ten minutes ahead: AWS says 40 minutes before the end of a block that
it ends, and ends what runs in it from 30 minutes before on (EC2 User Guide, "Capacity Blocks for ML"). From the first
moment on no new job comes to such a machine, none is launched into the block, and jobs are asked for a checkpoint. A
minute before the end what is left is requeued: its processes get SIGTERM, and KillWait to save what they have. At the
last safe second the nodes are let go. Times are seconds since 1970.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from corral.agent.decide import Forget
from corral.agent.memory import Cold, Memory
from corral.agent.notice import LAST_SAFE
from corral.agent.refusals import Kind
from corral.agent.world import Instance, SlurmNode

WARNED_AHEAD_S, ENDED_AHEAD_S = 40 * 60.0, 30 * 60.0
LET_GO_AHEAD_S = ENDED_AHEAD_S + LAST_SAFE.total_seconds()
REQUEUED_AHEAD_S = LET_GO_AHEAD_S + 35.0  # Slurm's default KillWait of 30 s, and the keeper's look each 5 s
REASON = "corral: capacity block, "  # the job templates look for it: a job moves when it has saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Ask the jobs on these nodes for a checkpoint. `to_drain`: those of them that take no new job from now on.

    The others somebody has drained already, whose reason stays (decision 36).
    """

    nodes: tuple[str, ...]
    to_drain: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Let the jobs on these nodes start again elsewhere; their processes have KillWait to save what they have."""

    nodes: tuple[str, ...]


def closed(memory: Memory, ends: Mapping[str, float], now: float) -> Memory:
    """With the offers of blocks that end soon as ones that rest: a machine would be ended before it is of use.

    `ends`: of the block of each offer.
    """
    cold = {
        offer: Cold(until=end, strikes=1, kind=Kind.CAPACITY, why=f"its capacity block ends at {_hour(end)} UTC")
        for offer, end in ends.items()
        if end - WARNED_AHEAD_S <= now < end
    }
    return replace(memory, cold={**memory.cold, **cold}) if cold else memory


def steps(
    ends: Mapping[str, float],
    nodes: Sequence[SlurmNode],
    instances: Iterable[Instance],
    asked: frozenset[str],
    requeued: frozenset[str],
    now: float,
) -> tuple[Leave | Requeue | Forget, ...]:
    """What to do now. `asked`, `requeued`: the instances whose jobs were, before."""
    by_name = {node.name: node for node in nodes}
    theirs = {node.name for node in nodes if node.drained_by_hand}
    leaving: dict[float, set[str]] = {}
    moving: set[str] = set()
    late: set[str] = set()
    for one in instances:
        end, node = ends.get(one.offer), by_name.get(one.node)
        if end is None or node is None or not one.coming or not node.wants_machine or now < end - WARNED_AHEAD_S:
            continue
        if now >= end - LET_GO_AHEAD_S:
            late.add(node.name)
        elif one.instance_id not in asked:  # and drained: what is requeued must not come back here
            leaving.setdefault(end, set()).add(node.name)
        elif now >= end - REQUEUED_AHEAD_S and one.instance_id not in requeued:
            moving.add(node.name)
    found: list[Leave | Requeue | Forget] = [
        Leave(
            nodes=tuple(sorted(names)),
            to_drain=tuple(sorted(names - theirs)),
            reason=f"{REASON}machines end at {_hour(end - ENDED_AHEAD_S)} UTC",
        )
        for end, names in sorted(leaving.items())
    ]
    if moving:
        found.append(Requeue(nodes=tuple(sorted(moving))))
    for names, silently in ((late - theirs, False), (late & theirs, True)):
        if names:
            found.append(Forget(nodes=tuple(sorted(names)), why="its capacity block ends", silently=silently))
    return tuple(found)


def _hour(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
