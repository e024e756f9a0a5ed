"""The job role on a machine: who gets it, under which session name, how often it is assumed."""

from __future__ import annotations

import socket
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Lock, Thread

import pytest

from box.vpc_fixtures import Clients
from corral.agent.config.file_placements import placements_for
from corral.agent.credentials import (
    CredentialsError,
    CredentialsRequest,
    JobRole,
    JobRoleCredentials,
    credentials_server,
    owner_of,
    respond,
    role,
    session_name,
)
from corral.agent.file_install import install
from corral.box.vpc.capabilities import probe_host
from corral.model.enums import Role as AgentRole

VARIABLE = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
JOB = "arn:aws:iam::123456789012:role/job"
# As the kernel writes it: 127.0.0.1:40000 of user 2000 calls port 250, and the endpoint's own end of it is root's.
TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:00FA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:00FA 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2 1
   2: 0100007F:9C40 0100007F:00FA 01 00000000:00000000 00:00000000 00000000  2000        0 3 1
   3: 0100007F:9C40 0100007F:0050 01 00000000:00000000 00:00000000 00000000  3000        0 4 1
"""
TABLE_6 = """  sl  local_address  remote_address  st tx_queue rx_queue tr uid
   0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:00FA 01 0:0 00:0 0  2001 0 3 1
"""


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
    return JobRole(sts, lambda: sts.now, {}, Lock())


def question(path: str = "/credentials", host: str = "127.0.0.1:250", user: int | None = 2000) -> CredentialsRequest:
    return CredentialsRequest(path=path, host=host, user=user)


def test_a_person_gets_the_job_role_in_the_shape_that_sdks_read(held: JobRole) -> None:
    assert respond(question(), held) == (
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
def test_who_gets_the_job_role(requested: CredentialsRequest, status: int, held: JobRole) -> None:
    assert respond(requested, held)[0] == status


def test_credentials_are_requested_once_while_they_last(held: JobRole, sts: Sts) -> None:
    held.of("ada")
    sts.now += timedelta(minutes=50)
    held.of("ada")
    assert sts.requested == ["ada"]


def test_credentials_are_requested_again_ten_minutes_before_their_end(held: JobRole, sts: Sts) -> None:
    held.of("ada")
    sts.now += timedelta(minutes=50, seconds=1)
    assert held.of("ada").access_key == "key-2"


def test_concurrent_requests_assume_the_role_once() -> None:
    sts, second = Sts(), Event()

    def slowly(session: str) -> JobRoleCredentials:
        """Return once another thread has requested the role, or after a second."""
        given = sts(session)
        second.set() if len(sts.requested) > 1 else second.wait(1)
        return given

    held = JobRole(slowly, lambda: NOON, {}, Lock())
    threads = [Thread(target=held.of, args=("ada",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sts.requested == ["ada"]


def test_each_user_has_a_session_of_their_own(held: JobRole, sts: Sts) -> None:
    respond(question(user=4001), held)
    respond(question(user=4002), held)
    assert sts.requested == ["uid-4001", "uid-4002"]


def test_a_role_that_cannot_be_assumed_is_a_document_that_sdks_show(held: JobRole, sts: Sts) -> None:
    sts.fails = True
    assert respond(question(), held) == (503, {"message": "STS does not answer"})


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


@pytest.mark.parametrize(("port", "user"), [(40000, 2000), (40001, None), (250, None)])
def test_the_kernel_identifies_the_owner_of_a_connection(port: int, user: int | None) -> None:
    assert owner_of(port, TABLE) == user


def test_a_program_with_ipv6_sockets_is_identified_too(sts: Sts) -> None:
    assert owner_of(40000, TABLE_6) == 2001


def test_two_hundred_concurrent_requests_are_all_answered(held: JobRole) -> None:
    server = credentials_server(held, port=0)  # accepts connections, and serves none yet
    with server, ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(server.server_address[:2], 2)) for _ in range(200)]
        Thread(target=server.serve_forever, daemon=True).start()
        for client in clients:
            client.settimeout(60)
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answered = [client.recv(12) for client in clients]
        server.shutdown()
    assert answered == [b"HTTP/1.0 404"] * 200


def test_the_box_gives_credentials_of_the_job_role(aws: Clients) -> None:
    held = role(aws("sts"), JOB).of("ada")
    assert held.expires - datetime.now(UTC) > timedelta(minutes=59)


def test_a_role_that_sts_refuses_is_named(aws: Clients) -> None:
    with pytest.raises(CredentialsError, match=r"^cannot assume the job role nonsense: "):
        role(aws("sts"), "nonsense").of("ada")


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
