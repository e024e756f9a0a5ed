"""Slurm and EC2 compared, and brought together again: what `decide` says, done. The keeper does it at every turn."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime

from corral.agent import slurm
from corral.agent.decide import Action, Forget, Seen, Terminate, Wake, decide
from corral.agent.ec2 import Ec2
from corral.model.cluster import ClusterPlan
from corral.model.node_names import fold

log = logging.getLogger("corral.agent")


def reconcile(plan: ClusterPlan, ec2: Ec2, asked_for: Iterable[str], seen: Seen) -> Seen:
    """Since when something looks wrong, after what is surely wrong was mended. Raises AgentError; then do it again."""
    actions, wrong = decide(
        slurm.nodes(),
        ec2.nodes(),
        static=frozenset(name for queue in plan.queues for name in queue.static_nodes),
        asked_for=frozenset(asked_for),
        seen=seen,
        now=datetime.now(UTC),
    )
    for action in actions:
        _do(action, ec2)
    return wrong


def _do(action: Action, ec2: Ec2) -> None:
    match action:
        case Terminate():
            log.warning("terminate %s: %s", ", ".join(action.instance_ids), action.why)
            ec2.terminate(action.instance_ids)
        case Forget():
            log.warning("power down %s: %s", fold(action.nodes), action.why)
            slurm.power_down(action.nodes, f"corral: {action.why}")
        case Wake():
            log.info("power up %s: always there", fold(action.nodes))
            slurm.power_up(action.nodes)
