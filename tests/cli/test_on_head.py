"""What the head's answers become: records, sentences, exit codes; over Systems Manager with its answers recorded."""

from __future__ import annotations

import base64
import gzip
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from corral.cli.draining import drained_line, refusal, unreached, unsaved
from corral.cli.on_head import Answer, SsmHead, Unreachable, answered, events_of, history_of, state_of
from corral.model.head import NOT_DUMPED, NOT_KEPT, Drained, Events, HeadJob, HeadState, History, JobRun, Keeping
from corral.model.jsons import to_json

NOW = "corral down dev --box --now"
KEEPER = Keeping(runs=True, turned=1795300799, start="start it", log="read why")
STATE = HeadState(at=1795300800, jobs=(), running=0, waiting=0, resting=(), stopped=(), nodes=(), keeper=KEEPER)
RUNNING = HeadJob(
    job_id="7",
    user="ada",
    name="fit",
    queue="train",
    state="running",
    nodes="train-[1-2]",
    node_count=2,
    since=1795293600,
    why="",
    until=None,
)


class Says:
    """A head that gives these answers, one after the other, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self._answers, self.asked = list(answers), list[Sequence[str]]()

    def run(self, command: Sequence[str], within_s: float = 0) -> Answer:
        self.asked.append(tuple(command[1:]))
        return self._answers.pop(0)


def answer(record: object = None, *, code: int = 0, err: str = "") -> Answer:
    return Answer(code=code, out="" if record is None else to_json(record), err=err)


class Ssm:
    """Systems Manager's client, with one instance that answers so at its second look."""

    def __init__(self, *answers: Mapping[str, Any] | str) -> None:
        self._answers, self.sent = list(answers), dict[str, Any]()

    def client(self, service: str) -> Ssm:
        return self

    def send_command(self, **sent: Any) -> Mapping[str, Any]:
        if self._answers[0] in ("InvalidInstanceId", "AccessDeniedException"):
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


def by_ssm(ssm: Ssm, within_s: float = 5) -> Answer:
    return SsmHead(instance_id="i-0", session=ssm, pause_s=0.0).run(("/opt/corral/bin/corral-agent", "state"), within_s)


def test_a_state_is_read() -> None:
    assert state_of(Says(answer(STATE))) == STATE


def test_pages_of_events_are_put_together() -> None:
    head = Says(answer(Events(lines=("a", "b"), next=2)), answer(Events(lines=("c",), next=None)))
    assert (events_of(head, 0), head.asked[1]) == (("a", "b", "c"), ("events", "--since=0", "--start=2"))


def test_pages_of_runs_are_put_together() -> None:
    run = JobRun(job_id="7", user="a", name="n", queue="q", state="x", nodes="", submitted=1, started=None, ended=None)
    head = Says(answer(History(runs=(run,), next=1)), answer(History(runs=(run,), next=None, problem="p")))
    assert history_of(head, 0) == History(runs=(run, run), next=None, problem="p")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (answer(code=2, err="usage: ..."), "the head's agent knows no `state`, `corral up` renews it"),
        (answer(code=1, err="a\nsqueue: cannot connect\n"), "the head could not say its state: squeue: cannot connect"),
        (
            answer(code=127, err="nsenter: failed to execute /opt/corral/bin/corral-agent: No such file or directory"),
            "the head has not booted yet",
        ),
        (answer(code=127), "the head could not say its state: exit code 127"),
        (
            answer(code=1, err="2026-11-22 12:00:00,1 corral-agent ERROR state: slurmctld is away\n"),
            "slurmctld is away",
        ),
    ],
)
def test_a_head_that_cannot_say_it_is_a_sentence(said: Answer, told: str) -> None:
    with pytest.raises(Unreachable) as caught:
        state_of(Says(said))
    assert str(caught.value) == told


def test_an_answer_of_another_version_says_what_renews_it() -> None:
    with pytest.raises(Unreachable, match="another version, `corral up` renews it"):
        state_of(Says(Answer(code=0, out='{"at": 1}', err="")))


