"""The engine's events as frozen records, one class for each kind. Pure; `progress_display` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Operation(StrEnum):
    """What is done to a resource; the value is displayed."""

    CREATED = "created"
    UPDATED = "updated"
    REPLACED = "replaced"
    DELETED = "deleted"
    RETAINED = "retained"
    IMPORTED = "imported"
    MISSING = "missing"
    DRIFTED = "drifted"
    CHECKED = "checked"
    SAME = "same"

    @property
    def doing(self) -> str:
        """The word for an operation in progress."""
        return _DOING[self]

    @property
    def verb(self) -> str:
        """The word for a planned operation."""
        return _VERBS.get(self, self.value)

    @property
    def is_change(self) -> bool:
        """True if something in the cloud differs or changes."""
        return self not in (Operation.SAME, Operation.CHECKED)

    @property
    def is_drift(self) -> bool:
        """True if the cloud was changed outside of Pulumi: only the state is updated."""
        return self in (Operation.MISSING, Operation.DRIFTED)


_DOING = {
    Operation.CREATED: "creating",
    Operation.UPDATED: "updating",
    Operation.REPLACED: "replacing",
    Operation.DELETED: "deleting",
    Operation.RETAINED: "retaining",
    Operation.IMPORTED: "importing",
    Operation.MISSING: "missing",
    Operation.DRIFTED: "recording",
    Operation.CHECKED: "checking",
    Operation.SAME: "comparing",
}
_VERBS = {
    Operation.CREATED: "create",
    Operation.UPDATED: "update",
    Operation.REPLACED: "replace",
    Operation.DELETED: "delete",
    Operation.RETAINED: "retain",
    Operation.IMPORTED: "import",
}
# Pulumi's operations (sdk/go/common/apitype/updates.go). A replacement has three steps. Its `replace` step changes
# nothing in the cloud: creation and deletion are shown, and `replace` is counted.
_OPERATIONS = {
    "create": Operation.CREATED,
    "create-replacement": Operation.REPLACED,
    "replace": Operation.REPLACED,
    "update": Operation.UPDATED,
    "delete": Operation.DELETED,
    "delete-replaced": Operation.DELETED,
    "discard": Operation.DELETED,
    "discard-replaced": Operation.DELETED,
    "read": Operation.CHECKED,
    "refresh": Operation.CHECKED,
    "import": Operation.IMPORTED,
    "import-replacement": Operation.IMPORTED,
    "same": Operation.SAME,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StackResource:
    """A resource of a stack, with a short type for display."""

    urn: str
    type: str
    name: str

    @property
    def is_internal(self) -> bool:
        """True for components, providers and the stack itself, which do not exist in the cloud."""
        return self.type.startswith(("corral:", "pulumi:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyDiff:
    """The change of a resource: Pulumi's diff kind by property path; inputs before and after; outputs before."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    old: Mapping[str, Any] = field(default_factory=dict)
    new: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """A step on a resource begins. Previews report only this."""

    resource: StackResource
    operation: Operation
    step_op: str
    planning: bool
    diff: PropertyDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """A step on a resource succeeded. `outputs`: those of the stack, if the resource is the stack itself."""

    resource: StackResource
    operation: Operation
    step_op: str
    planning: bool
    outputs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFailed:
    """A step on a resource failed; a Diagnostic has the reason.

    `creation`: the resource as a state holds it, if the step was a creation that may have succeeded in the cloud.
    """

    resource: StackResource
    operation: Operation
    creation: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A warning or an error about a resource or the whole stack."""

    severity: str
    text: str
    resource: StackResource | None


ProgressEvent = StepStarted | StepDone | StepFailed | Diagnostic


def parse_event(event: Mapping[str, Any]) -> ProgressEvent | None:
    """The record of an engine event (apitype.EngineEvent); None for events that are not shown."""
    match event:
        case {"resourcePreEvent": {"metadata": step} as body}:
            return StepStarted(**_step(step, body), diff=_differences(step))
        case {"resOutputsEvent": {"metadata": step} as body}:
            return _step_done(step, body)
        case {"resOpFailedEvent": {"metadata": step}}:
            return StepFailed(resource=parse_urn(step["urn"]), operation=_operation(step), creation=_creation(step))
        case {"diagnosticEvent": {"severity": "error" | "warning" as severity, "message": text} as body}:
            about = body.get("urn")
            return Diagnostic(severity=severity, text=str(text), resource=parse_urn(about) if about else None)
    return None


def parse_urn(urn: str) -> StackResource:
    """The resource of this URN (urn:pulumi:STACK::PROJECT::PARENT$TYPE::NAME)."""
    parts = urn.split("::", 3)
    type_token, name = (parts[2].rpartition("$")[2], parts[3]) if len(parts) == 4 else ("", urn)
    return StackResource(urn=urn, type=_short(type_token), name=name)


def _short(token: str) -> str:
    """aws:ec2/vpc:Vpc -> aws:ec2:Vpc, as the engine's own display shows it."""
    package, _, rest = token.partition(":")
    module, _, member = rest.partition(":")
    return f"{package}:{module.partition('/')[0]}:{member}" if member else token


def _step_done(step: Mapping[str, Any], body: Mapping[str, Any]) -> StepDone:
    facts, new = _step(step, body), step.get("new")
    if step["op"] == "refresh" and facts["resource"].type.startswith("aws:"):
        facts["operation"] = (
            Operation.MISSING if new is None else Operation.DRIFTED if step.get("detailedDiff") else Operation.CHECKED
        )
    is_stack = step["type"] == "pulumi:pulumi:Stack"
    return StepDone(**facts, outputs=(new or {}).get("outputs") if is_stack else None)


def _step(step: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "resource": parse_urn(step["urn"]),
        "operation": _operation(step),
        "step_op": step["op"],
        "planning": bool(body.get("planning")),
    }


def _creation(step: Mapping[str, Any]) -> dict[str, Any] | None:
    new = step.get("new") or {}
    if step["op"] not in ("create", "create-replacement") or not step["type"].startswith("aws:"):
        return None
    fields = {key: new[key] for key in ("parent", "provider", "inputs", "protect", "retainOnDelete") if new.get(key)}
    return {"urn": step["urn"], "type": step["type"], "custom": True, **fields}


def _operation(step: Mapping[str, Any]) -> Operation:
    operation = _OPERATIONS.get(step["op"], Operation.CHECKED)
    old = step.get("old") or {}
    return Operation.RETAINED if operation is Operation.DELETED and old.get("retainOnDelete") else operation


def _differences(step: Mapping[str, Any]) -> PropertyDiff:
    old, new = step.get("old") or {}, step.get("new") or {}
    detailed: Mapping[str, Mapping[str, str]] = step.get("detailedDiff") or {}
    kinds = {path: one.get("diffKind", "update") for path, one in sorted(detailed.items())}
    named: Sequence[str] = step.get("diffs") or ()
    return PropertyDiff(
        kinds=kinds or dict.fromkeys(sorted(named), "update"),
        old=old.get("inputs") or {},
        new=new.get("inputs") or {},
        outputs=old.get("outputs") or {},
    )
