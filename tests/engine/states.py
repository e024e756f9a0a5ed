"""Builders of exported states and engine events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ROOT = "urn:pulumi:dev::corral-base"


def urn(token: str, name: str) -> str:
    """The URN of a resource without a parent."""
    return f"{ROOT}::{token}::{name}"


def resource(token: str, name: str, **more: Any) -> dict[str, Any]:
    """A resource of a state."""
    return {"urn": urn(token, name), "type": token, "custom": True, **more}


def state(*resources: dict[str, Any], creating: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """An exported state with these resources and pending creations."""
    pending = [{"type": "creating", "resource": one} for one in creating]
    return {"version": 3, "deployment": {"resources": list(resources), "pending_operations": pending}}


def step(kind: str, operation: str, token: str, name: str, **more: Any) -> dict[str, Any]:
    """An event of the engine about one resource."""
    planning = more.pop("planning", False)
    metadata = {"op": operation, "urn": urn(token, name), "type": token, "old": None, "new": None, **more}
    return {"sequence": 1, kind: {"metadata": metadata, "planning": planning}}
