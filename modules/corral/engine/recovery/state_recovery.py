"""Repairs the state of an interrupted engine: inserts resources that it may have created. Pure.

A killed engine leaves pending operations in its state. An engine that lost the response to a creation forgets it;
corral records it and adds it to the pending operations. A resource that was being updated, read or deleted is in the
state, and a refresh finds out what happened to it. A resource that was being created is not in the state: it is
inserted with each id that it may have, and the refresh of the next update drops those that do not exist. So no resource
is lost, and none is created twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Resource = Mapping[str, Any]
Lookup = Callable[[Resource], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The repaired state, the number of pending operations, and the ids inserted for creations among them."""

    state: Mapping[str, Any]
    unfinished: int
    inserted: tuple[tuple[Resource, tuple[str, ...]], ...]

    @property
    def found(self) -> int:
        """The number of inserted ids."""
        return sum(len(ids) for _, ids in self.inserted)


def is_unfinished(state: Mapping[str, Any] | None) -> bool:
    """True if the state has pending operations of a killed engine."""
    return bool(state and state.get("deployment", {}).get("pending_operations"))


def recover(state: Mapping[str, Any], lookup: Lookup) -> Recovered:
    """The state without pending operations, plus the resources that they may have created."""
    deployment = state["deployment"]
    resources: list[dict[str, Any]] = [dict(one) for one in deployment.get("resources") or []]
    operations = deployment.get("pending_operations") or []
    creations = [one["resource"] for one in operations if _is_creation(one)]
    entered: list[tuple[Resource, tuple[str, ...]]] = []
    for resource in creations:
        known = {one.get("id") for one in resources if one["type"] == resource["type"]}
        ids = tuple(id for id in lookup(resource) if id not in known)
        entered.append((resource, ids))
        for number, id in enumerate(ids):
            _insert(resources, {**resource, "id": id, "outputs": resource.get("inputs") or {}}, is_spare=number > 0)
    whole = {**deployment, "resources": resources, "pending_operations": []}
    return Recovered(state={**state, "deployment": whole}, unfinished=len(operations), inserted=tuple(entered))


def with_creations(state: Mapping[str, Any], creations: Sequence[Resource]) -> dict[str, Any]:
    """The state with these creations added to its pending operations, without duplicates."""
    deployment = state["deployment"]
    operations = list(deployment.get("pending_operations") or [])
    known = {one["resource"]["urn"] for one in operations}
    operations += [{"type": "creating", "resource": one} for one in creations if one["urn"] not in known]
    return {**state, "deployment": {**deployment, "pending_operations": operations}}


def _is_creation(operation: Mapping[str, Any]) -> bool:
    resource = operation["resource"]
    return operation["type"] == "creating" and bool(resource.get("custom")) and resource["type"].startswith("aws:")


def _insert(resources: list[dict[str, Any]], new: dict[str, Any], *, is_spare: bool) -> None:
    """Inserts the new resource; marks one that it replaces, or a spare one, for deletion."""
    if is_spare:
        resources.append({**new, "delete": True, "protect": False})
        return
    indices = [index for index, one in enumerate(resources) if one["urn"] == new["urn"] and not one.get("delete")]
    if not indices:
        resources.append(new)
        return
    old, resources[indices[0]] = resources[indices[0]], new
    if not old.get("pendingReplacement"):  # otherwise it is deleted already
        resources.append({**old, "delete": True})