def test_an_answer_over_systems_manager_is_unzipped() -> None:
    ssm = Ssm("InvocationDoesNotExist", {"Status": "InProgress"}, invocation("Failed", 4, b'{"x": 1}'))
    assert by_ssm(ssm) == Answer(code=4, out='{"x": 1}', err="e")


def test_the_command_is_root_shell_on_that_instance() -> None:
    ssm = Ssm(invocation("Success", 0))
    by_ssm(ssm)
    assert (ssm.sent["DocumentName"], ssm.sent["InstanceIds"]) == ("AWS-RunShellScript", ["i-0"])


@pytest.mark.parametrize(
    ("ssm", "told"),
    [
        (Ssm("InvalidInstanceId"), "the head i-0 is not known to Systems Manager - it boots, or its agent is gone"),
        (
            Ssm("AccessDeniedException"),
            "AWS does not allow these credentials to ask the head i-0 (ssm:SendCommand)",
        ),
        (Ssm({"Status": "Pending"}), "the head i-0 did not answer within 0 s"),
        (
            Ssm(invocation("TimedOut", -1, details="Undeliverable")),
            "the head i-0 did not take the command: Undeliverable",
        ),
    ],
)
def test_a_head_that_systems_manager_does_not_reach_is_a_sentence(ssm: Ssm, told: str) -> None:
    with pytest.raises(Unreachable) as caught:
        by_ssm(ssm, within_s=0.05 if "within" in told else 5)
    assert str(caught.value) == told


def test_an_answer_that_was_cut_off_is_told() -> None:
    whole = invocation("Success", 0, bytes(range(256)) * 9)
    with pytest.raises(Unreachable, match="cut off"):
        by_ssm(Ssm({**whole, "StandardOutputContent": whole["StandardOutputContent"][:40]}))


def test_a_machine_that_hangs_is_not_waited_for() -> None:
    with pytest.raises(Unreachable, match=r"^the head i-0 did not answer within 0 s$"):
        answered(lambda: time.sleep(30) or answer(), "i-0", 0.1)


def test_down_under_jobs_is_refused_with_the_jobs_and_the_way_out() -> None:
    found = HeadState(
        at=1795300800, jobs=(RUNNING,), running=1, waiting=3, resting=(), stopped=(), nodes=(), keeper=KEEPER
    )
    error = refusal("cluster dev", found, NOW)
    assert (str(error).splitlines(), error.code) == (
        [
            "cluster dev: 1 job runs: nothing was changed",
            "  job 7  ada  fit  train  train-[1-2]  running for 2 h",
            "  3 more wait, and are lost with the cluster",
            "  end them with it: corral down dev --box --now (they are asked for a checkpoint, then ended)",
        ],
        4,
    )


def test_of_many_jobs_eight_are_shown() -> None:
    found = HeadState(
        at=1795300800, jobs=(RUNNING,) * 12, running=30, waiting=0, resting=(), stopped=(), nodes=(), keeper=KEEPER
    )
    assert str(refusal("cluster dev", found, NOW)).splitlines()[9] == "  and 22 more"


def test_down_without_an_answer_is_refused_while_machines_run() -> None:
    error = unreached("cluster dev", "there is no head", 2, NOW)
    assert (str(error).splitlines(), error.code) == (
        [
            "cluster dev: there is no head: nothing was changed",
            "  2 launched machines run, so jobs may run there",
            "  take it down all the same: corral down dev --box --now",
        ],
        4,
    )


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (Drained(refused=False), ""),
        (
            Drained(refused=False, asked=("7", "8"), ended=("7",), requeued=("8",), cancelled=("9",), waiting=2),
            "jobs: 2 asked for a checkpoint, 1 ended by themselves, 1 ended by a requeue, 1 cancelled,"
            " 2 that wait are lost",
        ),
    ],
)
def test_a_drain_says_what_became_of_the_jobs(done: Drained, told: str) -> None:
    assert drained_line(done) == told


def test_what_a_drain_could_not_write_to_the_bucket_is_picked_from_its_words() -> None:
    said = f"2026-11-22 corral-agent INFO life: written\n{NOT_KEPT}: why\n{NOT_DUMPED}: because"
    assert unsaved(said) == (f"{NOT_KEPT}: why", f"{NOT_DUMPED}: because")
