"""The command `corral-agent` of a cluster's machines. Exit code 0: done; 1: it failed; 2: it was asked wrongly."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from corral.agent import asked
from corral.agent.accounting import Accounting, Database
from corral.agent.answers import lean, quick_session
from corral.agent.apply_command import add_command
from corral.agent.boot import boot_head, boot_node, fetch
from corral.agent.closing import Closing
from corral.agent.configuration import Configuration
from corral.agent.dns import Zone
from corral.agent.dumps import BucketDumps, Dumps, dump
from corral.agent.ec2 import Ec2
from corral.agent.ec2_topology import Ec2Topology
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, Journal
from corral.agent.health.judge import Expected, expected_of
from corral.agent.health.readings import BoxProbe, Probe, SystemProbe
from corral.agent.hosts import BOX, Host, run
from corral.agent.identity import own_identity
from corral.agent.keep import REST_S, STATE, TURN_S, Outside, keep
from corral.agent.metadata import instance_tag
from corral.agent.note import leave_note, ring
from corral.agent.pulse import Heart, answers, has_step, latest
from corral.agent.spool import BELL, SPOOL
from corral.agent.store import DirectoryStore, Store, StoreError
from corral.agent.switch_tree import SwitchTree
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts, Deployed
from corral.model.jsons import from_json
from corral.model.manifest import MANIFEST
from corral.model.markets import Role
from corral.model.node_names import queue_of

FACTS = Path("/opt/corral/boot.json")
RECORDS = Path("/etc/corral")


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of what the command line asks for."""
    chosen = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s corral-agent %(levelname)s %(message)s")
    logging.getLogger("botocore").setLevel(logging.WARNING)
    try:
        chosen.act(chosen)
    except (AgentError, OSError) as error:
        logging.error("%s: %s", chosen.command, error)
        return 1
    return 0


def _boot(chosen: argparse.Namespace) -> None:
    role, store = Role(chosen.role), _store(chosen)
    if role is Role.HEAD:
        plan, deployed = fetch(store, role, None)
        host, secrets = _host(deployed.region), _client("secretsmanager", deployed.region)
        boot_head(plan, deployed, host, secrets, Accounting(run, _dumps(plan, deployed)).start)
        return
    identity = own_identity()
    plan, deployed = fetch(store, role, identity.queue)
    secrets = _client("secretsmanager", deployed.region)
    boot_node(plan, deployed, identity, _host(deployed.region), secrets, _probe())


def _install(chosen: argparse.Namespace) -> None:
    role = Role(chosen.role)
    queue = None if role is Role.HEAD else chosen.queue or instance_tag("corral:queue")
    fetch(_store(chosen), role, queue, root=chosen.root)


def _note(chosen: argparse.Namespace) -> None:
    leave_note(chosen.command, chosen.nodes, spool=str(chosen.spool))
    ring(str(chosen.bell))


def _keep(chosen: argparse.Namespace) -> None:
    plan, deployed = _records(chosen.records)
    client = lean(_impatient("ec2", deployed.region))
    zone = Zone(_impatient("route53", deployed.region), deployed.hosted_zone, plan.dns_zone)
    outside = Outside(
        zone=zone,
        topology=Ec2Topology(client),
        configuration=_configuration(chosen.records),
        closing=_closing(Ec2(client, plan.name), deployed, chosen.state),
        tree=_tree(chosen.records, deployed),
    )
    keep(
        plan,
        deployed,
        Ec2(client, plan.name),
        chosen.spool,
        chosen.bell,
        chosen.turn,
        chosen.state,
        outside,
        chosen.rest,
    )


def _closing(ec2: Ec2, deployed: Deployed, state: Path) -> Closing:
    topic: Any = _impatient("sns", deployed.region)

    def publish(subject: str, text: str) -> object:
        return topic.publish(TopicArn=deployed.topic, Subject=subject, Message=text)

    return Closing(
        ec2=ec2,
        host=_host(deployed.region),
        journal=Journal(state / EVENTS.name),
        publish=publish,
        save=partial(run, ("/opt/corral/bin/corral-agent", "dump")),
    )


def _configuration(records: Path) -> Configuration | None:
    """None where the records are not those of a booted head."""
    if records != RECORDS or not FACTS.exists():
        return None
    from corral.agent.s3 import BucketStore

    tag = partial(BucketStore(from_json(BootFacts, FACTS.read_text(encoding="utf-8"))).tag, MANIFEST)
    return Configuration(tag=tag, apply=partial(run, ("/opt/corral/bin/corral-agent", "apply")), records=_installed)


