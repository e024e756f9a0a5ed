"""A state whose engine was killed, made whole: what was being created is put into it where the cloud may hold it. Pure.

A killed engine leaves operations that were under way in its state. A living one forgets a creation whose answer was
lost, to a cut connection or an interrupt: it is entered beside them. For operations that change, read or delete
something the resource is in the state and a refresh tells what became of it. A resource that was being created is
nowhere: it is entered here under each id by which it could exist, and the refresh at the beginning of the next update
drops those that do not. Nothing that was made is lost, and nothing is made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Resource = Mapping[str, Any]
Lookup = Callable[[Resource], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The whole state, how many operations were under way, and the ids that were found for creations among them."""

    state: Mapping[str, Any]
    unfinished: int
    entered: tuple[tuple[Resource, tuple[str, ...]], ...]

    @property
    def found(self) -> int:
        """How many ids were found."""
        return sum(len(ids) for _, ids in self.entered)


def is_unfinished(state: Mapping[str, Any] | None) -> bool:
    """True if an engine was killed while it worked on this state."""
    return bool(state and state.get("deployment", {}).get("pending_operations"))


def recover(state: Mapping[str, Any], lookup: Lookup) -> Recovered:
    """The state without unfinished operations, and with what they may have made."""
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
            _enter(resources, {**resource, "id": id, "outputs": resource.get("inputs") or {}}, is_spare=number > 0)
    whole = {**deployment, "resources": resources, "pending_operations": []}
    return Recovered(state={**state, "deployment": whole}, unfinished=len(operations), entered=tuple(entered))


def with_creations(state: Mapping[str, Any], creations: Sequence[Resource]) -> dict[str, Any]:
    """The state with these creations as under way, save those that it knows as such."""
    deployment = state["deployment"]
    operations = list(deployment.get("pending_operations") or [])
    known = {one["resource"]["urn"] for one in operations}
    operations += [{"type": "creating", "resource": one} for one in creations if one["urn"] not in known]
    return {**state, "deployment": {**deployment, "pending_operations": operations}}


def _is_creation(operation: Mapping[str, Any]) -> bool:
    resource = operation["resource"]
    return operation["type"] == "creating" and bool(resource.get("custom")) and resource["type"].startswith("aws:")


def _enter(resources: list[dict[str, Any]], new: dict[str, Any], *, is_spare: bool) -> None:
    """Puts the new resource where it belongs; one that it replaces, and a spare one, are left to be deleted."""
    if is_spare:
        resources.append({**new, "delete": True, "protect": False})
        return
    places = [at for at, one in enumerate(resources) if one["urn"] == new["urn"] and not one.get("delete")]
    if not places:
        resources.append(new)
        return
    old, resources[places[0]] = resources[places[0]], new
    if not old.get("pendingReplacement"):  # else it is gone already
        resources.append({**old, "delete": True})
