"""What `corral status`, `corral timeline` and `corral down` ask of `corral-agent` on the head, as its own commands.

Each prints one JSON document, a record of `model.head`; what is a failure goes to the log and the exit code.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corral.agent import drain, report, slurm
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, Journal
from corral.agent.keep import STATE
from corral.agent.memory import MEMORY, load
from corral.model.cluster import ClusterPlan
from corral.model.head import NOT_DUMPED, REFUSED
from corral.model.jsons import to_json

Dump = Callable[[argparse.Namespace], None]


def add_commands(commands: Any, read_plan: Callable[[Path], ClusterPlan], records: Path, dump: Dump) -> None:
    """Adds them to a parser's commands. `dump`: writes the accounting to the bucket."""
    state = commands.add_parser("state", help="print jobs, offers that rest, stopped queues and nodes; on the head")
    state.set_defaults(act=lambda chosen: _show(_state(chosen, read_plan)))
    events = commands.add_parser("events", help="print what happened; on the head")
    events.set_defaults(act=lambda chosen: _show(report.events(chosen.since, chosen.start, chosen.state / EVENTS.name)))
    runs = commands.add_parser("history", help="print the runs of jobs; on the head")
    runs.set_defaults(act=lambda chosen: _show(report.history(chosen.since, time.time(), chosen.start)))
    for command in (events, runs):
        command.add_argument("--since", type=float, default=0.0, help="seconds since 1970 (default: all)")
        command.add_argument("--start", type=int, default=0, help="leave out so many")
    drainer = commands.add_parser("drain-all", help="let no job run any more; on the head, before the cluster ends")
    drainer.add_argument("--now", action="store_true", help="also where jobs run: they are asked to save, then ended")
    drainer.add_argument(
        "--grace", type=float, default=drain.GRACE_S, help="seconds that jobs have to save (default: %(default)s)"
    )
    drainer.set_defaults(act=lambda chosen: _drain(chosen, read_plan, dump))
    for command in (state, drainer):
        command.add_argument("--records", type=Path, default=records, help="where cluster.json is")
    for command in (state, events, drainer):
        command.add_argument("--state", type=Path, default=STATE, help="where the keeper's memory and the events are")


def _state(chosen: argparse.Namespace, read_plan: Callable[[Path], ClusterPlan]) -> object:
    queues = [queue.name for queue in read_plan(chosen.records).queues]
    return report.state(queues, slurm.nodes(), load(chosen.state / MEMORY.name), time.time())


def _drain(chosen: argparse.Namespace, read_plan: Callable[[Path], ClusterPlan], dump: Dump) -> None:
    queues = [queue.name for queue in read_plan(chosen.records).queues]
    done = drain.drain(queues, Journal(chosen.state / EVENTS.name), now=chosen.now, grace_s=chosen.grace)
    problem = "" if done.refused else _dumped(dump, chosen)
    _show(done)
    if problem:
        print(problem, file=sys.stderr)  # noqa: T201
    if done.refused:
        sys.exit(REFUSED)


def _dumped(dump: Dump, chosen: argparse.Namespace) -> str:
    """What kept the records of jobs from being written; jobs have ended by now, so this stops nothing."""
    try:
        dump(chosen)
    except (AgentError, OSError) as error:
        return f"{NOT_DUMPED}: {error}"
    return ""


def _show(record: object) -> None:
    print(to_json(record), end="")  # noqa: T201
