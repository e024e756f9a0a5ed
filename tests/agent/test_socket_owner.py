"""Whose the other end of a connection is: real connections of real users, by the kernel's lookup and by its tables."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from corral.agent import socket_owner
from corral.agent.local_http import listen
from corral.agent.socket_owner import Owner, Socket, SocketOwners, looked_up, owner_in

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="connections of other users need root: run the tests as root")
both_ways = pytest.mark.parametrize("has_lookup", [True, False], ids=["lookup", "tables"])
ADA, EVE = 4001, 4002
CONNECTS = """import socket, struct, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
client = socket.socket(family)
client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
client.bind((sys.argv[1], int(sys.argv[2])))
client.connect((sys.argv[3], int(sys.argv[4])))
print(client.getsockname()[1], flush=True)
sys.stdin.readline()
if sys.argv[5] == "reset":
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
if sys.argv[5] != "silent":
    client.sendall(b"POST /topic HTTP/1.0\\r\\n\\r\\n")
client.close()
"""
# As the kernel writes it: 127.0.0.1:40000 of user 2000 calls port 250, and the endpoint's own end of it is root's.
TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:00FA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:00FA 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2 1
   2: 0200007F:9C40 0100007F:00FA 01 00000000:00000000 00:00000000 00000000  4000        0 5 1
   3: 0100007F:9C40 0100007F:0050 01 00000000:00000000 00:00000000 00000000  3000        0 4 1
   4: 0100007F:9C40 0100007F:00FA 01 00000000:00000000 00:00000000 00000000  2000        0 3 1
   5: 0100007F:9C41 0100007F:00FA 06 00000000:00000000 03:00000000 00000000     0        0 0 3
   0: 0000000000000000FFFF00000100007F:9C42 0000000000000000FFFF00000100007F:00FA 01 0:0 00:0 0  2001 0 6 1
"""


@contextmanager
def connecting(
    listener: socket.socket, user: int, source: tuple[str, int] = ("127.0.0.1", 0), ends: str = "silent"
) -> Iterator[tuple[subprocess.Popen[str], int, socket.socket]]:
    """A process of this user with a connection to the listener: it, its port, and the accepted connection.

    A line to it, and it ends the connection in this way.
    """
    host, port = listener.getsockname()
    served = f"::ffff:{host}" if ":" in source[0] else host
    command = ("/usr/bin/python3", "-I", "-c", CONNECTS, source[0], str(source[1]), served, str(port), ends)
    listener.setblocking(True)
    with subprocess.Popen(
        command,
        user=user,
        group=user,
        extra_groups=[],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    ) as process:
        assert process.stdout
        connection, _ = listener.accept()
        with connection:
            yield process, int(process.stdout.readline()), connection
            process.kill()


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n")
    assert process.returncode == 0


def owners(listener: socket.socket, has_lookup: bool) -> SocketOwners:
    found = SocketOwners(listener)
    found.has_lookup = has_lookup
    return found


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with listen(port=0) as made:
        yield made


@as_root
@both_ways
@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1"])
def test_the_kernel_knows_the_user_of_a_connection(address: str, has_lookup: bool, listener: socket.socket) -> None:
    with connecting(listener, ADA, (address, 0)) as (_, _, connection):
        assert owners(listener, has_lookup).user_of(connection) == ADA


@as_root
@both_ways
def test_who_connects_from_anothers_port_at_another_address_is_themselves(
    has_lookup: bool, listener: socket.socket
) -> None:
    with (
        connecting(listener, ADA) as (_, port, of_ada),
        connecting(listener, EVE, ("127.0.0.2", port)) as (_, _, of_eve),
    ):
        found = owners(listener, has_lookup)
        assert (found.user_of(of_ada), found.user_of(of_eve)) == (ADA, EVE)


@as_root
@both_ways
def test_who_sends_and_leaves_is_nobody(has_lookup: bool, listener: socket.socket) -> None:
    with connecting(listener, EVE, ends="sends") as (process, _, connection):
        end(process)
        assert owners(listener, has_lookup).user_of(connection) is None


@as_root
@both_ways
def test_a_connection_that_was_reset_is_not_that_of_the_next_user_of_its_port(
    has_lookup: bool, listener: socket.socket
) -> None:
    with connecting(listener, EVE, ends="reset") as (process, port, connection):
        end(process)
        with connecting(listener, ADA, ("127.0.0.1", port)) as (_, _, of_ada):
            found = owners(listener, has_lookup)
            assert (found.user_of(connection), found.user_of(of_ada)) == (None, ADA)


@as_root
def test_who_gets_the_port_during_the_look_is_not_the_user(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        process, port, connection = stack.enter_context(connecting(listener, EVE, ends="reset"))
        found = SocketOwners(listener)

        def late(wanted: Socket) -> Owner | None:
            end(process)
            stack.enter_context(connecting(listener, ADA, ("127.0.0.1", port)))
            return looked_up(wanted)

        monkeypatch.setattr(socket_owner, "looked_up", late)
        assert found.user_of(connection) is None


@as_root
def test_one_socket_is_looked_up_without_a_table(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_owner, "_TABLES", ())
    with connecting(listener, ADA) as (_, _, connection):
        assert SocketOwners(listener).user_of(connection) == ADA


@both_ways
def test_who_only_closed_their_end_is_nobody(has_lookup: bool, listener: socket.socket) -> None:
    listener.setblocking(True)
    with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as connection:
        client.close()
        assert owners(listener, has_lookup).user_of(connection) is None


def test_where_a_connection_is_gone_who_listens_on_its_port_is_not_its_user(listener: socket.socket) -> None:
    """For ports without a connection the kernel names the socket that listens on the first one."""
    itself, gone = (Socket(*listener.getsockname(), *peer) for peer in (("0.0.0.0", 0), ("127.0.0.1", 9)))
    found = looked_up(itself)
    assert (found and found.user, looked_up(gone)) == (os.geteuid(), None)


@pytest.mark.parametrize(
    ("address", "port", "owner"),
    [
        ("127.0.0.1", 40000, Owner(user=2000, inode=3)),
        ("127.0.0.2", 40000, Owner(user=4000, inode=5)),
        ("127.0.0.1", 40001, Owner(user=0, inode=0)),
        ("127.0.0.1", 40002, Owner(user=2001, inode=6)),
        ("127.0.0.1", 40003, None),
    ],
    ids=["one", "same port elsewhere", "left", "by IPv6", "none"],
)
def test_a_table_has_the_owner_of_both_ends(address: str, port: int, owner: Owner | None) -> None:
    assert owner_in(TABLE, Socket(address, port, "127.0.0.1", 250)) == owner
