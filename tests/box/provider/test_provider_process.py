"""The provider as a process: its output and its end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from corral.box.provider import install, sdk_version

COMMAND = [sys.executable, "-m", "corral.box.provider"]


def _started(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )


def test_it_prints_its_port_and_ends_with_its_input() -> None:
    with _started(COMMAND) as process:
        assert process.stdout and process.stdin
        port = process.stdout.readline().strip()
        process.stdin.close()
        assert (port.isdigit(), process.wait(timeout=10)) == (True, 0)


def test_an_interrupt_ends_it_without_a_traceback() -> None:
    with _started(COMMAND) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=10)
        assert process.stderr.read() == ""


def test_the_installed_plugin_is_where_the_engine_looks_for_it(tmp_path: Path) -> None:
    plugin = install(tmp_path)
    with _started([str(plugin)]) as process:
        assert process.stdout and process.stdin
        port = process.stdout.readline().strip()
        process.stdin.close()
    where = f"plugins/resource-aws-v{sdk_version()}/pulumi-resource-aws"
    assert (str(plugin.relative_to(tmp_path)), port.isdigit()) == (where, True)


def test_types_are_listed() -> None:
    listed = subprocess.run([*COMMAND, "--types"], capture_output=True, text=True, check=True).stdout
    assert (
        "aws:ec2/internetGateway:InternetGateway\n    inputs: vpcId, tags, region!\n    outputs: arn, ownerId\n"
        in listed
    )
