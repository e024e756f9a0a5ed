"""The head's answers as records, sentences and exit codes; Systems Manager with recorded answers."""

from __future__ import annotations

import base64
import gzip
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from corral.cli.support.drain_jobs import drained_line, head_unreachable_error, jobs_running_error, unsaved
from corral.cli.support.remote import (
    CommandResult,
    HeadUnreachable,
    SsmHead,
    fetch_events,
    fetch_history,
    fetch_state,
    run_with_timeout,
)
from corral.model.head_report import (
    ACCOUNTING_NOT_SAVED,
    HISTORY_NOT_SAVED,
    AutoscalerStatus,
    DrainResult,
    EventPage,
    HeadJob,
    HeadStatus,
    JobRun,
    JobRunPage,
)
from corral.model.serialization import to_json

NOW = "corral down dev --box --now"
AUTOSCALER = AutoscalerStatus(is_running=True, last_cycle=1795300799, start_command="start it", log_command="read why")
STATE = HeadStatus(
    at=1795300800, jobs=(), running=0, waiting=0, backoffs=(), disabled_queues=(), nodes=(), autoscaler=AUTOSCALER
)
RUNNING = HeadJob(
    job_id="7",
    user="ada",
    name="fit",
    queue="train",
    state="running",
    nodes="train-[1-2]",
    node_count=2,
    since=1795293600,
    reason="",
    until=None,
)


class RecordedHead:
    """A head that gives these answers in order and records the commands."""

    def __init__(self, *answers: CommandResult) -> None:
        self._answers, self.commands = list(answers), list[Sequence[str]]()

    def run(self, arguments: Sequence[str], within_s: float = 0) -> CommandResult:
        self.commands.append(tuple(arguments))
        return self._answers.pop(0)


def answer(record: object = None, *, code: int = 0, err: str = "") -> CommandResult:
    return CommandResult(code=code, out="" if record is None else to_json(record), err=err)


class Ssm:
    """A client of Systems Manager with one instance that answers at the second poll."""

    def __init__(self, *answers: Mapping[str, Any] | str) -> None:
        self._answers, self.sent = list(answers), dict[str, Any]()

    def client(self, service: str) -> Ssm:
        return self

    def send_command(self, **sent: Any) -> Mapping[str, Any]:
        if self._answers[0] in ("InvalidInstanceId", "InvalidDocument", "AccessDeniedException"):
            raise ClientError({"Error": {"Code": str(self._answers[0])}}, "SendCommand")
        self.sent = sent
        return {"Command": {"CommandId": "c-1"}}

    def get_command_invocation(self, **_: str) -> Mapping[str, Any]:
        found = self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
        if isinstance(found, str):
            raise ClientError({"Error": {"Code": found}}, "GetCommandInvocation")
        return found


def invocation(status: str, code: int, out: bytes = b"", details: str = "") -> Mapping[str, Any]:
    zipped = base64.b64encode(gzip.compress(out)).decode()
    return {
        "Status": status, "ResponseCode": code, "StandardOutputContent": zipped + "\n", "StandardErrorContent": "e",
        "StatusDetails": details,
    }  # fmt: skip


def by_ssm(ssm: Ssm, within_s: float = 5) -> CommandResult:
    return SsmHead(instance_id="i-0", session=ssm, pause_s=0.0).run(("status",), within_s)


def test_a_state_is_read() -> None:
    assert fetch_state(RecordedHead(answer(STATE))) == STATE


def test_pages_of_events_are_put_together() -> None:
    head = RecordedHead(answer(EventPage(lines=("a", "b"), next=2)), answer(EventPage(lines=("c",), next=None)))
    assert (fetch_events(head, 0), head.commands[1]) == (("a", "b", "c"), ("events", "--since=0", "--start=2"))


def test_pages_of_runs_are_put_together() -> None:
    run = JobRun(job_id="7", user="a", name="n", queue="q", state="x", nodes="", submitted=1, started=None, ended=None)
    head = RecordedHead(
        answer(JobRunPage(runs=(run,), next=1)), answer(JobRunPage(runs=(run,), next=None, problem="p"))
    )
    assert fetch_history(head, 0) == JobRunPage(runs=(run, run), next=None, problem="p")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (answer(code=2, err="usage: ..."), "the head's agent does not know `status`; `corral up` updates it"),
        (answer(code=1, err="a\nsqueue: cannot connect\n"), "`status` failed on the head: squeue: cannot connect"),
        (
            answer(code=127, err="nsenter: failed to execute /opt/corral/bin/corral-agent: No such file or directory"),
            "the head has not booted yet",
        ),
        (answer(code=127), "`status` failed on the head: exit code 127"),
        (
            answer(code=1, err="2026-11-22 12:00:00,1 corral-agent ERROR status: slurmctld is away\n"),
            "slurmctld is away",
        ),
    ],
)
def test_failed_query_is_one_sentence(result: CommandResult, message: str) -> None:
    with pytest.raises(HeadUnreachable) as caught:
        fetch_state(RecordedHead(result))
    assert str(caught.value) == message


def test_answer_of_another_version_shows_the_command_to_update() -> None:
    with pytest.raises(HeadUnreachable, match="another version; `corral up` updates it"):
        fetch_state(RecordedHead(CommandResult(code=0, out='{"at": 1}', err="")))


def test_answer_from_systems_manager_is_unzipped() -> None:
    ssm = Ssm("InvocationDoesNotExist", {"Status": "InProgress"}, invocation("Failed", 4, b'{"x": 1}'))
    assert by_ssm(ssm) == CommandResult(code=4, out='{"x": 1}', err="e")


