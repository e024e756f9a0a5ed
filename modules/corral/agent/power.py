"""Nodes that Slurm wants up, and nodes that it wants no more: launches in the order of the offers, and terminations.

All nodes of a queue with EFA that one job waits for come from one offer, or the next is tried; single nodes, and nodes
without EFA, take what there is.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from corral.agent.ec2 import TAG_LENGTH, Ec2, Instance, LaunchError, NoCapacity
from corral.model.cluster import ClusterPlan, OfferPlan, QueuePlan
from corral.model.deployed import Deployed
from corral.model.node_names import fold, number_of, queue_of

AT_ONCE = 100  # instances of one RunInstances call
_COMING = ("pending", "running")

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Nodes of one queue that are to be launched; `together`: from one offer, or not at all."""

    queue: QueuePlan
    nodes: tuple[str, ...]
    together: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a wish: the instances it has, and the nodes that no offer had room for, with the reason."""

    instances: tuple[Instance, ...]
    without: tuple[str, ...]
    reason: str


def wishes(plan: ClusterPlan, jobs: Sequence[Sequence[str]]) -> tuple[Wish, ...]:
    """What to launch for jobs that each wait for these nodes. A node that two jobs wait for is launched once.

    Nodes that need not be together are one wish a queue, however many jobs wait for them: EC2 allows few launches a
    second. Nodes of no queue are left out.
    """
    taken, found = set[str](), dict[tuple[str, int], list[str]]()
    queues = {queue.name: queue for queue in plan.queues}
    for number, nodes in enumerate(jobs, start=1):
        new = [node for node in dict.fromkeys(nodes) if node not in taken and queue_of(node) in queues]
        taken.update(new)
        for name, group in groupby(sorted(new, key=queue_of), key=queue_of):
            together = tuple(group)
            key = number if queues[name].efa and len(together) > 1 else 0
            found.setdefault((name, key), []).extend(together)
    return tuple(
        Wish(queue=queues[name], nodes=tuple(sorted(nodes, key=number_of)), together=number > 0)
        for (name, number), nodes in found.items()
    )


def strangers(plan: ClusterPlan, nodes: Sequence[str]) -> tuple[str, ...]:
    """Those of the nodes whose queue the cluster does not have, or has no more."""
    known = {queue.name for queue in plan.queues}
    return tuple(node for node in nodes if queue_of(node) not in known)


def launch(
    wish: Wish, deployed: Deployed, ec2: Ec2, epoch: str, *, held: Sequence[Instance] = (), at_once: int = AT_ONCE
) -> Outcome:
    """Launches what is wished, from the first offer that has room.

    What makes a repeated call harmless: `held`, the instances that there are, of which those of the wish's nodes count
    as launched; and `epoch`, the same for the same wish, for those that EC2 does not show yet. Raises Ec2Error.
    """
    made = [one for one in held if one.node in wish.nodes and one.state in _COMING]
    left, reason = _without(wish.nodes, made), "the queue has no offer"
    for offer in wish.queue.offers:
        if not left:
            break
        batches = tuple(_batches(left, at_once))
        got, reason = _from_offer(wish, offer, batches, deployed, ec2, epoch)
        made += got
        left = _without(left, got)
    return Outcome(instances=tuple(made), without=left, reason=reason)


def end(nodes: Sequence[str], ec2: Ec2) -> tuple[Instance, ...]:
    """The instances that were these nodes', now ended. A node without any is no error. Raises Ec2Error."""
    gone = set(nodes)
    instances = tuple(one for one in ec2.nodes() if one.node in gone)
    if instances:
        ec2.terminate([one.instance_id for one in instances])
    return instances


def addresses(instances: Sequence[Instance]) -> Mapping[str, str]:
    """The address of each node that has one."""
    return {one.node: one.address for one in instances if one.address}


def _from_offer(
    wish: Wish, offer: OfferPlan, batches: Sequence[Sequence[str]], deployed: Deployed, ec2: Ec2, epoch: str
) -> tuple[tuple[Instance, ...], str]:
    """The instances that this offer gave, and why not more."""
    got: list[Instance] = []
    if (template := deployed.templates.get(offer.key)) is None:
        return (), f"offer {offer.key} has no launch template"
    for batch in batches:
        try:
            new = ec2.launch(template, batch, _token(epoch, offer, batch), at_least=len(batch) if wish.together else 1)
        except (NoCapacity, LaunchError) as error:
            log.warning("launch %s: offer %s: %s", fold(batch), offer.key, error)
            if wish.together and got:
                ec2.terminate([one.instance_id for one in got])
                got = []
            return tuple(got), str(error)
        got += new
        log.info("launch %s: offer %s", fold(one.node for one in new), offer.key)
        if short := _without(batch, new):
            return tuple(got), f"offer {offer.key} had no room for {fold(short)}"
    return tuple(got), ""


def _without(nodes: Sequence[str], instances: Sequence[Instance]) -> tuple[str, ...]:
    """The nodes that none of the instances is."""
    served = {one.node for one in instances}
    return tuple(node for node in nodes if node not in served)


def _batches(nodes: Sequence[str], at_once: int) -> Iterator[tuple[str, ...]]:
    """What one call each launches: its folded names are the value of a tag."""
    batch: list[str] = []
    for node in nodes:
        if len(batch) == at_once or len(fold([*batch, node])) > TAG_LENGTH:
            yield tuple(batch)
            batch = []
        batch.append(node)
    if batch:
        yield tuple(batch)


def _token(epoch: str, offer: OfferPlan, batch: Sequence[str]) -> str:
    """At most 64 characters, the same for the same launch."""
    return hashlib.sha256(f"{epoch} {offer.key} {fold(batch)}".encode()).hexdigest()[:64]
