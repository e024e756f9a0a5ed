"""What an engine tells while it works, as frozen records: one class a kind of news. Pure; `printers` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Deed(StrEnum):
    """What is done to a resource; the value is the past participle that people read."""

    CREATED = "created"
    UPDATED = "updated"
    REPLACED = "replaced"
    DELETED = "deleted"
    KEPT = "kept"
    FOUND = "found"
    GONE = "gone"
    DRIFTED = "drifted"
    CHECKED = "checked"
    SAME = "same"

    @property
    def doing(self) -> str:
        """The same while it lasts."""
        return _DOING[self]

    @property
    def verb(self) -> str:
        """What would be done."""
        return _VERBS.get(self, self.value)

    @property
    def is_change(self) -> bool:
        """True if something in the cloud is or becomes different."""
        return self not in (Deed.SAME, Deed.CHECKED)

    @property
    def is_news(self) -> bool:
        """True if somebody else changed the cloud: the state learns it, nothing is done."""
        return self in (Deed.GONE, Deed.DRIFTED)


_DOING = {
    Deed.CREATED: "creating",
    Deed.UPDATED: "updating",
    Deed.REPLACED: "replacing",
    Deed.DELETED: "deleting",
    Deed.KEPT: "letting go",
    Deed.FOUND: "taking over",
    Deed.GONE: "missing",
    Deed.DRIFTED: "taking note of",
    Deed.CHECKED: "checking",
    Deed.SAME: "looking at",
}
_VERBS = {
    Deed.CREATED: "create",
    Deed.UPDATED: "update",
    Deed.REPLACED: "replace",
    Deed.DELETED: "delete",
    Deed.KEPT: "let go",
    Deed.FOUND: "take over",
}
# Pulumi's operations (sdk/go/common/apitype/updates.go). A replacement is three steps; its `replace` step does nothing
# in the cloud, so the creation and the deletion carry the news and `replace` the count.
_DEEDS = {
    "create": Deed.CREATED,
    "create-replacement": Deed.REPLACED,
    "replace": Deed.REPLACED,
    "update": Deed.UPDATED,
    "delete": Deed.DELETED,
    "delete-replaced": Deed.DELETED,
    "discard": Deed.DELETED,
    "discard-replaced": Deed.DELETED,
    "read": Deed.CHECKED,
    "refresh": Deed.CHECKED,
    "import": Deed.FOUND,
    "import-replacement": Deed.FOUND,
    "same": Deed.SAME,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A resource of a stack, named as people know it."""

    urn: str
    type: str
    name: str

    @property
    def is_ours(self) -> bool:
        """True for what groups resources: nothing happens to it in the cloud."""
        return self.type.startswith(("corral:", "pulumi:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """How a resource would differ: property path to Pulumi's kind of difference, and the inputs before and after."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    old: Mapping[str, Any] = field(default_factory=dict)
    new: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The engine turns to a resource. In a preview this is all that is told."""

    subject: Subject
    deed: Deed
    operation: str
    planning: bool
    differences: Differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A resource is as it should be. `outputs` are those of the whole stack, where this is the stack itself."""

    subject: Subject
    deed: Deed
    operation: str
    planning: bool
    outputs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A resource could not be brought about; the reason is told apart.

    `creation`: the resource as a state would hold it, where one of the cloud was to be made and may have been.
    """

    subject: Subject
    deed: Deed
    creation: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A warning or an error, of a resource or of the whole stack."""

    severity: str
    text: str
    subject: Subject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How many resources had which operation."""

    counts: Mapping[str, int]


ProgressEvent = Begun | Ended | Failed | Said | Summary


def progress_event(event: Mapping[str, Any]) -> ProgressEvent | None:
    """The record of one of the engine's events (apitype.EngineEvent); None for what nobody waits to hear."""
    match event:
        case {"resourcePreEvent": {"metadata": step} as news}:
            return Begun(**_step(step, news), differences=_differences(step))
        case {"resOutputsEvent": {"metadata": step} as news}:
            return _ended(step, news)
        case {"resOpFailedEvent": {"metadata": step}}:
            return Failed(subject=subject(step["urn"]), deed=_deed(step), creation=_creation(step))
        case {"diagnosticEvent": {"severity": "error" | "warning" as severity, "message": text} as news}:
            about = news.get("urn")
            return Said(severity=severity, text=str(text), subject=subject(about) if about else None)
        case {"summaryEvent": {"resourceChanges": counts}}:
            return Summary(counts=counts or {})
    return None


def subject(urn: str) -> Subject:
    """The resource of this URN (urn:pulumi:STACK::PROJECT::PARENT$TYPE::NAME)."""
    parts = urn.split("::", 3)
    type_token, name = (parts[2].rpartition("$")[2], parts[3]) if len(parts) == 4 else ("", urn)
    return Subject(urn=urn, type=_short(type_token), name=name)


def _short(token: str) -> str:
    """aws:ec2/vpc:Vpc -> aws:ec2:Vpc, as the engine's own display has it."""
    package, _, rest = token.partition(":")
    module, _, member = rest.partition(":")
    return f"{package}:{module.partition('/')[0]}:{member}" if member else token


def _ended(step: Mapping[str, Any], news: Mapping[str, Any]) -> Ended:
    facts, new = _step(step, news), step.get("new")
    if step["op"] == "refresh" and facts["subject"].type.startswith("aws:"):
        facts["deed"] = Deed.GONE if new is None else Deed.DRIFTED if step.get("detailedDiff") else Deed.CHECKED
    is_stack = step["type"] == "pulumi:pulumi:Stack"
    return Ended(**facts, outputs=(new or {}).get("outputs") if is_stack else None)


def _step(step: Mapping[str, Any], news: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "subject": subject(step["urn"]),
        "deed": _deed(step),
        "operation": step["op"],
        "planning": bool(news.get("planning")),
    }


def _creation(step: Mapping[str, Any]) -> dict[str, Any] | None:
    new = step.get("new") or {}
    if step["op"] not in ("create", "create-replacement") or not step["type"].startswith("aws:"):
        return None
    kept = {key: new[key] for key in ("parent", "provider", "inputs", "protect", "retainOnDelete") if new.get(key)}
    return {"urn": step["urn"], "type": step["type"], "custom": True, **kept}


def _deed(step: Mapping[str, Any]) -> Deed:
    deed = _DEEDS.get(step["op"], Deed.CHECKED)
    old = step.get("old") or {}
    return Deed.KEPT if deed is Deed.DELETED and old.get("retainOnDelete") else deed


def _differences(step: Mapping[str, Any]) -> Differences:
    old, new = step.get("old") or {}, step.get("new") or {}
    detailed: Mapping[str, Mapping[str, str]] = step.get("detailedDiff") or {}
    kinds = {path: one.get("diffKind", "update") for path, one in sorted(detailed.items())}
    named: Sequence[str] = step.get("diffs") or ()
    return Differences(
        kinds=kinds or dict.fromkeys(sorted(named), "update"),
        old=old.get("inputs") or {},
        new=new.get("inputs") or {},
    )