@pytest.mark.parametrize(
    ("arguments", "document"),
    [
        (("status",), "corral-query"),
        (("events", "--since=5", "--start=0"), "corral-query"),
        (("history", "--since=5", "--start=0"), "corral-query"),
        (("apply", "--json"), "corral-control"),
        (("drain-all", "--grace=120", "--now"), "corral-control"),
    ],
)
def test_each_command_has_its_document(arguments: tuple[str, ...], document: str) -> None:
    ssm = Ssm(invocation("Success", 0))
    SsmHead(instance_id="i-0", session=ssm, pause_s=0.0).run(arguments, 5)
    assert (ssm.sent["DocumentName"], ssm.sent["InstanceIds"], ssm.sent["Parameters"]) == (
        document,
        ["i-0"],
        {"arguments": [" ".join(arguments)], "timeout": ["35"]},
    )


@pytest.mark.parametrize(
    ("ssm", "message"),
    [
        (
            Ssm("InvalidInstanceId"),
            "the head i-0 is not registered with Systems Manager - it is booting, or its agent has stopped",
        ),
        (
            Ssm("AccessDeniedException"),
            "AWS does not allow these credentials ssm:SendCommand with corral-query on the head i-0",
        ),
        (
            Ssm("InvalidDocument"),
            "the document corral-query is missing or old in this region - `corral bootstrap` creates it",
        ),
        (Ssm({"Status": "Pending"}), "the head i-0 did not answer within 0 s"),
        (
            Ssm(invocation("TimedOut", -1, details="Undeliverable")),
            "the head i-0 rejected the command: Undeliverable",
        ),
    ],
)
def test_unreachable_head_is_one_sentence(ssm: Ssm, message: str) -> None:
    with pytest.raises(HeadUnreachable) as caught:
        by_ssm(ssm, within_s=0.05 if "within" in message else 5)
    assert str(caught.value) == message


def test_truncated_answer_is_reported() -> None:
    whole = invocation("Success", 0, bytes(range(256)) * 9)
    with pytest.raises(HeadUnreachable, match="is truncated"):
        by_ssm(Ssm({**whole, "StandardOutputContent": whole["StandardOutputContent"][:40]}))


def test_hanging_machine_is_not_awaited() -> None:
    with pytest.raises(HeadUnreachable, match=r"^the head i-0 did not answer within 0 s$"):
        run_with_timeout(lambda: time.sleep(30) or answer(), "i-0", 0.1)


def test_down_with_running_jobs_is_refused_with_the_jobs_and_the_fix() -> None:
    found = HeadStatus(
        at=1795300800,
        jobs=(RUNNING,),
        running=1,
        waiting=3,
        backoffs=(),
        disabled_queues=(),
        nodes=(),
        autoscaler=AUTOSCALER,
    )
    error = jobs_running_error("cluster dev", found, NOW)
    assert (str(error).splitlines(), error.code) == (
        [
            "cluster dev: 1 job runs: nothing was changed",
            "  job 7  ada  fit  train  train-[1-2]  running for 2 h",
            "  3 waiting jobs would be lost",
            "  to checkpoint and stop them: corral down dev --box --now",
        ],
        4,
    )


def test_eight_of_many_jobs_are_shown() -> None:
    found = HeadStatus(
        at=1795300800,
        jobs=(RUNNING,) * 12,
        running=30,
        waiting=0,
        backoffs=(),
        disabled_queues=(),
        nodes=(),
        autoscaler=AUTOSCALER,
    )
    assert str(jobs_running_error("cluster dev", found, NOW)).splitlines()[9] == "  and 22 more"


def test_down_without_an_answer_is_refused_while_machines_run() -> None:
    error = head_unreachable_error("cluster dev", "there is no head", 2, NOW)
    assert (str(error).splitlines(), error.code) == (
        [
            "cluster dev: there is no head: nothing was changed",
            "  2 launched instances run, so jobs may run there",
            "  to delete it anyway: corral down dev --box --now",
        ],
        4,
    )


@pytest.mark.parametrize(
    ("done", "message"),
    [
        (DrainResult(refused=False), ""),
        (
            DrainResult(
                refused=False, signalled=("7", "8"), ended=("7",), requeued=("8",), cancelled=("9",), waiting=2
            ),
            "jobs: 2 signalled to checkpoint, 1 completed, 1 requeued, 1 cancelled, 2 waiting jobs lost",
        ),
    ],
)
def test_drain_shows_the_outcome_of_the_jobs(done: DrainResult, message: str) -> None:
    assert drained_line(done) == message


def test_failed_uploads_of_a_drain_are_read_from_its_log() -> None:
    log = f"2026-11-22 corral-agent INFO life: written\n{HISTORY_NOT_SAVED}: why\n{ACCOUNTING_NOT_SAVED}: because"
    assert unsaved(log) == (f"{HISTORY_NOT_SAVED}: why", f"{ACCOUNTING_NOT_SAVED}: because")


def test_what_a_head_prints_does_not_reach_the_terminal_unescaped() -> None:
    with pytest.raises(HeadUnreachable) as caught:
        fetch_state(RecordedHead(answer(code=1, err="\x1b]0;mine\x07\n")))
    assert str(caught.value) == r"`status` failed on the head: \x1b]0;mine\x07"
    assert unsaved(f"{HISTORY_NOT_SAVED}: \x1b[2J") == (rf"{HISTORY_NOT_SAVED}: \x1b[2J",)


def test_what_a_head_reports_does_not_reach_the_terminal_unescaped() -> None:
    """Root of a node sets a drain reason; root of a head decides all that it reports."""
    answer = to_json(replace(STATE, jobs=(replace(RUNNING, reason="\x1b]0;mine\x07"),)))
    head = RecordedHead(CommandResult(code=0, out=answer, err=""))
    assert fetch_state(head, 1.0).jobs[0].reason == r"\x1b]0;mine\x07"
