"""What an up brings to a head that was there before: its agent applies the new configuration."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from corral.cli.on_head import AGENT, UNKNOWN_COMMAND, Answer, Unreachable, head_at
from corral.engine.account import Account
from corral.engine.workplace import Workplace
from corral.inventory.heads import head_of
from corral.spec.files import Environment

_WITHIN_S = 120.0  # slurmctld may restart meanwhile


class Applying:
    """Made before an up, so that it knows which head was there."""

    def __init__(self, place: Workplace, environment: Environment) -> None:
        self._place, self._name = place, environment.cluster.name
        self._account = Account(place.engine.environment, environment.base.region)
        found = head_of(self._account, self._name)
        self._before = found.id if found else None

    def apply(self) -> str | None:
        """What the head said, which is shown too; None where the head is new, so that it boots with all of it."""
        found = head_of(self._account, self._name)
        if found is None or found.id != self._before:
            return None
        environment = self._place.engine.environment
        box = environment.get("CORRAL_BOX_DIR")
        head = head_at(found.id, self._account, environment.get("AWS_ENDPOINT_URL"), Path(box) if box else None)
        try:
            told = told_of(head.run((AGENT, "apply", "--json"), _WITHIN_S))
        except Unreachable as error:
            if error.idle:  # no machine, nothing to bring to it
                return None
            again = f"`corral up {self._name}{self._place.account_option}` tries again"
            told = f"the head still has its former configuration: {error}; {again}"
        self._place.printer.say(f"cluster {self._name}: {told}")
        return told


def told_of(answer: Answer) -> str:
    """What an apply said, as a sentence."""
    if answer.code == UNKNOWN_COMMAND:
        return "the head's agent is older than this command and cannot apply a new configuration: replace the head"
    said = _document(answer.out)
    if answer.code:
        lines = [line.strip() for line in answer.err.splitlines() if line.strip()]
        why = said.get("why") or (lines[-1] if lines else f"exit code {answer.code}")
        return f"the head did not take the new configuration: {why}"
    if said.get("result") == "nothing":
        return "the head has this configuration already"
    leaving = ", ".join(said.get("leaving") or ())
    return "the head has the new configuration" + (f"; still in use: {leaving}" if leaving else "")


def _document(text: str) -> dict[str, Any]:
    """What the head printed last, if that is a document."""
    with contextlib.suppress(ValueError, IndexError):
        found = json.loads(text.strip().splitlines()[-1])
        return found if isinstance(found, dict) else {}
    return {}
