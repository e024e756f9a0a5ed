"""Refuses to adopt what is tagged as a base's data and is not provably its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.engine.engine_errors import REFUSED, EngineError
from corral.engine.lifecycle.session import stack_account
from corral.engine.pulumi.stack import Stack
from corral.model.base import key_alias
from corral.model.tags import KEEP_TAG


def refuse_unproven_data(stack: Stack, state: Mapping[str, Any] | None) -> None:
    """Raises EngineError if a resource outside the base's state has its keep tag and is not the base's own.

    The program adopts proven resources alone. It would create a second one next to this, which is rarely meant.
    """
    from corral.inventory.kept_proof import unproven

    resources = ((state or {}).get("deployment") or {}).get("resources") or []
    known = frozenset(str(one["id"]) for one in resources if one.get("id"))
    found = tuple(unproven(stack_account(stack), stack.name, known))
    if not found:
        return
    texts = [f"{arn}: {problem}" for arn, problem in found]
    sentence = f"{stack.title}: tagged as data of an earlier {stack.title}, but not its own: {'; '.join(texts)}"
    hints = (
        f"if this is not yours, find out who tagged it and remove its tag {KEEP_TAG}",
        f"if its key is yours: aws kms create-alias --alias-name {key_alias(stack.name)} --target-key-id KEY",
    )
    raise EngineError(sentence, hints, REFUSED)
