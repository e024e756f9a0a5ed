"""The commands of `corral-agent` on the head that answer `corral status`, `corral timeline` and `corral down`.

Each prints one JSON document, a record of `model.head_report`; failures go to the log and the exit code.
"""

import argparse
import sys
import time

from corral.agent import head_status, slurm
from corral.agent.autoscaler.liveness import autoscaler_status, slurmctld_problem
from corral.agent.cluster.state import STATE_FILE, load_state
from corral.agent.commands.head import add_state_dir, save_to_bucket
from corral.agent.events import EVENTS, EventLog
from corral.agent.runtime_context import add_records, plan_in
from corral.agent.shutdown import drain
from corral.model.head_report import DRAIN_REFUSED_EXIT
from corral.model.serialization import to_json

# `corral status` waits 8 s in all, and Slurm's own programs up to a minute for a missing slurmctld.
_RESPONDS_WITHIN_S = 3.0


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a command."""
    parser.set_defaults(act=_ACTS[command])
    if command in ("events", "history"):
        parser.add_argument("--since", type=float, default=0.0, help="seconds since 1970 (default: all)")
        parser.add_argument("--start", type=int, default=0, help="number of entries to skip (default: 0)")
    else:
        add_records(parser)
    if command != "history":
        add_state_dir(parser)
    if command == "drain-all":
        parser.add_argument("--now", action="store_true", help="checkpoint and stop running jobs first")
        text = "seconds for jobs to save a checkpoint (default: %(default)s)"
        parser.add_argument("--grace", type=float, default=drain.GRACE_S, help=text)


def _status(chosen: argparse.Namespace) -> None:
    if not slurm.responds(_RESPONDS_WITHIN_S):
        raise slurm.SlurmError(slurmctld_problem())
    held = load_state(chosen.state_dir / STATE_FILE.name)
    _show(head_status.head_state(plan_in(chosen.records).queues, slurm.nodes(), held, time.time(), autoscaler_status()))


def _events(chosen: argparse.Namespace) -> None:
    _show(head_status.event_page(chosen.since, chosen.start, chosen.state_dir / EVENTS.name))


def _history(chosen: argparse.Namespace) -> None:
    _show(head_status.job_run_page(chosen.since, time.time(), chosen.start))


def _drain_all(chosen: argparse.Namespace) -> None:
    journal = EventLog(chosen.state_dir / EVENTS.name)
    done = drain.drain_before_down(_queues(chosen), journal, now=chosen.now, grace_s=chosen.grace)
    problems = () if done.refused else save_to_bucket(chosen)  # only report them: jobs have already ended
    _show(done)
    for problem in problems:
        print(problem, file=sys.stderr)  # noqa: T201
    if done.refused:
        sys.exit(DRAIN_REFUSED_EXIT)


def _queues(chosen: argparse.Namespace) -> list[str]:
    return [queue.name for queue in plan_in(chosen.records).queues]


def _show(record: object) -> None:
    print(to_json(record), end="")  # noqa: T201


_ACTS = {"status": _status, "events": _events, "history": _history, "drain-all": _drain_all}
