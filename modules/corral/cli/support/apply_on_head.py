"""Has an existing head apply the new configuration after a deployment."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from corral.cli.support.remote import SENTENCE, UNKNOWN_COMMAND, CommandResult, HeadUnreachable, head_at
from corral.engine.lifecycle.session import EngineSession
from corral.engine.pulumi.engine_account import Account
from corral.inventory.head_instance import head_of
from corral.model.printable import printable, printable_document
from corral.spec.yaml.environment import Environment

_TIMEOUT_S = 120.0  # slurmctld may restart meanwhile


class HeadConfigUpdate:
    """Created before a deployment, to know the head that existed then."""

    def __init__(self, session: EngineSession, environment: Environment) -> None:
        self._session, self._name = session, environment.cluster.name
        self._account = Account(session.engine.environment, environment.base.region)
        found = head_of(self._account, self._name)
        self._before = found.id if found else None

    def apply(self) -> str | None:
        """Applies the configuration. Prints and returns the outcome; None for a new head, which boots with it."""
        found = head_of(self._account, self._name)
        if found is None or found.id != self._before:
            return None
        environment = self._session.engine.environment
        box = environment.get("CORRAL_BOX_DIR")
        head = head_at(found.id, self._account, environment.get("AWS_ENDPOINT_URL"), Path(box) if box else None)
        try:
            outcome = apply_summary(head.run(("apply", "--json"), _TIMEOUT_S))
        except HeadUnreachable as error:
            if error.idle:  # the head runs no programs: nothing to apply
                return None
            again = f"`corral up {self._name}{self._session.account_option}` tries again"
            outcome = f"the head still has its previous configuration: {error}; {again}"
        self._session.display.write(f"cluster {self._name}: {outcome}")
        return outcome


def apply_summary(answer: CommandResult) -> str:
    """The outcome of an apply, as a sentence."""
    if answer.code == UNKNOWN_COMMAND:
        return "the head's agent is too old to apply a new configuration: replace the head"
    document = printable_document(_document(answer.out))
    if answer.code:
        lines = [printable(line.strip(), SENTENCE) for line in answer.err.splitlines() if line.strip()]
        reason = document.get("reason") or (lines[-1] if lines else f"exit code {answer.code}")
        return f"the head rejected the new configuration: {reason}"
    if document.get("result") == "nothing":
        return "the head already has this configuration"
    pending_removal = ", ".join(document.get("pending_removal") or ())
    return "the head has the new configuration" + (f"; still in use: {pending_removal}" if pending_removal else "")


def _document(text: str) -> dict[str, Any]:
    """The JSON document in the last line of the output; empty if there is none."""
    with contextlib.suppress(ValueError, IndexError):
        found = json.loads(text.strip().splitlines()[-1])
        return found if isinstance(found, dict) else {}
    return {}
