"""`corral-agent apply`. Exit codes: 0 applied or nothing to do, 1 failed, 3 upload incomplete, 4 refused by Slurm."""

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from corral.agent.accounting.slurm_accounts import SlurmAccounts
from corral.agent.config.apply import (
    EXIT_CODES,
    LOCK,
    ApplyContext,
    ApplyOutcome,
    ApplyResult,
    apply_config,
)
from corral.agent.config.merge import InUse
from corral.agent.config.self_update import update_agent
from corral.agent.config.signed_manifest import seen_version
from corral.agent.config_store import ManifestStore
from corral.agent.directory import restart_directory
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, EventLog
from corral.agent.host.base import Host, run
from corral.agent.process_lock import exclusive
from corral.agent.runtime_context import add_facts, boot_facts, client, host_in, store_of
from corral.agent.slurm import lines, read_node

_RENEWED = "--renewed"
_OTHER_ENDS_IN_S = 120.0


class BusyError(AgentError):
    """Another apply runs."""


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of the command."""
    add_facts(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(_RENEWED, action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(act=_apply)


def _apply(chosen: argparse.Namespace) -> None:
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    # From the boot facts: an older agent wrote the records, which this one may not be able to read.
    region = boot_facts(chosen.facts).region
    store, host = store_of(chosen, seen_version()), host_in(region)
    until = time.monotonic() + _OTHER_ENDS_IN_S
    while not _apply_locked(chosen, store, host, region):
        if time.monotonic() > until:
            raise BusyError(f"another apply still runs after {_OTHER_ENDS_IN_S:.0f} s - try again later")
        time.sleep(1)


def _apply_locked(chosen: argparse.Namespace, store: ManifestStore, host: Host, region: str) -> bool:
    """Apply under the lock. False if another apply holds it."""
    with exclusive(LOCK) as first:
        if not first:
            return False
        # The newer agent continues: only it can read the newer configuration.
        if not chosen.renewed and _update_agent(chosen, store):
            os.execv(sys.executable, [*sys.orig_argv, _RENEWED])
        journal = EventLog(EVENTS)
        context = ApplyContext(
            host=host,
            run=run,
            used=lambda: read_in_use(run),
            journal=journal,
            sync_accounts=SlurmAccounts(run, journal).sync,
            sync_directory=partial(
                restart_directory, host=host, secrets=client("secretsmanager", region), lists_everybody=True
            ),
            renewed=chosen.renewed,
        )
        outcome = apply_config(store, context)
    print(as_json(outcome) if chosen.json else as_text(outcome))  # noqa: T201
    if code := EXIT_CODES[outcome.result]:
        sys.exit(code)
    return True


def as_json(outcome: ApplyOutcome) -> str:
    """The outcome as one JSON document: result, changed, steps, pending_removal, reason."""
    return json.dumps(dataclasses.asdict(outcome))


def as_text(outcome: ApplyOutcome) -> str:
    """The outcome as one line."""
    match outcome.result:
        case ApplyResult.NOTHING:
            text = "nothing has changed"
        case ApplyResult.APPLIED:
            text = f"applied: {', '.join(outcome.changed) or 'the agent'}; {', '.join(outcome.steps) or 'nothing more'}"
        case ApplyResult.INCOMPLETE:
            text = f"incomplete: {outcome.reason}"
        case ApplyResult.REFUSED:
            text = f"refused, the former configuration stays: {outcome.reason}"
    return f"{text}; still in use: {', '.join(outcome.pending_removal)}" if outcome.pending_removal else text


def _update_agent(chosen: argparse.Namespace, store: ManifestStore) -> bool:
    if chosen.store:
        return False
    return update_agent(store, boot_facts(chosen.facts), store.manifest())


def read_in_use(run: Callable[[Sequence[str]], str]) -> InUse:
    """The nodes that have a machine or soon will, and the queues that have jobs. Raises HostError."""
    nodes = (read_node(line) for line in lines(run(("scontrol", "--all", "--oneliner", "show", "nodes"))))
    queues = run(("squeue", "--all", "--noheader", "--format=%P")).replace(",", "\n").split()
    return InUse(
        nodes=frozenset(node.name for node in nodes if "POWERED_DOWN" not in node.states),
        queues=frozenset(queues),
    )
