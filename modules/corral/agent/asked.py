"""What `corral status`, `corral timeline` and `corral down` ask of `corral-agent` on the head, as its own commands.

Each prints one JSON document, a record of `model.head`; what is a failure goes to the log and the exit code.
"""

import argparse
import sys
import time

from corral.agent import drain, report, slurm
from corral.agent.events import EVENTS, Journal
from corral.agent.head_commands import add_state, unsaved
from corral.agent.machine import add_records, plan_in
from corral.agent.memory import MEMORY, load
from corral.agent.signs import keeping, silent
from corral.model.head import REFUSED
from corral.model.jsons import to_json

# `corral status` waits 8 s for all, and Slurm's own programs up to a minute for a slurmctld that is not there.
_HEARS_S = 3.0


def add_words(parser: argparse.ArgumentParser, command: str) -> None:
    """The options of a command."""
    parser.set_defaults(act=_ACTS[command])
    if command in ("events", "history"):
        parser.add_argument("--since", type=float, default=0.0, help="seconds since 1970 (default: all)")
        parser.add_argument("--start", type=int, default=0, help="leave out so many")
    else:
        add_records(parser)
    if command != "history":
        add_state(parser)
    if command == "drain-all":
        parser.add_argument(
            "--now", action="store_true", help="also where jobs run: they are asked to save, then ended"
        )
        text = "seconds that jobs have to save (default: %(default)s)"
        parser.add_argument("--grace", type=float, default=drain.GRACE_S, help=text)


def _state(chosen: argparse.Namespace) -> None:
    if not slurm.hears(_HEARS_S):
        raise slurm.SlurmError(silent())
    held = load(chosen.state / MEMORY.name)
    _show(report.state(plan_in(chosen.records).queues, slurm.nodes(), held, time.time(), keeping()))


def _events(chosen: argparse.Namespace) -> None:
    _show(report.events(chosen.since, chosen.start, chosen.state / EVENTS.name))


def _history(chosen: argparse.Namespace) -> None:
    _show(report.history(chosen.since, time.time(), chosen.start))


def _drain_all(chosen: argparse.Namespace) -> None:
    journal = Journal(chosen.state / EVENTS.name)
    done = drain.drain(_queues(chosen), journal, now=chosen.now, grace_s=chosen.grace)
    problems = () if done.refused else unsaved(chosen)  # jobs have ended by now, so these stop nothing
    _show(done)
    for problem in problems:
        print(problem, file=sys.stderr)  # noqa: T201
    if done.refused:
        sys.exit(REFUSED)


def _queues(chosen: argparse.Namespace) -> list[str]:
    return [queue.name for queue in plan_in(chosen.records).queues]


def _show(record: object) -> None:
    print(to_json(record), end="")  # noqa: T201


_ACTS = {"state": _state, "events": _events, "history": _history, "drain-all": _drain_all}
