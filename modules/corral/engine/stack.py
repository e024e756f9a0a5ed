"""One stack of one backend: whether it exists, what its state says, and the updates that the engine does on it.

Every update goes through `update`, so that progress, interrupts, stale locks and complaints are handled in one way.
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

from corral.engine import file_backend
from corral.engine.bucket_backend import bucket_holders
from corral.engine.complaint import raise_complaint
from corral.engine.diagnostics import DAMAGED, unanswered
from corral.engine.disk import is_nearly_full, room
from corral.engine.errors import EngineError
from corral.engine.locks import Holder, backend_holders, file_holders
from corral.engine.printers import Printer
from corral.engine.process import Answer, Engine, Files
from corral.engine.progress import Deed, progress_event
from corral.engine.projects import secrets_provider_of
from corral.engine.tally import Tally

NOT_FOUND = 6  # exit code of the CLI for a stack that does not exist (pkg/cmd/pulumi/cmd/exit_codes.go)
PREVIEWING = "previewing"
LONGEST_ARGUMENT = 128_000  # bytes; Linux takes 131,071 (MAX_ARG_STRLEN)
UNANSWERED = "corral:unanswered"  # a tag of the stack: an import of its state would drop operations that are under way
FULL = "the disk is full: free some space now, and the engine goes on; it tries a few times more ({})"
ONLY_STACK = frozenset({"pulumi:pulumi:Stack"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StackResult:
    """What an update did. `outputs` are the stack's afterwards."""

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
    """A Pulumi project's directory, the stack's name in it, and who shows what happens.

    `account_option`: what a command line that is told to somebody ends with to mean the same account: empty, or with a
    blank before it.
    """

    engine: Engine
    project: str
    name: str
    directory: Path
    files: Files
    printer: Printer
    locks: tuple[int, ...] = ()
    account_option: str = ""

    @property
    def title(self) -> str:
        """`base dev`, `cluster dev`."""
        return f"{self.project.removeprefix('corral-')} {self.name}"

    def state(self) -> dict[str, Any] | None:
        """The deployment as Pulumi exports it, secrets encrypted; None where there is no such stack."""
        answer = self._insist(lambda: self.engine.ask(["stack", "export", "--stack", self.name], self.directory))
        if answer.code == 0:
            found = json.loads(answer.stdout)
            if found.get("deployment") is None:  # even an empty stack has one: it would be taken for one that is down
                raise EngineError(f"{self.title}: {DAMAGED.sentence}", DAMAGED.hints, DAMAGED.code)
            return dict(found)
        if answer.code == NOT_FOUND or "no stack named" in answer.stderr:
            return None
        raise_complaint(self.title, answer)

    def neighbours(self) -> list[str]:
        """The names of all stacks of this project in the backend."""
        answer = self.ask(["stack", "ls", "--json", "--project", self.project])
        return sorted(str(one["name"]).rpartition("/")[2] for one in json.loads(answer.stdout))

    def living(self) -> list[str]:
        """The names of those stacks of this project in the backend that hold resources."""
        answer = self.ask(["stack", "ls", "--json", "--project", self.project])
        counted = {str(one["name"]): int(one.get("resourceCount") or 0) for one in json.loads(answer.stdout)}
        return sorted(name.rpartition("/")[2] for name, count in counted.items() if count > len(ONLY_STACK))

    def create(self) -> None:
        """Makes the empty stack, encrypted as its file says."""
        named = secrets_provider_of(self.directory / f"Pulumi.{self.name}.yaml")
        self.ask(["stack", "init", self.name, "--no-select", *(["--secrets-provider", named] if named else [])])

    def remove(self) -> None:
        """Forgets the empty stack. Its file of settings stays."""
        self.ask(["stack", "rm", self.name, "--yes", "--preserve-config"])

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Replaces the state; this also forgets the operations that were under way."""
        file = self.files.events.with_name("state.json")
        file.write_text(json.dumps(state))
        try:
            self.ask(["stack", "import", "--stack", self.name, "--file", str(file)])
        finally:
            file.unlink(missing_ok=True)

    def unanswered(self) -> list[dict[str, Any]]:
        """The creations of earlier updates whose answer never came: what they asked for may have been made."""
        root = file_backend.directory(self.engine.environment["PULUMI_BACKEND_URL"])
        if root and not file_backend.tags_file(root, self.project, self.name).exists():
            return []  # what asking would cost is a third of a second
        answer = self._insist(
            lambda: self.engine.ask(["stack", "tag", "get", UNANSWERED, "--stack", self.name], self.directory)
        )
        return list(json.loads(answer.stdout)) if answer.code == 0 else []

    def forget_unanswered(self) -> None:
        """Strikes them out, when they have been looked for."""
        self.ask(["stack", "tag", "rm", UNANSWERED, "--stack", self.name])

    def ask(self, arguments: Sequence[str]) -> Answer:
        """The answer of a short call that must succeed; a lock that nobody holds any more is removed first."""
        answer = self._insist(lambda: self.engine.ask(arguments, self.directory))
        if answer.code:
            raise_complaint(self.title, answer)
        return answer

    def require_free(self) -> None:
        """Raises EngineError where another Pulumi is at work on this stack, as far as its locks tell."""
        url = self.engine.environment["PULUMI_BACKEND_URL"]
        if root := file_backend.directory(url):
            self._require_nobody(file_holders(root / "locks" / "organization" / self.project / self.name))
        else:
            self._require_nobody(bucket_holders(url, self.engine.environment, self.project, self.name))

    def update(self, doing: str, arguments: Sequence[str]) -> Tally:
        """What the update did. Raises EngineError where it failed, Interrupted where Ctrl-C ended it."""
        tally = Tally(is_plan=doing == PREVIEWING)
        self.printer.begin(self.title, doing, tally)
        answer = Answer(code=-1, stdout="", stderr="")
        try:
            answer = self._insist(lambda: self._run(arguments, tally))
        finally:
            ended = "interrupted" if answer.interrupts else "FAILED" if answer.code else "done"
            self.printer.end(ended)
        if answer.code or answer.interrupts:  # an interrupted destroy ends with 0, but it is not done
            self._note_unanswered(tally)
            raise_complaint(self.title, answer, tally.said)
        return tally

    def _note_unanswered(self, tally: Tally) -> None:
        """Remembers beside the state what may have been made though no answer came: the engine forgets it."""
        lost = unanswered(tally.said)
        new = [one for one in tally.not_created if one["urn"] in lost]
        if not new:
            return
        with contextlib.suppress(EngineError):  # where even this cannot be written, the error that follows says why
            known = [one for one in self.unanswered() if one["urn"] not in lost]
            self.ask(["stack", "tag", "set", UNANSWERED, _fitting([*known, *new]), "--stack", self.name])

    def _run(self, arguments: Sequence[str], tally: Tally) -> Answer:
        told, warned = 0, False

        def each(event: Mapping[str, Any]) -> None:
            if (record := progress_event(event)) and (line := tally.add(record, time.monotonic())):
                self.printer.finished(line)

        def tick(interrupts: int) -> None:
            nonlocal told, warned
            self.printer.tick()
            if not warned and is_nearly_full(self.files.events.parent):
                warned = True
                self.printer.say(FULL.format(room(self.files.events.parent)))
            if interrupts > told:
                told = interrupts
                self.printer.say(_on_interrupt(interrupts))

        command = [*arguments, "--stack", self.name]
        return self.engine.update(command, self.directory, self.files, each=each, tick=tick, locks=self.locks)

    def _require_nobody(self, holders: Sequence[Holder]) -> None:
        for holder in holders:
            if holder.lives:
                who = f"process {holder.pid} of {holder.user} on {holder.host}, since {holder.since:%Y-%m-%d %H:%M:%S}"
                cancel = f"pulumi -C {self.directory} cancel --yes --stack {self.name}"
                hint = f"wait until it has ended; if you know that it is gone: {cancel}"
                raise EngineError(f"{self.title}: Pulumi is at work on this stack ({who})", (hint,))

    def _insist(self, call: Callable[[], Answer]) -> Answer:
        """The answer, after what a killed Pulumi left in its way has been removed."""
        answer = self._unlocked(call)
        if answer.code and file_backend.looks_torn(answer.stderr):
            torn = file_backend.mend(self.engine.environment["PULUMI_BACKEND_URL"])
            if torn:
                self.printer.say(f"{self.title}: removed what a killed Pulumi had half written ({len(torn)} files)")
                answer = self._unlocked(call)
        return answer

    def _unlocked(self, call: Callable[[], Answer]) -> Answer:
        answer = call()
        holders = backend_holders(answer.stderr) if answer.code else ()
        if not holders:
            return answer
        self._require_nobody(holders)
        pids = ", ".join(str(holder.pid) for holder in holders)
        self.printer.say(f"{self.title}: removing the lock of a Pulumi that was killed (process {pids})")
        self.engine.ask(["cancel", "--yes", "--stack", self.name], self.directory)
        return call()


def result(tally: Tally) -> StackResult:
    """The update in numbers."""
    counts = tally.counts
    return StackResult(
        created=counts[Deed.CREATED] + counts[Deed.FOUND],
        updated=counts[Deed.UPDATED],
        replaced=counts[Deed.REPLACED],
        deleted=counts[Deed.DELETED],
        same=counts[Deed.SAME],
        outputs=tally.outputs,
    )


def resources(state: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The resources of an exported state, without the stack's own entry."""
    found = (state or {}).get("deployment", {}).get("resources") or []
    return [one for one in found if one["type"] not in ONLY_STACK]


def pending(state: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The operations that were under way when the engine was killed."""
    return list((state or {}).get("deployment", {}).get("pending_operations") or [])


def outputs(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """The stack's outputs, of an exported state."""
    found = (state or {}).get("deployment", {}).get("resources") or []
    return next((dict(one.get("outputs") or {}) for one in found if one["type"] in ONLY_STACK), {})


def _fitting(creations: Sequence[Mapping[str, Any]]) -> str:
    """As JSON those that fit into one argument of a command: all but the largest of very many."""
    texts = sorted((json.dumps(one, separators=(",", ":")) for one in creations), key=len)
    lengths = accumulate(len(text) + 1 for text in texts)
    return f"[{','.join(text for text, length in zip(texts, lengths, strict=True) if length < LONGEST_ARGUMENT)}]"


def _on_interrupt(times: int) -> str:
    if times == 1:
        return "stopping: what is under way is finished and saved, then this ends (Ctrl-C again: at once)"
    return "stopping at once: the next command looks for what was being made"
