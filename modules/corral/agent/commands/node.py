"""The commands of `corral-agent` on a node, and `credentials`, which all machines run."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from corral.agent import imds_client
from corral.agent.health import check
from corral.agent.health.evaluate import Expected, expected_of
from corral.agent.host.base import Host
from corral.agent.imds_client import instance_tag
from corral.agent.node_identity import NodeIdentity, manifest_version, read_identity
from corral.agent.runtime_context import (
    add_records,
    boot_facts,
    client,
    host_in,
    newest_end,
    plan_in,
    probe,
    records_in,
)
from corral.model.cluster import ClusterPlan
from corral.model.node_names import queue_of
from corral.model.tags import LOGIN_TAG
from corral.model.users import AccessPlan


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a command."""
    if command == "health":
        depth = parser.add_mutually_exclusive_group(required=True)
        depth.add_argument(
            "--quick", action="store_true", help="check devices, mounts and the clock, in at most five seconds"
        )
        depth.add_argument(
            "--deep",
            action="store_true",
            help="check NVLinks, Xids and DCGM level 2, for minutes; requires a node without jobs",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document")
    if command not in ("node-watch", "node-shutdown", "rank-order"):
        add_records(parser)
    parser.set_defaults(act=_ACTS[command])


def _watch(_: argparse.Namespace) -> None:
    from corral.agent.interruptions.node_watcher import watch
    from corral.agent.shutdown.head_liveness import HeadMonitor, answers, has_step, latest_end
    from corral.agent.users.followed_users import FollowedUsers

    plan, deployed = records_in()
    facts, host = boot_facts(), host_in(deployed.region)
    identity, seen = read_identity(), manifest_version()
    if plan.monitoring.prometheus:
        _serve_metrics(identity.node)
    if plan.access.directory:
        _end_sessions(plan)
    monitor = HeadMonitor(
        head_answers=partial(answers, str(plan.head.address)),
        working=has_step,
        ends_at=partial(latest_end, partial(newest_end, facts, deployed.account, seen), deployed.ends_at),
        power_off=host.power_off,
    )
    watch(identity, monitor.check, FollowedUsers(act=partial(_sync, host, deployed.home)).poll)


def _end_sessions(plan: ClusterPlan) -> None:
    from corral.agent.background_tasks import BackgroundTask, start_tasks
    from corral.agent.events import EventLog
    from corral.agent.users.directory_sessions import POLL_EVERY_S, DirectorySessionsTask

    task = DirectorySessionsTask(plan=lambda: plan, journal=EventLog(None))
    start_tasks((BackgroundTask(name="sessions", every_s=POLL_EVERY_S, act=task),))


def _serve_metrics(node: str) -> None:
    from corral.agent.metrics.node_exporter import NodeExporter, start_node_exporter
    from corral.agent.metrics.node_token import node_token

    start_node_exporter(NodeExporter(node=node, probe=probe()), node_token(), imds_client.read("local-ipv4") or "")


def _sync(host: Host, home: str | None, access: AccessPlan) -> None:
    """Give the node the cluster's people, and homes of its own where machines share none. Raises AccountsError."""
    from corral.agent.users.sync import make_homes, require_done

    changes = host.sync_users(access)
    if not home:
        make_homes(access, host.make_home)
    require_done(changes)


def _shutdown(_: argparse.Namespace) -> None:
    from corral.agent.shutdown.machine_shutdown import requeue_jobs

    requeue_jobs(read_identity().node)


def _health(chosen: argparse.Namespace) -> None:
    identity = read_identity()
    expected = _expected(identity, chosen.records)
    if chosen.deep:
        check.check_without_job(identity.node)
    found = (check.deep if chosen.deep else check.quick)(expected, probe())
    print(check.as_json(found) if chosen.json else check.as_text(found))  # noqa: T201
    if any(one.is_sick for one in found):
        raise check.HealthError(f"{identity.node} is not fit for jobs")


def _prolog(chosen: argparse.Namespace) -> None:
    node = os.environ.get("SLURMD_NODENAME") or read_identity().node
    check.prolog(node, _expected(NodeIdentity(node=node, queue=queue_of(node)), chosen.records), probe())


def _health_check(chosen: argparse.Namespace) -> None:
    identity = read_identity()
    check.check_idle(identity.node, _expected(identity, chosen.records), probe())


def _rank_order(_: argparse.Namespace) -> None:
    from corral.agent.topology.rank_order import paths_of, rank_order

    print("\n".join(rank_order(paths_of(sys.stdin.read().split()))))  # noqa: T201


def _ecr_password(chosen: argparse.Namespace) -> None:
    from corral.agent.ecr_password import check_registries, ecr_client, ecr_password
    from corral.model.job_role import URI

    plan, deployed = records_in(chosen.records)
    check_registries(plan)
    print(ecr_password(ecr_client(deployed.region, URI)))  # noqa: T201


def _credentials(chosen: argparse.Namespace) -> None:
    from corral.agent.credentials import role, serve

    _, deployed = records_in(chosen.records)
    is_login = deployed.people_role and instance_tag(LOGIN_TAG)
    served = deployed.people_role if is_login else deployed.job_role
    serve(role(client("sts", deployed.region), served or deployed.job_role))


def _expected(identity: NodeIdentity, records: Path) -> Expected:
    return expected_of(plan_in(records), identity.queue, identity.zone_id)


_ACTS = {
    "node-watch": _watch,
    "node-shutdown": _shutdown,
    "health": _health,
    "prolog": _prolog,
    "health-check": _health_check,
    "rank-order": _rank_order,
    "ecr-password": _ecr_password,
    "credentials": _credentials,
}
