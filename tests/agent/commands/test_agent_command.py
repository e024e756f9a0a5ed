"""`corral-agent` on the command line: exit codes, and no traceback for a user's mistake."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.stores import manifest_of
from corral.agent.__main__ import COMMANDS, main
from corral.agent.autoscaler.request_queue import pending_requests
from corral.model.head_report import ACCOUNTING_NOT_SAVED, HISTORY_NOT_SAVED
from corral.model.serialization import to_json
from corral.render import cluster_files, deployed_json
from render.plans import deployed, dev

MODULES = Path(__file__).parents[3] / "modules"


def agent(*arguments: str, programs: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    """What the agent did, run by a Python that sees no installed package. `programs`: where it finds others."""
    environment = {"PATH": programs, "PYTHONPATH": str(MODULES)}
    command = [sys.executable, "-S", "-m", "corral.agent", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_install_can_use_a_directory_instead_of_the_bucket(tmp_path: Path) -> None:
    files = {**cluster_files(dev()), "deployed.json": deployed_json(deployed())}
    for name, text in files.items():
        (tmp_path / "bucket" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bucket" / name).write_text(text)
    (tmp_path / "bucket/manifest.json").write_text(to_json(manifest_of(tmp_path / "bucket")))
    done = agent("install", "--role", "head", "--store", str(tmp_path / "bucket"), "--root", str(tmp_path / "root"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "root/etc/slurm/slurm.conf").read_text() == files["slurm/slurm.conf"]


def test_a_command_that_does_not_exist_is_an_error_of_usage() -> None:
    done = agent("reboot")
    assert (done.returncode, "invalid choice: 'reboot'" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["resume", "resume-failed", "suspend"])
def test_slurms_programs_write_a_request(tmp_path: Path, command: str) -> None:
    done = agent(command, "train-[1-2]", "--spool", str(tmp_path), "--wake-socket", str(tmp_path / "wake_socket"))
    assert done.returncode == 0, done.stderr
    assert [(request.verb, request.nodes) for request in pending_requests(tmp_path)] == [
        (command, ("train-1", "train-2"))
    ]


def test_slurms_programs_print_nothing_on_success(tmp_path: Path) -> None:
    done = agent("resume", "train-1", "--spool", str(tmp_path), "--wake-socket", str(tmp_path / "wake_socket"))
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("command", ["resume", "resume-failed", "suspend"])
def test_nodes_must_be_named(command: str) -> None:
    assert agent(command).returncode == 2


@pytest.mark.parametrize("command", ["resume", "resume-failed", "suspend"])
def test_a_request_that_cannot_be_written_is_one_sentence(tmp_path: Path, command: str) -> None:
    done = agent(command, "train-1", "--spool", str(tmp_path / "none"))
    found = (done.returncode, len(done.stderr.splitlines()), f"ERROR {command}: [Errno 2] No such file" in done.stderr)
    assert found == (1, 1, True)


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ("other.json", "No such file or directory: "),
        ("cluster.json", "cannot read the records in "),
    ],
)
def test_an_autoscaler_without_its_records_is_one_sentence(tmp_path: Path, records: str, sentence: str) -> None:
    (tmp_path / records).write_text("{}")
    done = agent("autoscaler", "--records", str(tmp_path), "--wake-socket", str(tmp_path / "wake_socket"))
    assert (done.returncode, len(done.stderr.splitlines()), sentence in done.stderr) == (1, 1, True)


def test_a_backup_tries_all_parts_before_it_fails(tmp_path: Path) -> None:
    done = agent("backup", "--records", str(tmp_path), "--state-dir", str(tmp_path))
    found = [sentence in done.stderr for sentence in (f"backup: {HISTORY_NOT_SAVED}: ", f"; {ACCOUNTING_NOT_SAVED}: ")]
    assert (done.returncode, len(done.stderr.splitlines()), found) == (1, 1, [True, True])


def test_a_silent_slurmctld_is_reported_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'Slurmctld(primary) at head is DOWN'\nexit 1\n")
    (tmp_path / "scontrol").chmod(0o755)
    done = agent("status", "--records", str(tmp_path), "--state-dir", str(tmp_path), programs=str(tmp_path))
    assert (done.returncode, done.stderr.partition(" ERROR status: ")[2]) == (
        1,
        "slurmctld on the head does not answer - run `systemctl restart slurmctld` on the head to restart it,"
        " `journalctl -u slurmctld` to see why\n",
    )


def test_no_command_is_an_error_of_usage() -> None:
    assert agent().returncode == 2


def test_an_empty_store_is_one_sentence(tmp_path: Path) -> None:
    done = agent("install", "--role", "head", "--store", str(tmp_path), "--root", str(tmp_path / "root"))
    assert (done.returncode, len(done.stderr.splitlines()), "manifest.json" in done.stderr) == (1, 1, True)


def test_missing_facts_are_one_sentence(tmp_path: Path) -> None:
    done = agent("boot", "--role", "head", "--facts", str(tmp_path / "boot.json"))
    assert (done.returncode, len(done.stderr.splitlines()), "No such file" in done.stderr) == (1, 1, True)


def test_broken_facts_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "boot.json").write_text("{}")
    done = agent("boot", "--role", "head", "--facts", str(tmp_path / "boot.json"))
    assert (done.returncode, len(done.stderr.splitlines()), "missing fields" in done.stderr) == (1, 1, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_describes_its_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert (ended.value.code, capsys.readouterr().out.startswith(f"usage: corral-agent {command} ")) == (0, True)


def test_a_boot_of_a_node_loads_nothing_that_only_a_head_needs() -> None:
    script = (
        "import sys; from corral.agent.__main__ import parser;"
        "parser(['boot', '--role', 'compute']);"
        "print(sorted(sys.modules.keys() & {f'corral.agent.{name}' for name in sys.argv[1:]}))"
    )
    heads = ["head_commands", "boot_head", "keep", "turn", "apply", "accounting", "dns", "report", "drain"]
    done = subprocess.run([sys.executable, "-c", script, *heads], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