def _tree(records: Path, deployed: Deployed) -> SwitchTree | None:
    """The same."""
    if records != RECORDS or not FACTS.exists():
        return None
    return SwitchTree(plan=partial(_plan, RECORDS), host=_host(deployed.region), run=run)


def _installed() -> tuple[ClusterPlan, Deployed]:
    return _records(RECORDS)


def _dump(chosen: argparse.Namespace) -> None:
    dump(_dumps(*_records(chosen.records)), run, Database(run).is_whole)


def _watch(_: argparse.Namespace) -> None:
    from corral.agent.watch import watch

    watch(own_identity(), _heart().beat)


def _heart() -> Heart:
    """The end of the cluster is asked of the bucket: a machine may be older than its `corral extend`."""
    plan, deployed = _records(RECORDS)
    facts = from_json(BootFacts, FACTS.read_text(encoding="utf-8"))

    def newest() -> str | None:
        from corral.agent.s3 import BucketStore

        return from_json(Deployed, BucketStore(facts).read("deployed.json").decode()).ends_at

    return Heart(
        hears=partial(answers, str(plan.head.address)),
        working=has_step,
        ends_at=partial(latest, newest, deployed.ends_at),
        power_off=_host(deployed.region).power_off,
    )


def _health(chosen: argparse.Namespace) -> None:
    from corral.agent.health import check

    identity = own_identity()
    expected = _expected(identity.queue, chosen.records)
    if chosen.deep:
        check.check_without_job(identity.node)
    found = (check.deep if chosen.deep else check.quick)(expected, _probe())
    print(check.as_json(found) if chosen.json else check.as_text(found))  # noqa: T201
    if any(one.is_sick for one in found):
        raise check.HealthError(f"{identity.node} is not fit for jobs")


def _prolog(chosen: argparse.Namespace) -> None:
    from corral.agent.health import check

    node = os.environ.get("SLURMD_NODENAME") or own_identity().node
    check.prolog(node, _expected(queue_of(node), chosen.records), _probe())


def _health_check(chosen: argparse.Namespace) -> None:
    from corral.agent.health import check

    identity = own_identity()
    check.check_idle(identity.node, _expected(identity.queue, chosen.records), _probe())


def _ranks(_: argparse.Namespace) -> None:
    from corral.agent.topology import paths_of, rank_order

    print("\n".join(rank_order(paths_of(sys.stdin.read().split()))))  # noqa: T201


