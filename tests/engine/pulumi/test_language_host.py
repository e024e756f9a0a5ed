"""The Python language host: its executable, its end, and the output of a failing program."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corral.engine.pulumi.language_host import install
from corral.engine.pulumi.language_host.program import ProgramLaunch, program_error_text

HOST = [sys.executable, "-m", "corral.engine.pulumi.language_host", "127.0.0.1:1"]
LAUNCH = ProgramLaunch(
    program="/p/__main__.py",
    folder="/p",
    root="/p",
    monitor="127.0.0.1:1",
    engine="127.0.0.1:2",
    organization="organization",
    project="corral-base",
    stack="dev",
    parallel=8,
    dry_run=True,
)


def _started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )


def test_installed_executable_has_no_fixed_python(tmp_path: Path) -> None:
    """Two checkouts share a cached CLI and this file: neither may run its programs with the other's modules."""
    assert install(tmp_path).read_text().splitlines()[-1] == (
        'exec "${CORRAL_PYTHON:-python3}" -m corral.engine.pulumi.language_host "$@"'
    )


def test_the_installed_executable_prints_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRAL_PYTHON", sys.executable)
    with _started([str(install(tmp_path)), "127.0.0.1:1"]) as host:
        assert host.stdout and host.stdin
        port = host.stdout.readline().strip()
        host.stdin.close()
    assert port.isdigit()


def test_installing_twice_leaves_the_file_alone(tmp_path: Path) -> None:
    first = install(tmp_path).stat().st_ino
    assert install(tmp_path).stat().st_ino == first


def test_language_host_ends_with_its_engine() -> None:
    with _started(HOST) as host:
        assert host.stdout and host.stdin
        host.stdout.readline()
        host.stdin.close()
        assert host.wait(timeout=120) == 0


def test_interrupt_ends_the_language_host_without_a_traceback() -> None:
    with _started(HOST) as host:
        assert host.stdout and host.stderr
        host.stdout.readline()
        host.send_signal(signal.SIGINT)
        host.wait(timeout=120)
        assert host.stderr.read() == ""


def test_program_ends_with_its_language_host() -> None:
    with _started([sys.executable, "-m", "corral.engine.pulumi.language_host.program", LAUNCH.to_json()]) as program:
        assert program.stdin
        program.stdin.close()
        assert program.wait(timeout=120) == 1


def test_instance_launch_survives_the_command_line() -> None:
    assert ProgramLaunch.from_json(json.dumps(json.loads(LAUNCH.to_json()))) == LAUNCH


def test_a_failing_program_is_shown_from_its_own_first_line() -> None:
    try:
        json.loads("{wrong}")
    except ValueError as error:
        shown = program_error_text(error, str(Path(__file__).parents[1])).splitlines()
    assert (shown[0], shown[1], "test_language_host.py" in shown[2], shown[-1].partition(":")[0]) == (
        "the program failed:",
        "Traceback (most recent call last):",
        True,
        "json.decoder.JSONDecodeError",
    )


def test_failed_function_call_is_shown_without_a_traceback() -> None:
    refused = Exception("invoke of aws:ssm/getParameter:getParameter failed: the box does not answer")
    assert (
        program_error_text(refused, "/p")
        == "invoke of aws:ssm/getParameter:getParameter failed: the box does not answer"
    )
