"""The job role on a machine: who gets it, under which session name, how often it is assumed."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from botocore.exceptions import MetadataRetrievalError
from botocore.utils import ContainerMetadataFetcher

from agent.event_loops import awaited, serving
from box.vpc_fixtures import Clients
from corral.agent.config.file_placements import placements_for
from corral.agent.credentials import (
    CredentialsError,
    JobRole,
    JobRoleCredentials,
    credentials_server,
    respond,
    responder,
    role,
    session_name,
)
from corral.agent.file_install import install
from corral.agent.local_http import LocalRequest, LocalServer, listen, read_request
from corral.box.vpc.capabilities import probe_host
from corral.model.enums import Role as AgentRole

VARIABLE = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
JOB = "arn:aws:iam::123456789012:role/job"


@dataclass(kw_only=True)
class Sts:
    """Gives numbered credentials for an hour from now, or fails."""

    now: datetime = NOON
    requested: list[str] = field(default_factory=list)
    fails: bool = False

    def __call__(self, session: str) -> JobRoleCredentials:
        if self.fails:
            raise CredentialsError("STS does not answer")
        self.requested.append(session)
        key = f"key-{len(self.requested)}"
        return JobRoleCredentials(access_key=key, secret_key="s", token="t", expires=self.now + timedelta(hours=1))


@pytest.fixture
def sts() -> Sts:
    return Sts()


@pytest.fixture
def held(sts: Sts) -> JobRole:
    return JobRole(assume=sts, clock=lambda: sts.now)


def given(role: JobRole, session: str) -> JobRoleCredentials:
    """The credentials that the role gives for this session."""
    return awaited(role.of(session))


def answer(request: LocalRequest, role: JobRole) -> tuple[int, Mapping[str, str]]:
    """The status and the document of the response."""
    return awaited(respond(request, role))


def question(path: str = "/credentials", host: str = "127.0.0.1:250", user: int | None = 2000) -> LocalRequest:
    return LocalRequest(path=path, host=host, user=user)


def test_a_person_gets_the_job_role_in_the_shape_that_sdks_read(held: JobRole) -> None:
    assert answer(question(), held) == (
        200,
        {"AccessKeyId": "key-1", "SecretAccessKey": "s", "Token": "t", "Expiration": "2026-11-21T13:00:00Z"},
    )


@pytest.mark.parametrize(
    ("requested", "status"),
    [
        (question(user=0), 200),
        (question(host="localhost:250"), 200),
        (question(user=64030), 200),
        (question(user=None), 403),
        (question(user=102), 403),
        (question(user=65534), 403),
        (question(host="evil.example:250"), 403),
        (question(host=""), 403),
        (question(path="/"), 404),
    ],
    ids=["root", "by name", "a high number", "nobody here", "munge", "nobody", "a web page", "no host", "elsewhere"],
)
def test_who_gets_the_job_role(requested: LocalRequest, status: int, held: JobRole) -> None:
    assert answer(requested, held)[0] == status


def test_credentials_are_requested_once_while_they_last(held: JobRole, sts: Sts) -> None:
    given(held, "ada")
    sts.now += timedelta(minutes=50)
    given(held, "ada")
    assert sts.requested == ["ada"]


def test_credentials_are_requested_again_ten_minutes_before_their_end(held: JobRole, sts: Sts) -> None:
    given(held, "ada")
    sts.now += timedelta(minutes=50, seconds=1)
    assert given(held, "ada").access_key == "key-2"


@dataclass(kw_only=True)
class SlowSts(Sts):
    """Does not answer for these sessions until it is released."""

    slow: set[str]
    released: Event = field(default_factory=Event)

    def __call__(self, session: str) -> JobRoleCredentials:
        if session in self.slow:
            self.released.wait(60)
        return super().__call__(session)


@pytest.fixture
def slow_sts() -> Iterator[SlowSts]:
    """An STS that does not answer for ada."""
    sts = SlowSts(slow={"ada"})
    yield sts
    sts.released.set()


def test_a_user_for_whom_sts_is_slow_keeps_no_other_user_waiting(slow_sts: SlowSts) -> None:
    role = JobRole(assume=slow_sts, clock=lambda: NOON, wait_s=60)

    async def both() -> JobRoleCredentials:
        waiting = asyncio.create_task(role.of("ada"))
        found = await asyncio.wait_for(role.of("bob"), 10)
        slow_sts.released.set()
        await waiting
        return found

    assert awaited(both()).access_key == "key-1"


def test_while_sts_is_slow_credentials_that_are_still_valid_are_given(slow_sts: SlowSts) -> None:
    slow_sts.slow = set()
    role = JobRole(assume=slow_sts, clock=lambda: slow_sts.now, wait_s=0.05)
    given(role, "ada")
    slow_sts.slow = {"ada"}
    slow_sts.now += timedelta(minutes=55)
    assert given(role, "ada").access_key == "key-1"


def test_while_sts_fails_credentials_that_are_still_valid_are_given(held: JobRole, sts: Sts) -> None:
    given(held, "ada")
    sts.fails = True
    sts.now += timedelta(minutes=55)
    assert given(held, "ada").access_key == "key-1"


def test_credentials_that_have_expired_are_not_given(held: JobRole, sts: Sts) -> None:
    given(held, "ada")
    sts.fails = True
    sts.now += timedelta(minutes=60)
    with pytest.raises(CredentialsError, match=r"^STS does not answer$"):
        given(held, "ada")


def test_a_request_waits_for_sts_only_so_long(slow_sts: SlowSts) -> None:
    with pytest.raises(CredentialsError, match=r"^STS has not answered within 0\.05 s$"):
        given(JobRole(assume=slow_sts, clock=lambda: NOON, wait_s=0.05), "ada")


def test_concurrent_requests_assume_the_role_once(sts: Sts) -> None:
    role = JobRole(assume=sts, clock=lambda: NOON)

    async def eight() -> None:
        await asyncio.gather(*(role.of("ada") for _ in range(8)))

    awaited(eight())
    assert sts.requested == ["ada"]


def test_each_user_has_a_session_of_their_own(held: JobRole, sts: Sts) -> None:
    answer(question(user=4001), held)
    answer(question(user=4002), held)
    assert sts.requested == ["uid-4001", "uid-4002"]


def test_a_role_that_cannot_be_assumed_is_a_document_that_sdks_show(held: JobRole, sts: Sts) -> None:
    sts.fails = True
    assert answer(question(), held) == (503, {"message": "STS does not answer"})


@pytest.mark.parametrize(
    ("name", "session"),
    [
        ("ada", "ada"),
        ("ada@corp.example", "ada@corp.example"),
        ("DOM\\ada", "DOM-ada"),
        ("a", "a-"),
        ("é" * 70, "-" * 64),
    ],
)
def test_a_session_name_has_only_characters_that_sts_accepts(name: str, session: str) -> None:
    assert session_name(2000, lambda _: name) == session


@pytest.mark.parametrize(
    "head",
    [b"", b"POST /credentials HTTP/1.1", b"GET", b"GET / HTTP/1.0\r\n" + b"A: b\r\n" * 200],
    ids=["nothing", "another method", "no path", "200 headers"],
)
def test_what_is_not_a_get_request_is_not_read(head: bytes) -> None:
    assert read_request(head, 2000) is None


def serving_role(
    role: JobRole, listener: socket.socket, read_s: float = 60, connections: int = 512
) -> AbstractContextManager[None]:
    """A block during which the endpoint answers."""
    return serving(LocalServer(responder(role), listener, read_s, connections))


def connected(stack: ExitStack, listener: socket.socket, count: int) -> list[socket.socket]:
    """Clients of the endpoint that have sent nothing."""
    return [stack.enter_context(socket.create_connection(listener.getsockname(), 10)) for _ in range(count)]


def test_two_hundred_concurrent_requests_are_all_answered(held: JobRole) -> None:
    with listen(port=0) as listener, ExitStack() as stack:
        clients = connected(stack, listener, 200)  # nobody serves them yet
        with serving_role(held, listener):
            for client in clients:
                client.settimeout(60)
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answered = [client.recv(12) for client in clients]
    assert answered == [b"HTTP/1.0 404"] * 200


def test_three_hundred_silent_connections_take_no_thread_and_no_answer_from_others(held: JobRole) -> None:
    with listen(port=0) as listener, serving_role(held, listener, connections=50), ExitStack() as stack:
        before = set(threading.enumerate())  # those of an earlier test may still end
        connected(stack, listener, 300)
        (honest,) = connected(stack, listener, 1)
        honest.settimeout(60)
        honest.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert (honest.recv(12), set(threading.enumerate()) - before) == (b"HTTP/1.0 404", set())


def test_the_endpoint_waits_five_seconds_for_a_request_and_holds_512_connections(held: JobRole) -> None:
    with listen(port=0) as listener:
        server = credentials_server(held, listener)
    assert (server._read_s, server._connections) == (5.0, 512)


def test_a_request_that_does_not_arrive_in_time_is_not_awaited(held: JobRole) -> None:
    with listen(port=0) as listener, serving_role(held, listener, read_s=0.1), ExitStack() as stack:
        (client,) = connected(stack, listener, 1)
        client.sendall(b"GET / HTTP/1.0\r\n")
        assert client.recv(12) == b""


def test_a_request_without_an_end_is_refused(held: JobRole) -> None:
    with listen(port=0) as listener, serving_role(held, listener), ExitStack() as stack:
        (client,) = connected(stack, listener, 1)
        client.sendall(b"x" * (16 * 1024 + 1))
        assert client.recv(12) == b"HTTP/1.0 400"


def test_an_aws_sdk_reads_the_answer(held: JobRole) -> None:
    with listen(port=0) as listener, serving_role(held, listener):
        url = "http://{}:{}/credentials".format(*listener.getsockname())
        with pytest.raises(MetadataRetrievalError) as refused:
            ContainerMetadataFetcher(sleep=lambda _: None).retrieve_full_uri(url)
    assert "invalid Host header" in str(refused.value)


def test_the_box_gives_credentials_of_the_job_role(aws: Clients) -> None:
    held = given(role(aws("sts"), JOB), "ada")
    assert held.expires - datetime.now(UTC) > timedelta(minutes=59)


def test_a_role_that_sts_refuses_is_named(aws: Clients) -> None:
    with pytest.raises(CredentialsError, match=r"^cannot assume the job role nonsense: "):
        given(role(aws("sts"), "nonsense"), "ada")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """What every machine has, installed."""
    install(placements_for({}, AgentRole.COMPUTE, "train"), tmp_path)
    tmp_path.chmod(0o755)
    for work_dir in list(tmp_path.parents)[:3]:
        work_dir.chmod(work_dir.stat().st_mode | 0o055)
    return tmp_path


def as_user(user: int, script: str) -> str:
    """What a shell script prints that this user runs."""
    assert probe_host().users, probe_host().problem
    root = ("unshare", *probe_host().user_namespace_options) if probe_host().user_namespace_options else ()
    switch = (*root, "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
    command, environment = [*switch, "sh", "-c", script], {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


@pytest.mark.box
@pytest.mark.parametrize(("user", "uri"), [(2000, "http://127.0.0.1:250/credentials"), (0, "none")])
def test_a_login_gets_the_job_role_and_root_keeps_the_machines(files: Path, user: int, uri: str) -> None:
    script = f'. {files}/etc/profile.d/corral-credentials.sh; echo "${{{VARIABLE}:-none}}"'
    assert as_user(user, script) == f"{uri}\n"


@pytest.mark.box
@pytest.mark.parametrize(
    ("user", "printed"),
    [(2000, "export AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:250/credentials\n"), (0, "")],
)
def test_the_task_prolog_prints_the_job_roles_variable(files: Path, user: int, printed: str) -> None:
    assert as_user(user, f"{files}/opt/corral/bin/task-prolog") == printed


def test_containers_of_enroot_have_the_task_prolog_at_its_path_and_cannot_change_it(files: Path) -> None:
    lines = (files / "etc/enroot/mounts.d/50-corral.fstab").read_text().splitlines()
    source, target, kind, options = next(line.split() for line in lines if not line.startswith("#"))
    assert (source, target, kind) == ("/opt/corral/bin/task-prolog", "/opt/corral/bin/task-prolog", "none")
    assert {"x-create=file", "bind", "ro"} - {*options.split(",")} == set()
    assert os.access(f"{files}{source}", os.X_OK)