def _credentials(chosen: argparse.Namespace) -> None:
    from corral.agent.credentials import role, serve

    _, deployed = _records(chosen.records)
    serve(role(_client("sts", deployed.region), deployed.job_role))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="corral-agent", description="The agent on the machines of a corral cluster.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    boot = commands.add_parser("boot", help="make this machine what it was launched for")
    install = commands.add_parser("install", help="fetch the cluster's files and install them, no more")
    for command in (boot, install):
        command.add_argument("--role", required=True, choices=[role.value for role in Role], help="what the machine is")
        command.add_argument(
            "--facts", type=Path, default=FACTS, help="where the cluster's files are (default: %(default)s)"
        )
        command.add_argument("--store", type=Path, help="a directory in the bucket's place")
    install.add_argument("--queue", help="the queue of a compute machine (default: its tag corral:queue)")
    install.add_argument("--root", type=Path, default=Path("/"), help="where to install (default: %(default)s)")
    boot.set_defaults(act=_boot)
    install.set_defaults(act=_install)
    for name, text in (
        ("resume", "note that nodes are wanted: Slurm's ResumeProgram"),
        ("resume-failed", "note that nodes did not come up: Slurm's ResumeFailProgram"),
        ("suspend", "note that nodes are idle: Slurm's SuspendProgram"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("nodes", help="such as train-[1-4]")
        _add_places(command)
        command.set_defaults(act=_note)
    watcher = commands.add_parser("watch", help="look for notices that the machine is taken back; runs on nodes")
    watcher.set_defaults(act=_watch)
    health = commands.add_parser("health", help="say whether this node is fit for jobs")
    depth = health.add_mutually_exclusive_group(required=True)
    depth.add_argument("--quick", action="store_true", help="at most five seconds: devices, mounts, clock")
    depth.add_argument("--deep", action="store_true", help="minutes: NVLinks, Xids, DCGM at level 2; no job may run")
    health.add_argument("--json", action="store_true", help="print one JSON document")
    prolog = commands.add_parser("prolog", help="let a job begin, or drain this node: Slurm's Prolog")
    idle = commands.add_parser("health-check", help="drain this node if it is sick: Slurm's HealthCheckProgram")
    for command, act in ((health, _health), (prolog, _prolog), (idle, _health_check)):
        command.add_argument("--records", type=Path, default=RECORDS, help="where cluster.json is")
        command.set_defaults(act=act)
    ranks = commands.add_parser("ranks", help="print the node names of the standard input in the order of switches")
    ranks.set_defaults(act=_ranks)
    endpoint = commands.add_parser("credentials", help="hand out the job role on this machine")
    keeper = commands.add_parser("keep", help="launch and end machines as Slurm asks for it; runs on the head")
    _add_places(keeper)
    for command in (endpoint, keeper):
        command.add_argument(
            "--records",
            type=Path,
            default=RECORDS,
            help="where cluster.json and deployed.json are (default: %(default)s)",
        )
    endpoint.set_defaults(act=_credentials)
    keeper.add_argument(
        "--state", type=Path, default=STATE, help="where the keeper's memory and the events are (default: %(default)s)"
    )
    keeper.add_argument(
        "--turn", type=float, default=TURN_S, help="seconds between looks if no bell rings (default: %(default)s)"
    )
    keeper.add_argument(
        "--rest",
        type=float,
        default=REST_S,
        help="seconds that an offer without capacity rests at first (default: %(default)s)",
    )
    keeper.set_defaults(act=_keep)
    dumper = commands.add_parser("dump", help="write the records of jobs to the bucket; runs on the head")
    dumper.add_argument(
        "--records", type=Path, default=RECORDS, help="where cluster.json and deployed.json are (default: %(default)s)"
    )
    dumper.set_defaults(act=_dump)
    add_command(commands, FACTS, _store, lambda: _host(_records(RECORDS)[1].region))
    asked.add_commands(commands, _plan, RECORDS, _dump)
    return parser


def _add_places(command: argparse.ArgumentParser) -> None:
    command.add_argument("--spool", type=Path, default=SPOOL, help="where notes lie (default: %(default)s)")
    command.add_argument("--bell", type=Path, default=BELL, help="the keeper's socket (default: %(default)s)")


def _host(region: str) -> Host:
    if BOX.is_dir():
        from corral.agent.host_box import BoxHost

        return BoxHost()
    from corral.agent.host_ec2 import Ec2Host

    return Ec2Host(run, region)


def _probe() -> Probe:
    return BoxProbe() if BOX.is_dir() else SystemProbe()


def _expected(queue: str, records: Path) -> Expected:
    return expected_of(_plan(records), queue)


def _dumps(plan: ClusterPlan, deployed: Deployed) -> Dumps:
    return BucketDumps(_client("s3", deployed.region), deployed.bucket, plan.name)


def _client(service: str, region: str) -> object:
    import boto3

    return boto3.client(service, region_name=region)


def _impatient(service: str, region: str) -> object:
    """A client that asks once: EC2 answers InsufficientInstanceCapacity as a failure of its own (500), which botocore
    would ask for again and again. The keeper asks again by itself, and knows what for.
    """
    from botocore.config import Config

    config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=60)
    return quick_session().client(service, region_name=region, config=config)


def _plan(directory: Path) -> ClusterPlan:
    try:
        return from_json(ClusterPlan, (directory / "cluster.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"the records in {directory} are not those of this agent: {error}") from error


def _records(directory: Path) -> tuple[ClusterPlan, Deployed]:
    try:
        return _plan(directory), from_json(Deployed, (directory / "deployed.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"the records in {directory} are not those of this agent: {error}") from error


def _store(chosen: argparse.Namespace) -> Store:
    if chosen.store:
        return DirectoryStore(chosen.store)
    from corral.agent.s3 import BucketStore

    try:
        facts = from_json(BootFacts, chosen.facts.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoreError(f"{chosen.facts} does not say where the cluster's files are: {error}") from error
    return BucketStore(facts)


if __name__ == "__main__":
    sys.exit(main())
