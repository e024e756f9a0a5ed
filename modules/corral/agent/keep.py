"""The keeper of a cluster: the one process on the head that launches and ends machines. `corral-agent keep`."""

import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from corral.agent import partitions, slurm
from corral.agent.alone import alone
from corral.agent.chores import Chore, Names, Switches, start
from corral.agent.closing import LOOK_EACH_S as ENDING_EACH_S
from corral.agent.closing import Closing
from corral.agent.configuration import LOOK_EACH_S as CONFIGURATION_EACH_S
from corral.agent.configuration import Configuration
from corral.agent.dns import Zone
from corral.agent.dumps import dump_if_due
from corral.agent.ec2 import Ec2
from corral.agent.ec2_topology import Ec2Topology
from corral.agent.events import EVENTS, Event, Journal
from corral.agent.lives import began
from corral.agent.memory import MEMORY, load, save
from corral.agent.records import Records
from corral.agent.refusals import RESTS, Kind, rests
from corral.agent.rounds import Rounds
from corral.agent.shipping import SHIP_EACH_S, Shipping
from corral.agent.signs import lock_of, turned_of
from corral.agent.spool import BELL, SPOOL
from corral.agent.switch_tree import LOOK_EACH_S as TREE_EACH_S
from corral.agent.switch_tree import REST_S as REST_OF_TREE_S
from corral.agent.switch_tree import SwitchTree
from corral.agent.topology import place_in_topology
from corral.agent.turn import Keeper, Seen
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.markets import Market

TURN_S = 30.0  # how long a note can lie where its bell was not heard
REST_S = RESTS[Kind.CAPACITY].first_s
STATE = SPOOL.parent
_BLOCK_LOOK_S = 120.0  # when capacity blocks begin and end: it may be moved, and is known ten minutes ahead
_DUMP_LOOK_S = 600.0  # whether a day has passed since the last one

log = logging.getLogger("corral.agent")


class Stopped(BaseException):
    """The keeper was told to end. botocore takes an Exception for a failure of the network and tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What of AWS the keeper needs beside launching and ending."""

    zone: Zone
    topology: Ec2Topology
    configuration: Configuration | None = None
    closing: Closing | None = None
    tree: SwitchTree | None = None
    shipping: Shipping | None = None


def keep(
    plan: ClusterPlan,
    deployed: Deployed,
    ec2: Ec2,
    spool: Path = SPOOL,
    bell: Path = BELL,
    turn_s: float = TURN_S,
    state: Path = STATE,
    outside: Outside | None = None,
    rest_s: float = REST_S,
    records: Records | None = None,
) -> None:
    """Answers notes until it is told to end; at once where another keeper runs already."""
    bell.parent.mkdir(parents=True, exist_ok=True)  # /run is empty after a reboot
    with alone(lock_of(bell)) as first:
        if not first:
            log.info("keep: another keeper runs")
            return
        signal.signal(signal.SIGTERM, _stop)
        memory, journal = state / MEMORY.name, Journal(state / EVENTS.name)
        journal.tell(Event.BEGAN, f"the keeper of {plan.name} begins")
        began(state, time.time())  # the events of today will be forgotten one day
        keeper = Keeper(
            plan,
            deployed,
            ec2,
            slurm,
            partial(save, file=memory),
            time.time,
            journal,
            known=load(memory),
            naming=outside.zone if outside else None,
            rests=rests(rest_s),
            stopped=partitions.stopped,
        )
        start(chores_of(keeper, ec2, outside, turn_s) if outside else ())
        rounds = Rounds(
            keeper=keeper, journal=journal, spool=spool, turn_s=turn_s, sign=turned_of(bell), records=records
        )
        with contextlib.suppress(Stopped), _listening(bell, spool) as line:
            rounds.live(line)


def chores_of(keeper: Keeper, ec2: Ec2, outside: Outside, turn_s: float) -> tuple[Chore, ...]:
    """What is done beside the rounds with what there is outside."""
    blocks = {
        offer.key: offer.reservation
        for queue in keeper.plan.queues
        for offer in queue.offers
        if offer.market is Market.CAPACITY_BLOCK and offer.reservation
    }

    def look_at_blocks() -> None:
        found = ec2.blocks(sorted(set(blocks.values())))
        held = {offer: found[block] for offer, block in blocks.items() if block in found}
        keeper.block_begins = {offer: one.begins for offer, one in held.items()}
        keeper.block_ends = {offer: one.ends for offer, one in held.items()}

    def seen() -> Seen | None:
        return keeper.seen

    place = partial(place_in_topology, switches=outside.topology.switches)
    configuration, closing = outside.configuration, outside.closing
    return (
        *((_looking(configuration),) if configuration else ()),
        *((_ending(keeper, closing),) if closing else ()),
        Chore(name="names of nodes", each_s=TURN_S, act=Names(seen=seen, prune=outside.zone.prune)),
        Chore(name="switches of nodes", each_s=TURN_S, act=Switches(seen=seen, place=place)),
        *((_telling(outside.tree),) if outside.tree else ()),
        *(
            (Chore(name="events to the log group", each_s=SHIP_EACH_S, act=outside.shipping),)
            if outside.shipping
            else ()
        ),
        *(
            (Chore(name="times of capacity blocks", each_s=min(_BLOCK_LOOK_S, 4 * turn_s), act=look_at_blocks),)
            * bool(blocks)
        ),
        Chore(name="dump of the accounting", each_s=_DUMP_LOOK_S, act=dump_if_due, first_s=_DUMP_LOOK_S),
    )


def _looking(configuration: Configuration) -> Chore:
    name = "look for a newer configuration"
    return Chore(name=name, each_s=CONFIGURATION_EACH_S, act=configuration.look, first_s=TURN_S)


def _telling(tree: SwitchTree) -> Chore:
    """Later than the first machines come, so that the first tree is not of a few of them."""
    return Chore(name="topology.conf", each_s=TREE_EACH_S, act=tree, first_s=REST_OF_TREE_S)


def _ending(keeper: Keeper, closing: Closing) -> Chore:
    return Chore(name="end of life", each_s=ENDING_EACH_S, act=partial(closing.look, keeper), first_s=ENDING_EACH_S)


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
