"""The command that leads ssh to the sshd of a box's machine ends with either of its sides."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from corral.cli.commands.ssh_config import TO_SSHD

ENDS_IN_S = 20.0


@contextmanager
def connected() -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    """A server's end of the connection, and the command."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = TO_SSHD.replace("/22", f"/{server.getsockname()[1]}")
        with subprocess.Popen(["bash", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                yield server.accept()[0], process
            finally:
                process.kill()


def test_each_side_hears_the_other() -> None:
    with connected() as (server, process):
        assert process.stdin and process.stdout
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        assert server.recv(100) == b"hello\n"
        server.sendall(b"well\n")
        assert process.stdout.readline() == b"well\n"
        server.close()


def test_ssh_sees_the_end_when_sshd_has_closed() -> None:
    with connected() as (server, process):
        assert process.stdout
        server.sendall(b"bye")
        server.close()
        process.wait(ENDS_IN_S)
        assert process.stdout.read() == b"bye"


def test_sshd_sees_the_end_when_ssh_has_gone() -> None:
    with connected() as (server, process):
        assert process.stdin
        process.stdin.close()
        server.settimeout(ENDS_IN_S)
        assert server.recv(100) == b""
        server.close()
