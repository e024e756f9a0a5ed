"""Decide the steps before a capacity block ends. Pure: ends of blocks, nodes, instances and the time in, steps out.

AWS warns 40 minutes before the end of a block, and terminates its instances from 30 minutes before on (EC2 User Guide,
"Capacity Blocks for ML"): a notice of ten minutes. At the warning the nodes are drained, launches into the block stop,
and jobs are signalled to save a checkpoint. A minute before the instances end, the remaining jobs are requeued: their
processes get SIGTERM, and KillWait to save. In the last safe second the nodes are powered down. Times are seconds since
1970.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from corral.agent.autoscaler.decide import MarkDown
from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.cluster.models import Instance, SlurmNode
from corral.agent.cluster.state import AutoscalerState, Backoff
from corral.agent.interruptions.spot import LAST_SAFE

WARNED_AHEAD_S, ENDED_AHEAD_S = 40 * 60.0, 30 * 60.0
POWERED_DOWN_AHEAD_S = ENDED_AHEAD_S + LAST_SAFE.total_seconds()
REQUEUED_AHEAD_S = POWERED_DOWN_AHEAD_S + 35.0  # Slurm's default KillWait of 30 s, and the control loop's 5 s
REASON = "corral: capacity block, "  # job templates match it: a job requeues itself once it has saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacate:
    """Drain nodes and signal their jobs to save a checkpoint. `to_drain`: those that no person has drained.

    The reason of a person's drain stays (decision 36).
    """

    nodes: tuple[str, ...]
    to_drain: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """Requeue the jobs on these nodes; their processes have KillWait to save."""

    nodes: tuple[str, ...]


def back_off_ending_blocks(state: AutoscalerState, ends: Mapping[str, float], now: float) -> AutoscalerState:
    """The state with the offers of ending blocks backing off: a new machine would end too soon.

    `ends`: the end of each offer's block.
    """
    backoffs = {
        offer: Backoff(
            until=end, refusals=1, kind=LaunchErrorKind.CAPACITY, reason=f"its capacity block ends at {_hour(end)} UTC"
        )
        for offer, end in ends.items()
        if end - WARNED_AHEAD_S <= now < end
    }
    return replace(state, backoffs={**state.backoffs, **backoffs}) if backoffs else state


def block_steps(
    ends: Mapping[str, float],
    nodes: Sequence[SlurmNode],
    instances: Iterable[Instance],
    signalled: frozenset[str],
    requeued: frozenset[str],
    now: float,
) -> tuple[Vacate | Requeue | MarkDown, ...]:
    """The steps to take now. `signalled`, `requeued`: the instances whose jobs already were."""
    by_name = {node.name: node for node in nodes}
    drained_by_hand = {node.name for node in nodes if node.drained_by_hand}
    vacating: dict[float, set[str]] = {}
    requeuing: set[str] = set()
    late: set[str] = set()
    for one in instances:
        end, node = ends.get(one.offer), by_name.get(one.node)
        if end is None or node is None or not one.active or not node.wants_machine or now < end - WARNED_AHEAD_S:
            continue
        if now >= end - POWERED_DOWN_AHEAD_S:
            late.add(node.name)
        elif one.instance_id not in signalled:  # also drains: requeued jobs must not return
            vacating.setdefault(end, set()).add(node.name)
        elif now >= end - REQUEUED_AHEAD_S and one.instance_id not in requeued:
            requeuing.add(node.name)
    found: list[Vacate | Requeue | MarkDown] = [
        Vacate(
            nodes=tuple(sorted(names)),
            to_drain=tuple(sorted(names - drained_by_hand)),
            reason=f"{REASON}machines end at {_hour(end - ENDED_AHEAD_S)} UTC",
        )
        for end, names in sorted(vacating.items())
    ]
    if requeuing:
        found.append(Requeue(nodes=tuple(sorted(requeuing))))
    for names, silently in ((late - drained_by_hand, False), (late & drained_by_hand, True)):
        if names:
            found.append(MarkDown(nodes=tuple(sorted(names)), reason="its capacity block ends", keeps_reason=silently))
    return tuple(found)


def _hour(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
