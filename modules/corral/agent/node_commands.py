"""The commands of `corral-agent` on a node; `credentials` runs on the head too."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from corral.agent.health import check
from corral.agent.health.judge import Expected, expected_of
from corral.agent.identity import own_identity
from corral.agent.machine import add_records, boot_facts, client, host_in, plan_in, probe, records_in
from corral.model.deployed import Deployed
from corral.model.jsons import from_json
from corral.model.node_names import queue_of


def add_words(parser: argparse.ArgumentParser, command: str) -> None:
    """The options of a command."""
    if command == "health":
        depth = parser.add_mutually_exclusive_group(required=True)
        depth.add_argument("--quick", action="store_true", help="at most five seconds: devices, mounts, clock")
        depth.add_argument(
            "--deep", action="store_true", help="minutes: NVLinks, Xids, DCGM at level 2; no job may run"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document")
    if command not in ("watch", "ranks"):
        add_records(parser)
    parser.set_defaults(act=_ACTS[command])


def _watch(_: argparse.Namespace) -> None:
    from corral.agent.pulse import Heart, answers, has_step, latest
    from corral.agent.watch import watch

    plan, deployed = records_in()
    facts = boot_facts()

    def newest() -> str | None:
        """Asked of the bucket: a machine may be older than its cluster's `corral extend`."""
        from corral.agent.s3 import BucketStore

        return from_json(Deployed, BucketStore(facts).read("deployed.json").decode()).ends_at

    heart = Heart(
        hears=partial(answers, str(plan.head.address)),
        working=has_step,
        ends_at=partial(latest, newest, deployed.ends_at),
        power_off=host_in(deployed.region).power_off,
    )
    watch(own_identity(), heart.beat)


def _health(chosen: argparse.Namespace) -> None:
    identity = own_identity()
    expected = _expected(identity.queue, chosen.records)
    if chosen.deep:
        check.check_without_job(identity.node)
    found = (check.deep if chosen.deep else check.quick)(expected, probe())
    print(check.as_json(found) if chosen.json else check.as_text(found))  # noqa: T201
    if any(one.is_sick for one in found):
        raise check.HealthError(f"{identity.node} is not fit for jobs")


def _prolog(chosen: argparse.Namespace) -> None:
    node = os.environ.get("SLURMD_NODENAME") or own_identity().node
    check.prolog(node, _expected(queue_of(node), chosen.records), probe())


def _health_check(chosen: argparse.Namespace) -> None:
    identity = own_identity()
    check.check_idle(identity.node, _expected(identity.queue, chosen.records), probe())


def _ranks(_: argparse.Namespace) -> None:
    from corral.agent.topology import paths_of, rank_order

    print("\n".join(rank_order(paths_of(sys.stdin.read().split()))))  # noqa: T201


def _credentials(chosen: argparse.Namespace) -> None:
    from corral.agent.credentials import role, serve

    _, deployed = records_in(chosen.records)
    serve(role(client("sts", deployed.region), deployed.job_role))


def _expected(queue: str, records: Path) -> Expected:
    return expected_of(plan_in(records), queue)


_ACTS = {
    "watch": _watch,
    "health": _health,
    "prolog": _prolog,
    "health-check": _health_check,
    "ranks": _ranks,
    "credentials": _credentials,
}
