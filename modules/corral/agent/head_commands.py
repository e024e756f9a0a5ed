"""The commands of `corral-agent` that make a machine the head of a cluster, and keep it one."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from corral.agent.accounting import Accounting, Database
from corral.agent.answers import lean
from corral.agent.boot import fetch
from corral.agent.boot_head import boot_head
from corral.agent.closing import Closing
from corral.agent.configuration import Configuration
from corral.agent.dns import Zone
from corral.agent.dumps import BucketDumps, DumpError, Dumps
from corral.agent.dumps import dump as dump_accounting
from corral.agent.ec2 import Ec2
from corral.agent.ec2_topology import Ec2Topology
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, Journal
from corral.agent.hosts import run
from corral.agent.keep import REST_S, STATE, TURN_S, Outside, keep
from corral.agent.lifetime import FIRST_LOOK_S
from corral.agent.lives import BucketLives, keep_life
from corral.agent.machine import (
    FACTS,
    RECORDS,
    add_records,
    boot_facts,
    client,
    host_in,
    impatient,
    plan_in,
    records_in,
    store_of,
)
from corral.agent.note_commands import add_places
from corral.agent.records import Records
from corral.agent.shipping import SHIPPED, Shipping
from corral.agent.switch_tree import SwitchTree
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.head import NOT_DUMPED, NOT_KEPT
from corral.model.jsons import from_json
from corral.model.manifest import MANIFEST
from corral.model.markets import Role

_AGENT = "/opt/corral/bin/corral-agent"


def add_words(parser: argparse.ArgumentParser, command: str) -> None:
    """The options of a command."""
    add_records(parser)
    parser.set_defaults(act=_keep if command == "keep" else dump)
    add_state(parser)
    if command == "dump":
        return
    add_places(parser)
    bell = "seconds between looks if no bell rings (default: %(default)s)"
    parser.add_argument("--turn", type=float, default=TURN_S, help=bell)
    rest = "seconds that an offer without capacity rests at first (default: %(default)s)"
    parser.add_argument("--rest", type=float, default=REST_S, help=rest)
    look = "seconds that a new head of a cluster whose hour has passed stays (default: %(default)s)"
    parser.add_argument("--first-look", type=float, default=FIRST_LOOK_S, help=look)


def add_state(parser: argparse.ArgumentParser) -> None:
    """The option that says where the head remembers."""
    text = "where the keeper's memory and the events are (default: %(default)s)"
    parser.add_argument("--state", type=Path, default=STATE, help=text)


def boot(chosen: argparse.Namespace) -> None:
    """Starts the cluster's controller on this machine."""
    plan, deployed = fetch(store_of(chosen), Role.HEAD, None, host_in=host_in)
    secrets = client("secretsmanager", deployed.region)
    boot_head(plan, deployed, host_in(deployed.region), secrets, Accounting(run, _dumps(plan, deployed)).start)


def _keep(chosen: argparse.Namespace) -> None:
    records = Records(directory=chosen.records)  # before they are read, so that no later one is missed
    plan, deployed = records_in(chosen.records)
    ec2_client = lean(impatient("ec2", deployed.region))
    ec2 = Ec2(ec2_client, plan.name)
    booted = chosen.records == RECORDS and FACTS.exists()  # else the records are not those of a booted head
    shipping = _shipping(deployed, chosen.state)
    outside = Outside(
        zone=Zone(impatient("route53", deployed.region), deployed.hosted_zone, plan.dns_zone),
        topology=Ec2Topology(ec2_client),
        configuration=_configuration() if booted else None,
        closing=_closing(ec2, deployed, chosen, shipping),
        shipping=shipping,
        tree=SwitchTree(plan=plan_in, host=host_in(deployed.region), run=run) if booted else None,
    )
    keep(plan, deployed, ec2, chosen.spool, chosen.bell, chosen.turn, chosen.state, outside, chosen.rest, records)


def dump(chosen: argparse.Namespace) -> None:
    """Writes what outlives the cluster to the bucket. Raises DumpError once all of it was tried."""
    if problems := unsaved(chosen):
        raise DumpError("; ".join(problems))


def unsaved(chosen: argparse.Namespace) -> tuple[str, ...]:
    """What of the cluster's life and of the records of jobs could not be written to the bucket: a sentence each."""
    tried = (_tried(NOT_KEPT, _keep_life, chosen), _tried(NOT_DUMPED, _dump_accounting, chosen))
    return tuple(problem for problem in tried if problem)


def _tried(what: str, act: Callable[[argparse.Namespace], None], chosen: argparse.Namespace) -> str:
    try:
        act(chosen)
    except (AgentError, OSError) as error:
        return f"{what}: {error}"
    return ""


def _keep_life(chosen: argparse.Namespace) -> None:
    plan, deployed = records_in(chosen.records)
    ec2 = Ec2(client("ec2", deployed.region), plan.name)
    lives = BucketLives(client("s3", deployed.region), deployed.bucket)
    keep_life(lives, plan.name, chosen.state, partial(ec2.launched_at, str(plan.head.address)))


def _dump_accounting(chosen: argparse.Namespace) -> None:
    dump_accounting(_dumps(*records_in(chosen.records)), run, Database(run).is_whole)


def _closing(ec2: Ec2, deployed: Deployed, chosen: argparse.Namespace, shipping: Shipping) -> Closing:
    topic: Any = impatient("sns", deployed.region)

    def publish(subject: str, text: str) -> object:
        return topic.publish(TopicArn=deployed.topic, Subject=subject, Message=text)

    return Closing(
        ec2=ec2,
        host=host_in(deployed.region),
        journal=Journal(chosen.state / EVENTS.name),
        publish=publish,
        save=partial(run, (_AGENT, "dump")),
        ship=shipping,
        newest=_newest_end,
        first_look_s=chosen.first_look,
    )


def _newest_end() -> str | None:
    """Asked of the bucket: `corral extend` may just have moved it."""
    from corral.agent.s3 import BucketStore

    return from_json(Deployed, BucketStore(boot_facts()).read("deployed.json").decode()).ends_at


def _shipping(deployed: Deployed, state: Path) -> Shipping:
    return Shipping(
        client=impatient("logs", deployed.region),
        group=deployed.log_group,
        events=state / EVENTS.name,
        shipped=state / SHIPPED.name,
    )


def _configuration() -> Configuration:
    from corral.agent.s3 import BucketStore

    tag = partial(BucketStore(boot_facts()).tag, MANIFEST)
    return Configuration(tag=tag, apply=partial(run, (_AGENT, "apply")))


def _dumps(plan: ClusterPlan, deployed: Deployed) -> Dumps:
    return BucketDumps(client("s3", deployed.region), deployed.bucket, plan.name)
