"""What the engine starts in place of Python behaves as Python does."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from forked_plugins import python_that_forks

LANGUAGE_HOST = ("-m", "corral.engine.pulumi.language_host", "127.0.0.1:1")
PROGRAM = ("-u", "-m", "corral.engine.pulumi.language_host.program")
TYPES = ("-P", "-m", "corral.box.provider", "--types")


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([python_that_forks(), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def port_and_process(host: subprocess.Popen[str]) -> tuple[int, int]:
    """The port that a language host prints, and the process that listens there."""
    assert host.stdout is not None
    port = int(host.stdout.readline())
    listed = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return port, int(listed.partition("pid=")[2].partition(",")[0])


def test_a_plugin_prints_and_ends_as_one_that_loads_itself() -> None:
    forked, real = (
        subprocess.run([python, *TYPES], capture_output=True, text=True)
        for python in (python_that_forks(), sys.executable)
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)


def test_a_program_that_cannot_start_ends_as_one_that_loads_itself() -> None:
    codes = [
        subprocess.run([python, *PROGRAM, "{}"], capture_output=True, stdin=subprocess.PIPE).returncode
        for python in (python_that_forks(), sys.executable)
    ]
    assert codes == [1, 1]


def test_the_plugin_is_a_fork() -> None:
    with started(*LANGUAGE_HOST) as host:
        _, pid = port_and_process(host)
        assert pid != host.pid
        assert parent(pid) != host.pid


def test_a_plugin_ends_with_its_engine() -> None:
    with started(*LANGUAGE_HOST) as host:
        port_and_process(host)
        assert host.stdin is not None
        host.stdin.close()
        assert host.wait() == 0


def test_a_killed_plugin_is_gone() -> None:
    with started(*LANGUAGE_HOST) as host:
        _, pid = port_and_process(host)
        process = os.pidfd_open(pid)
        host.kill()
        assert select.select([process], [], [], 20)[0] == [process]
        os.close(process)


@pytest.mark.parametrize("words", [("-c", "print(6 * 7)"), ("-m", "calendar", "2026", "1")], ids=" ".join)
def test_anything_else_is_pythons(words: tuple[str, ...]) -> None:
    done = subprocess.run([python_that_forks(), *words], capture_output=True, text=True, check=True)
    assert done.stdout == subprocess.run([sys.executable, *words], capture_output=True, text=True).stdout
