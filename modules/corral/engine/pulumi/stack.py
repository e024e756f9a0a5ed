"""One stack of a backend: its state, its tags, and updates of it by the engine.

Every update goes through `Stack.update`, which handles progress, interrupts, stale locks and errors.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from corral.engine.backend import file_backend
from corral.engine.backend.backend_space import free_space_text, is_nearly_full
from corral.engine.backend.bucket_backend import bucket_lock_holders
from corral.engine.backend.stack_locks import LockHolder, file_lock_holders, lock_holders_in_error
from corral.engine.engine_errors import EngineError
from corral.engine.progress.diagnostics import DAMAGED, LATE_RULES, are_rules_late, unanswered_urns
from corral.engine.progress.engine_events import Operation, parse_event
from corral.engine.progress.progress_counter import ProgressCounter
from corral.engine.progress.progress_display import ProgressDisplay
from corral.engine.pulumi.error_report import raise_engine_error
from corral.engine.pulumi.projects import secrets_provider_of
from corral.engine.pulumi.pulumi_cli import CliResult, PulumiCli, UpdateFiles

NOT_FOUND = 6  # exit code of the CLI for a stack that does not exist (pkg/cmd/pulumi/cmd/exit_codes.go)
PREVIEWING = "previewing"
LONGEST_ARGUMENT = 128_000  # bytes; Linux takes 131,071 (MAX_ARG_STRLEN)
RULES_S = 30  # users of Terraform wait so long for FSx to see new rules of a security group
UNANSWERED = "corral:unanswered"  # a tag of the stack: importing a state drops its pending operations
DISK_FULL = "the disk is full: free some space now; the engine retries a few times ({})"
STACK_TYPE = frozenset({"pulumi:pulumi:Stack"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StackResult:
    """The counts of an update, and the stack's outputs after it."""

    created: int = 0
    updated: int = 0
    replaced: int = 0
    deleted: int = 0
    same: int = 0
    outputs: Mapping[str, Any] = field(default_factory=dict)

    def to_document(self) -> dict[str, Any]:
        """The result as `--json` shows it."""
        counts = ("created", "updated", "replaced", "deleted", "same")
        return {**{name: getattr(self, name) for name in counts}, "outputs": dict(self.outputs)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack of a Pulumi project, with the CLI that updates it and the display that shows progress.

    `account_option`: the end of suggested command lines that selects this account: empty, or starting with a space.
    """

    engine: PulumiCli
    project: str
    name: str
    directory: Path
    files: UpdateFiles
    display: ProgressDisplay
    locks: tuple[int, ...] = ()
    account_option: str = ""

    @property
    def title(self) -> str:
        """`base dev`, `cluster dev`."""
        return f"{self.project.removeprefix('corral-')} {self.name}"

    def state(self) -> dict[str, Any] | None:
        """The exported deployment, with encrypted secrets; None if the stack does not exist."""
        answer = self._retry_after_repair(
            lambda: self.engine.run(["stack", "export", "--stack", self.name], self.directory)
        )
        if answer.code == 0:
            found = json.loads(answer.stdout)
            if (
                found.get("deployment") is None
            ):  # even an empty stack has one; without this check the stack would look deleted
                raise EngineError(f"{self.title}: {DAMAGED.sentence}", DAMAGED.hints, DAMAGED.code)
            return dict(found)
        if answer.code == NOT_FOUND or "no stack named" in answer.stderr:
            return None
        raise_engine_error(self.title, answer)

    def all_names(self) -> list[str]:
        """The names of all stacks of this project in the backend, sorted."""
        answer = self.run(["stack", "ls", "--json", "--project", self.project])
        return sorted(str(one["name"]).rpartition("/")[2] for one in json.loads(answer.stdout))

    def names_with_resources(self) -> list[str]:
        """The names of the stacks of this project in the backend that hold resources, sorted."""
        answer = self.run(["stack", "ls", "--json", "--project", self.project])
        counted = {str(one["name"]): int(one.get("resourceCount") or 0) for one in json.loads(answer.stdout)}
        return sorted(name.rpartition("/")[2] for name, count in counted.items() if count > len(STACK_TYPE))

    def create(self) -> None:
        """Creates the empty stack with the secrets provider of its file."""
        named = secrets_provider_of(self.directory / f"Pulumi.{self.name}.yaml")
        self.run(["stack", "init", self.name, "--no-select", *(["--secrets-provider", named] if named else [])])

    def remove(self) -> None:
        """Removes the empty stack from the backend. Keeps its stack file."""
        self.run(["stack", "rm", self.name, "--yes", "--preserve-config"])

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Replaces the state. This also drops its pending operations."""
        file = self.files.events.with_name("state.json")
        file.write_text(json.dumps(state))
        try:
            self.run(["stack", "import", "--stack", self.name, "--file", str(file)])
        finally:
            file.unlink(missing_ok=True)

    def lost_creations(self) -> list[dict[str, Any]]:
        """The creations of earlier updates that got no response and may have succeeded."""
        root = file_backend.directory(self.engine.environment["PULUMI_BACKEND_URL"])
        if root and not file_backend.tags_file(root, self.project, self.name).exists():
            return []  # calling the CLI takes a third of a second
        answer = self._retry_after_repair(
            lambda: self.engine.run(["stack", "tag", "get", UNANSWERED, "--stack", self.name], self.directory)
        )
        return list(json.loads(answer.stdout)) if answer.code == 0 else []

    def clear_lost_creations(self) -> None:
        """Removes the record of lost creations."""
        self.run(["stack", "tag", "rm", UNANSWERED, "--stack", self.name])

    def run(self, arguments: Sequence[str]) -> CliResult:
        """Runs a short call that must succeed; removes a stale lock first. Raises EngineError if it fails."""
        answer = self._retry_after_repair(lambda: self.engine.run(arguments, self.directory))
        if answer.code:
            raise_engine_error(self.title, answer)
        return answer

    def require_unlocked(self) -> None:
        """Raises EngineError if another Pulumi process holds the lock of this stack."""
        url = self.engine.environment["PULUMI_BACKEND_URL"]
        if root := file_backend.directory(url):
            self._require_no_holder(file_lock_holders(root / "locks" / "organization" / self.project / self.name))
        else:
            self._require_no_holder(bucket_lock_holders(url, self.engine.environment, self.project, self.name))

    def update(self, doing: str, arguments: Sequence[str]) -> ProgressCounter:
        """Runs the update. Returns its counts. Raises EngineError if it fails, Interrupted after Ctrl-C."""
        counter = ProgressCounter(is_preview=doing == PREVIEWING)
        self.display.begin(self.title, doing, counter)
        answer = CliResult(code=-1, stdout="", stderr="")
        try:
            answer = self._retry_after_repair(lambda: self._run_update(arguments, counter))
            if answer.code and not answer.interrupts and are_rules_late(counter.diagnostics):
                self.display.write(f"{self.title}: {LATE_RULES.sentence} - trying again in {RULES_S} s")
                time.sleep(RULES_S)
                counter.forget_errors()
                answer = self._retry_after_repair(lambda: self._run_update(arguments, counter))
        finally:
            ended = "interrupted" if answer.interrupts else "FAILED" if answer.code else "done"
            self.display.end(ended)
        if answer.code or answer.interrupts:  # an interrupted destroy exits with 0, but is not complete
            self._record_lost_creations(counter)
            raise_engine_error(self.title, answer, counter.diagnostics)
        return counter

    def _record_lost_creations(self, counter: ProgressCounter) -> None:
        """Records creations without a response in a tag of the stack, since the engine forgets them."""
        lost = unanswered_urns(counter.diagnostics)
        new = [one for one in counter.not_created if one["urn"] in lost]
        if not new:
            return
        with contextlib.suppress(EngineError):  # if this cannot be written, the following error says why
            known = [one for one in self.lost_creations() if one["urn"] not in lost]
            self.run(["stack", "tag", "set", UNANSWERED, _fitting([*known, *new]), "--stack", self.name])

    def _run_update(self, arguments: Sequence[str], counter: ProgressCounter) -> CliResult:
        reported, warned = 0, False

        def each(event: Mapping[str, Any]) -> None:
            if (record := parse_event(event)) and (line := counter.add(record, time.monotonic())):
                self.display.finished(line)

        def tick(interrupts: int) -> None:
            nonlocal reported, warned
            self.display.tick()
            if not warned and is_nearly_full(self.files.events.parent):
                warned = True
                self.display.write(DISK_FULL.format(free_space_text(self.files.events.parent)))
            if interrupts > reported:
                reported = interrupts
                self.display.write(_on_interrupt(interrupts))

        command = [*arguments, "--stack", self.name]
        return self.engine.update(command, self.directory, self.files, each=each, tick=tick, locks=self.locks)

    def _require_no_holder(self, holders: Sequence[LockHolder]) -> None:
        for holder in holders:
            if holder.is_alive:
                who = f"process {holder.pid} of {holder.user} on {holder.host}, since {holder.since:%Y-%m-%d %H:%M:%S}"
                cancel = f"pulumi -C {self.directory} cancel --yes --stack {self.name}"
                hint = f"wait until it has finished; if the process is gone: {cancel}"
                raise EngineError(f"{self.title}: Pulumi is working on this stack ({who})", (hint,))

    def _retry_after_repair(self, call: Callable[[], CliResult]) -> CliResult:
        """The result of the call; repeated after removing what a killed Pulumi left behind."""
        answer = self._retry_unlocked(call)
        if answer.code and file_backend.is_torn_file_error(answer.stderr):
            torn = file_backend.remove_torn_files(self.engine.environment["PULUMI_BACKEND_URL"])
            if torn:
                self.display.write(f"{self.title}: removed half-written files of a killed Pulumi ({len(torn)})")
                answer = self._retry_unlocked(call)
        return answer

    def _retry_unlocked(self, call: Callable[[], CliResult]) -> CliResult:
        answer = call()
        holders = lock_holders_in_error(answer.stderr) if answer.code else ()
        if not holders:
            return answer
        self._require_no_holder(holders)
        pids = ", ".join(str(holder.pid) for holder in holders)
        self.display.write(f"{self.title}: removing the lock of a killed Pulumi (process {pids})")
        self.engine.run(["cancel", "--yes", "--stack", self.name], self.directory)
        return call()


def stack_result(counter: ProgressCounter) -> StackResult:
    """The update in numbers."""
    counts = counter.counts
    return StackResult(
        created=counts[Operation.CREATED] + counts[Operation.IMPORTED],
        updated=counts[Operation.UPDATED],
        replaced=counts[Operation.REPLACED],
        deleted=counts[Operation.DELETED],
        same=counts[Operation.SAME],
        outputs=counter.outputs,
    )


def resources(state: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The resources of an exported state, without the stack's own entry."""
    found = (state or {}).get("deployment", {}).get("resources") or []
    return [one for one in found if one["type"] not in STACK_TYPE]


def outputs(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """The stack's outputs, of an exported state."""
    found = (state or {}).get("deployment", {}).get("resources") or []
    return next((dict(one.get("outputs") or {}) for one in found if one["type"] in STACK_TYPE), {})


def _fitting(creations: Sequence[Mapping[str, Any]]) -> str:
    """The creations that fit into one command argument, as JSON; the largest are omitted."""
    texts = sorted((json.dumps(one, separators=(",", ":")) for one in creations), key=len)
    lengths = accumulate(len(text) + 1 for text in texts)
    return f"[{','.join(text for text, length in zip(texts, lengths, strict=True) if length < LONGEST_ARGUMENT)}]"


def _on_interrupt(times: int) -> str:
    if times == 1:
        return "stopping: finishing and saving the running operations (press Ctrl-C again to stop at once)"
    return "stopping at once: the next command looks for resources that were being created"
