"""A program run on an environment's head: by Systems Manager on AWS, in the machine itself in the box."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from corral.box import control
from corral.box.process import BoxError
from corral.box.vpc.network import MachineError, Vpc
from corral.model.head import Drained, Events, HeadState, History
from corral.model.jsons import from_json

AGENT = "/opt/corral/bin/corral-agent"
ANSWERS_WITHIN_S = 15.0
UNKNOWN_COMMAND = 2  # argparse's
Record = TypeVar("Record")


class Unreachable(Exception):
    """A head that does not answer, or not with what was asked; its text is a sentence.

    `idle`: no job can run there.
    """

    def __init__(self, sentence: str, *, idle: bool = False) -> None:
        super().__init__(sentence)
        self.idle = idle


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a program printed, and its exit code."""

    code: int
    out: str
    err: str


class Head(Protocol):
    """A head that can be asked."""

    def run(self, command: Sequence[str], within_s: float = ANSWERS_WITHIN_S) -> Answer:
        """The answer of a program that root runs there. Raises Unreachable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxHead:
    """A head that is a machine of the box. `place`: the box's state directory."""

    instance_id: str
    place: Path

    def run(self, command: Sequence[str], within_s: float = ANSWERS_WITHIN_S) -> Answer:
        """As Head says."""
        return answered(lambda: self._run(command), self.instance_id, within_s)

    def _run(self, command: Sequence[str]) -> Answer | Exception:
        try:
            where = control.machines(self.place).get(self.instance_id)
            if where is None:
                reason = control.status(self.place).machines
                told = reason or "it has not booted yet, or has ended"
                return Unreachable(f"the head {self.instance_id} is no machine: {told}", idle=bool(reason))
            done = Vpc(directory=where).run(self.instance_id, command)
        except (MachineError, BoxError, OSError) as error:
            return Unreachable(f"the head {self.instance_id} cannot be asked: {error}")
        return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class SsmHead:
    """A head on AWS. `session`: boto3's, in its region. `pause_s`: between two looks for the answer."""

    instance_id: str
    session: Any
    pause_s: float = 0.5

    def run(self, command: Sequence[str], within_s: float = ANSWERS_WITHIN_S) -> Answer:
        """As Head says."""
        from corral.inventory.heads import NoAnswer, run_by_ssm

        try:
            code, out, err = run_by_ssm(self.session, self.instance_id, command, within_s, self.pause_s)
        except NoAnswer as error:
            raise Unreachable(str(error)) from None
        return Answer(code=code, out=out, err=err)


def answered(ask: Callable[[], Answer | Exception], instance_id: str, within_s: float) -> Answer:
    """What asking gives. Raises Unreachable where that takes too long: a machine that hangs never answers."""
    found: list[Answer | Exception] = []
    asker = threading.Thread(target=lambda: found.append(ask()), daemon=True)  # nobody waits for it any more then
    asker.start()
    asker.join(within_s)
    if not found:
        raise Unreachable(f"the head {instance_id} did not answer within {within_s:.0f} s")
    if isinstance(answer := found[0], Answer):
        return answer
    raise answer


def head_at(instance_id: str, session: Any, endpoint: str | None, box: Path | None) -> Head:
    """The head with this id. `endpoint`: where the AWS settings point at; `box`: a box's directory that may be it."""
    if endpoint and box is not None and endpoint == control.status(box).url:
        return BoxHead(instance_id=instance_id, place=box)
    return SsmHead(instance_id=instance_id, session=session)


def state_of(head: Head, within_s: float = ANSWERS_WITHIN_S) -> HeadState:
    """What the head says of its jobs, offers, queues and nodes. Raises Unreachable."""
    return _asked(head, HeadState, ("state",), within_s)


def events_of(head: Head, since: float) -> tuple[str, ...]:
    """The lines of JSON of all events from that time on. Raises Unreachable."""
    lines: list[str] = []
    start: int | None = 0
    while start is not None:
        page = _asked(head, Events, ("events", f"--since={since:.0f}", f"--start={start}"), ANSWERS_WITHIN_S)
        lines += page.lines
        start = page.next
    return tuple(lines)


def history_of(head: Head, since: float) -> History:
    """All runs of jobs that were not over at that time. Raises Unreachable."""
    found, start = History(runs=(), next=None), 0
    while True:
        page = _asked(head, History, ("history", f"--since={since:.0f}", f"--start={start}"), ANSWERS_WITHIN_S)
        found = History(runs=(*found.runs, *page.runs), next=None, problem=page.problem)
        if page.next is None:
            return found
        start = page.next


def drain(head: Head, *, now: bool, grace_s: float) -> tuple[Drained, str]:
    """What the head's drain did, and what it complained of. Raises Unreachable."""
    words = ("drain-all", f"--grace={grace_s:g}", *(("--now",) if now else ()))
    answer = head.run((AGENT, *words), within_s=grace_s + 180)  # the ends of jobs, and the dump of their records
    return _read(Drained, answer, words[0]), answer.err.strip()


def _asked(head: Head, kind: type[Record], words: Sequence[str], within_s: float) -> Record:
    return _read(kind, head.run((AGENT, *words), within_s), words[0])


def _read(kind: type[Record], answer: Answer, what: str) -> Record:
    if answer.out.strip():
        try:
            return from_json(kind, answer.out)
        except ValueError as error:
            raise Unreachable(f"the head's agent is of another version, `corral up` renews it ({error})") from None
    if answer.code == UNKNOWN_COMMAND:
        raise Unreachable(f"the head's agent knows no `{what}`, `corral up` renews it")
    if f"{AGENT}: No such file or directory" in answer.err:  # user data has not come that far
        raise Unreachable("the head has not booted yet")
    told = answer.err.strip().splitlines()
    if told and (sentence := told[-1].partition(f" corral-agent ERROR {what}: ")[2]):
        raise Unreachable(sentence)
    raise Unreachable(f"the head could not say its {what}: {told[-1] if told else f'exit code {answer.code}'}")
