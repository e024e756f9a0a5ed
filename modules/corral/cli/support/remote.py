"""Runs commands of an environment's head's agent: through Systems Manager, in the box also in the machine itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from corral.box import client, control
from corral.box.daemon.daemon_process import BoxError
from corral.box.vpc.virtual_network import MachineError, Vpc
from corral.model.head_report import DrainResult, EventPage, HeadStatus, JobRunPage
from corral.model.job_evidence import JobEvidencePage
from corral.model.printable import printable, printable_document
from corral.model.serialization import from_document
from corral.plan.iam.head_documents import AGENT

TIMEOUT_S = 15.0
SENTENCE = 1000  # characters shown of what a head prints
_EVIDENCE_TIMEOUT_S = 45.0  # the head waits 25 s for a file system that hangs, 12 s for nodes, 4 s for Prometheus
UNKNOWN_COMMAND = 2  # argparse's
Record = TypeVar("Record")


class HeadUnreachable(Exception):
    """The head does not answer, or not as expected; the text is a sentence.

    `idle`: no job can run on this head. What the head has printed is in it as printable text.
    """

    def __init__(self, sentence: str, *, idle: bool = False) -> None:
        super().__init__(printable(sentence, SENTENCE))
        self.idle = idle


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Exit code and output of a program."""

    code: int
    out: str
    err: str


