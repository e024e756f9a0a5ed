"""Counts what the engine has done and tracks what it is doing, from its events. No text and no terminal here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corral.engine.progress.engine_events import (
    Diagnostic,
    Operation,
    ProgressEvent,
    StackResource,
    StepDone,
    StepFailed,
    StepStarted,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningStep:
    """A step in progress. `since_s`: its start, by the clock of `ProgressCounter.add`."""

    resource: StackResource
    operation: Operation
    since_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedStep:
    """A finished step; `failed` if it did not succeed."""

    resource: StackResource
    operation: Operation
    took_s: float
    failed: bool = False


@dataclass(slots=True, kw_only=True)
class ProgressCounter:
    """The counts of one update or preview."""

    running: dict[tuple[str, str], RunningStep] = field(default_factory=dict)
    counts: Counter[Operation] = field(default_factory=Counter)
    planned: list[StepStarted] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    failed: list[StackResource] = field(default_factory=list)
    not_created: list[Mapping[str, Any]] = field(default_factory=list)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    is_preview: bool = False

    def add(self, event: ProgressEvent, now_s: float) -> FinishedStep | None:
        """Counts the event. Returns the step to show if one has finished."""
        match event:
            case Diagnostic():
                self.diagnostics.append(event)
            case StepStarted(resource=resource, step_op=step_op) if not resource.is_internal:
                self.running[resource.urn, step_op] = RunningStep(
                    resource=resource, operation=event.operation, since_s=now_s
                )
                self._plan(event)
            case StepDone(outputs=outputs) if outputs is not None:
                self.outputs = outputs
            case StepDone(resource=resource) if not resource.is_internal:
                return self._finish(event, now_s)
            case StepFailed(resource=resource):
                self.failed.append(resource)
                self.not_created += [event.creation] if event.creation is not None else []
                since_s = min((one.since_s for one in self._drop(resource)), default=now_s)
                return FinishedStep(resource=resource, operation=event.operation, took_s=now_s - since_s, failed=True)
        return None

    @property
    def changes(self) -> int:
        """The number of changes made or planned."""
        return sum(count for operation, count in self.counts.items() if operation.is_change and not operation.is_drift)

    def forget_errors(self) -> None:
        """Keep the counts alone, before an update that continues a failed one."""
        self.diagnostics.clear()
        self.failed.clear()
        self.not_created.clear()

    def _plan(self, event: StepStarted) -> None:
        is_part = event.step_op in ("create-replacement", "delete-replaced")  # parts of what `replace` reports
        if event.planning and event.operation.is_change and (event.step_op == "replace" or not is_part):
            self.planned.append(event)

    def _finish(self, event: StepDone, now_s: float) -> FinishedStep | None:
        started = self.running.pop((event.resource.urn, event.step_op), None)
        if event.step_op == "replace":  # counted and shown when the new resource is created
            return None
        operation = Operation.SAME if event.step_op == "delete-replaced" else event.operation
        self.counts[operation] += 1
        if not event.operation.is_change or (event.planning and not event.operation.is_drift):
            return None
        return FinishedStep(
            resource=event.resource, operation=event.operation, took_s=now_s - started.since_s if started else 0.0
        )

    def _drop(self, resource: StackResource) -> list[RunningStep]:
        keys = [key for key in self.running if key[0] == resource.urn]
        return [self.running.pop(key) for key in keys]
