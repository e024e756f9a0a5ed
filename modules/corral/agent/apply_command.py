"""`corral-agent apply`. Its codes: 0 applied or nothing to do, 1 failed, 3 not all uploaded, 4 refused by Slurm."""

import argparse
import dataclasses
import json
import logging
import os
import sys
import time

from corral.agent.alone import alone
from corral.agent.apply import LOCK, Head, Outcome, Result, apply, read_manifest
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, Journal
from corral.agent.hosts import Host, run
from corral.agent.in_use import read_used
from corral.agent.machine import add_facts, boot_facts, host_in, store_of
from corral.agent.renew import renew
from corral.agent.store import Store

CODES = {Result.APPLIED: 0, Result.NOTHING: 0, Result.INCOMPLETE: 3, Result.REFUSED: 4}
_RENEWED = "--renewed"
_OTHER_ENDS_IN_S = 120.0

log = logging.getLogger("corral.agent")


class BusyError(AgentError):
    """Another apply runs."""


def add_words(parser: argparse.ArgumentParser, _: str) -> None:
    """The options of the command."""
    add_facts(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(_RENEWED, action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(act=_apply)


def _apply(chosen: argparse.Namespace) -> None:
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    # Not of the records: those that are there are an older agent's, which this one may not be able to read.
    store, host = store_of(chosen), host_in(boot_facts(chosen.facts).region)
    until = time.monotonic() + _OTHER_ENDS_IN_S
    while not _locked(chosen, store, host):
        if time.monotonic() > until:
            raise BusyError(f"another apply has not ended after {_OTHER_ENDS_IN_S:.0f} s")
        time.sleep(1)


def _locked(chosen: argparse.Namespace, store: Store, host: Host) -> bool:
    """True when it is done; False where another one does it now."""
    with alone(LOCK) as first:
        if not first:
            return False
        # The newer configuration is for the newer agent, which therefore goes on by itself.
        if not chosen.renewed and _renew(chosen, store):
            arguments = [sys.executable, "-m", "corral.agent", "apply", _RENEWED, *(["--json"] if chosen.json else [])]
            os.execv(sys.executable, [*arguments, "--facts", str(chosen.facts)])
        head = Head(host=host, run=run, used=lambda: read_used(run), journal=Journal(EVENTS), renewed=chosen.renewed)
        outcome = apply(store, head)
    print(as_json(outcome) if chosen.json else as_text(outcome))  # noqa: T201
    if code := CODES[outcome.result]:
        sys.exit(code)
    return True


def as_json(outcome: Outcome) -> str:
    """One document: result, changed, steps, leaving, why."""
    return json.dumps(dataclasses.asdict(outcome))


def as_text(outcome: Outcome) -> str:
    """One line for people."""
    match outcome.result:
        case Result.NOTHING:
            said = "nothing has changed"
        case Result.APPLIED:
            said = f"applied: {', '.join(outcome.changed) or 'the agent'}; {', '.join(outcome.steps) or 'nothing more'}"
        case Result.INCOMPLETE:
            said = f"not all of it is there: {outcome.why}"
        case Result.REFUSED:
            said = f"refused, the former configuration stays: {outcome.why}"
    return f"{said}; still in use: {', '.join(outcome.leaving)}" if outcome.leaving else said


def _renew(chosen: argparse.Namespace, store: Store) -> bool:
    if chosen.store:
        return False
    return renew(store, boot_facts(chosen.facts), read_manifest(store))