class HeadConnection(Protocol):
    """A head whose agent answers."""

    def run(self, arguments: Sequence[str], within_s: float = TIMEOUT_S) -> CommandResult:
        """Runs a command of the agent, with its options, as root. Returns its result. Raises HeadUnreachable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxHead:
    """A head in the box, for the box's owner. `box_dir`: the state directory of the box."""

    instance_id: str
    box_dir: Path

    def run(self, arguments: Sequence[str], within_s: float = TIMEOUT_S) -> CommandResult:
        """See `HeadConnection`."""
        return run_with_timeout(lambda: self._run((AGENT, *arguments)), self.instance_id, within_s)

    def _run(self, command: Sequence[str]) -> CommandResult | Exception:
        try:
            where = control.machines(self.box_dir).get(self.instance_id)
            if where is None:
                reason = client.status(self.box_dir).no_machines_reason
                why = reason or "it has not booted yet, or has terminated"
                return HeadUnreachable(
                    f"the head {self.instance_id} does not run as a machine: {why}", idle=bool(reason)
                )
            done = Vpc(directory=where).run(self.instance_id, command)
        except (MachineError, BoxError, OSError) as error:
            return HeadUnreachable(f"the head {self.instance_id} cannot be reached: {error}")
        return CommandResult(code=done.returncode, out=done.stdout, err=done.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class SsmHead:
    """A head by Systems Manager. `session`: a boto3 session in its region. `pause_s`: the polling interval."""

    instance_id: str
    session: Any
    pause_s: float = 0.5

    def run(self, arguments: Sequence[str], within_s: float = TIMEOUT_S) -> CommandResult:
        """See `HeadConnection`."""
        from corral.inventory.head_instance import HeadCommandError, run_by_ssm

        try:
            code, out, err = run_by_ssm(self.session, self.instance_id, arguments, within_s, self.pause_s)
        except HeadCommandError as error:
            raise HeadUnreachable(str(error)) from None
        return CommandResult(code=code, out=out, err=err)


def run_with_timeout(call: Callable[[], CommandResult | Exception], instance_id: str, within_s: float) -> CommandResult:
    """The result of the call. Raises HeadUnreachable after the timeout: a hanging machine never answers."""
    found: list[CommandResult | Exception] = []
    caller = threading.Thread(target=lambda: found.append(call()), daemon=True)  # abandoned after the timeout
    caller.start()
    caller.join(within_s)
    if not found:
        raise HeadUnreachable(f"the head {instance_id} did not answer within {within_s:.0f} s")
    if isinstance(answer := found[0], CommandResult):
        return answer
    raise answer


def head_at(instance_id: str, session: Any, endpoint: str | None, box: Path | None) -> HeadConnection:
    """The head with this id. `endpoint`: that of the AWS settings; `box`: the directory of a box that may be meant.

    In the box its owner enters machines; a role goes through Systems Manager, which checks its permissions.
    """
    if endpoint and box is not None:
        now = client.status(box)
        if endpoint == now.url and not is_checked(session, now):
            return BoxHead(instance_id=instance_id, box_dir=box)
    return SsmHead(instance_id=instance_id, session=session)


def is_checked(session: Any, box: client.BoxStatus) -> bool:
    """True if the box has machines that answer Systems Manager, and the session's credentials are those of a role."""
    if box.no_machines_reason is not None:
        return False
    return ":assumed-role/" in str(session.client("sts").get_caller_identity()["Arn"])


def fetch_state(head: HeadConnection, within_s: float = TIMEOUT_S) -> HeadStatus:
    """The head's status: jobs, offers, queues and nodes. Raises HeadUnreachable."""
    return _query(head, HeadStatus, ("status",), within_s)


def fetch_events(head: HeadConnection, since: float) -> tuple[str, ...]:
    """All events since that time, as lines of JSON. Raises HeadUnreachable."""
    lines: list[str] = []
    start: int | None = 0
    while start is not None:
        page = _query(head, EventPage, ("events", f"--since={since:.0f}", f"--start={start}"), TIMEOUT_S)
        lines += page.lines
        start = page.next
    return tuple(lines)


def fetch_history(head: HeadConnection, since: float) -> JobRunPage:
    """All runs of jobs that had not ended at that time. Raises HeadUnreachable."""
    found, start = JobRunPage(runs=(), next=None), 0
    while True:
        page = _query(head, JobRunPage, ("history", f"--since={since:.0f}", f"--start={start}"), TIMEOUT_S)
        found = JobRunPage(runs=(*found.runs, *page.runs), next=None, problem=page.problem)
        if page.next is None:
            return found
        start = page.next


def fetch_job_evidence(head: HeadConnection, job: str) -> tuple[JobEvidencePage, ...]:
    """What the head knows about a job, in at least one page. Raises HeadUnreachable."""
    pages: list[JobEvidencePage] = []
    start: int | None = 0
    while start is not None:
        page = _query(head, JobEvidencePage, ("job-evidence", job, f"--start={start}"), _EVIDENCE_TIMEOUT_S)
        pages.append(page)
        start = page.steps.next
    return tuple(pages)


def drain_head(head: HeadConnection, *, now: bool, grace_s: float) -> tuple[DrainResult, str]:
    """Drains the head's jobs. Returns the outcome and its stderr. Raises HeadUnreachable."""
    words = ("drain-all", f"--grace={grace_s:g}", *(("--now",) if now else ()))
    answer = head.run(words, within_s=grace_s + 180)  # for stopping jobs and uploading their records
    return _read(DrainResult, answer, words[0]), answer.err.strip()


def _query(head: HeadConnection, kind: type[Record], words: Sequence[str], within_s: float) -> Record:
    return _read(kind, head.run(words, within_s), words[0])


def _read(kind: type[Record], answer: CommandResult, what: str) -> Record:
    if answer.out.strip():
        try:
            # Whoever is root of the head decides what it reports, and it is shown on a terminal.
            return from_document(kind, printable_document(json.loads(answer.out)))
        except ValueError as error:
            raise HeadUnreachable(f"the head's agent has another version; `corral up` updates it ({error})") from None
    if answer.code == UNKNOWN_COMMAND:
        raise HeadUnreachable(f"the head's agent does not know `{what}`; `corral up` updates it")
    if f"{AGENT}: No such file or directory" in answer.err:  # user data is still running
        raise HeadUnreachable("the head has not booted yet")
    printed = answer.err.strip().splitlines()
    if printed and (sentence := printed[-1].partition(f" corral-agent ERROR {what}: ")[2]):
        raise HeadUnreachable(sentence)
    raise HeadUnreachable(f"`{what}` failed on the head: {printed[-1] if printed else f'exit code {answer.code}'}")
