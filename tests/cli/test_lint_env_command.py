"""`corral lint-env` as a command: inputs, output, exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest
from calls import CORRAL, HOME, REPOSITORY, clean_environment, corral

SCRIPT = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --export=ALL,NCCL_DEBUG=INFO
export FI_PROVIDER=efa
export NCCL_SOCKET_IFNAMES=eth0
srun python train.py
"""


def lint(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return corral("lint-env", *arguments, **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}))


def document(*arguments: str, stdin: str) -> Any:
    return json.loads(lint("-", "--json", *arguments, stdin=stdin).stdout)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.sbatch"
    file.write_text(SCRIPT)
    return file


def test_each_variable_has_its_line_and_verdict(script: Path) -> None:
    lines = [line for line in lint(str(script)).stdout.splitlines() if line.startswith(f"{script}:") and "=" in line]
    assert lines == [
        f"{script}:3 NCCL_DEBUG=INFO  fine",
        f"{script}:4 FI_PROVIDER=efa  wrong",
        f"{script}:5 NCCL_SOCKET_IFNAMES=eth0  unknown",
    ]


def test_reason_and_fix_follow_below(script: Path) -> None:
    shown = " ".join(lint(str(script)).stdout.split())
    assert "wrong since aws-ofi-nccl 1.6.0: the plugin requests EFA itself - unset it [2]" in shown


def test_the_sources_are_at_the_end(script: Path) -> None:
    assert "[2]  aws/aws-ofi-nccl, doc/efa-env-var.md (EFA Cheatsheet)" in lint(str(script)).stdout


def test_wrong_variable_exits_with_2(script: Path) -> None:
    assert lint(str(script)).returncode == 2


def test_wrong_variable_before_a_command_exits_with_2() -> None:
    assert lint("-", stdin="NCCL_P2P_DISABLE=1 torchrun t.py\n").returncode == 2


@pytest.mark.parametrize("text", ["NCCL_DEBUG=WARN", "FI_EFA_FORK_SAFE=1", "NCCL_NOTHING=1", "PATH=/bin"])
def test_no_wrong_variable_exits_with_0(text: str) -> None:
    assert lint("-", stdin=text).returncode == 0


def test_text_without_such_variables_is_shown_as_such() -> None:
    assert lint("-", stdin="PATH=/bin\n").stdout.strip().startswith("-: no variable of NCCL, libfabric or EFA")


def test_last_line_shows_the_assumed_versions() -> None:
    last = " ".join(lint("-", "--type", "p5.48xlarge", "--installer", "1.50.0", stdin="PATH=/bin\n").stdout.split())
    assert last.endswith("p5.48xlarge, aws-ofi-nccl 1.21.1, libfabric 2.6.0, EFA installer 1.50.0, NCCL 2.31.2")


def test_an_unknown_installer_is_reported_once_on_a_terminal_and_in_the_document() -> None:
    sentence = "EFA installer 1.99.0 is newer than the known installers (1.40.0 to 1.51.0): using 1.51.0"
    shown = " ".join(lint("-", "--installer", "1.99", stdin="FI_PROVIDER=efa\nNCCL_DEBUG=INFO\n").stdout.split())
    warning = document("--installer", "1.99", stdin="FI_PROVIDER=efa\nNCCL_DEBUG=INFO\n")["warning"]
    assert (shown.count(sentence), warning.partition(", which installs")[0]) == (1, sentence)


def test_version_without_a_patch_number_means_patch_0() -> None:
    found = document("--installer", "1.50", stdin="FI_PROVIDER=efa\n")
    assert (found["versions"]["installer"], found["versions"]["plugin"], found["warning"]) == ("1.50.0", "1.21.1", None)


def test_json_document_has_this_shape() -> None:
    assert document("--type", "p5.48xlarge", stdin="NCCL_ALGO=$X\n") == {
        "schema": "corral.lint-env/3",
        "file": "-",
        "instance_type": "p5.48xlarge",
        "versions": {"plugin": "1.22.0", "libfabric": "2.7.0", "installer": "1.51.0", "nccl": "2.31.2"},
        "warning": None,
        "counts": {"wrong": 0, "harmful": 1, "needless": 0, "fine": 0, "unknown": 0},
        "findings": [
            {
                "line": 1,
                "variable": "NCCL_ALGO",
                "value": None,
                "verdict": "harmful",
                "since": None,
                "message": "overrides the tuner, which chooses the algorithm by message size, nodes and type",
                "fix": "unset it",
                "source": "aws/aws-ofi-nccl, doc/tuner.md",
            }
        ],
    }


def test_document_on_the_page_has_the_keys_of_the_command() -> None:
    page = (REPOSITORY / "docs" / "lint-env.md").read_text()
    shown = json.loads(page.partition("```json\n")[2].partition("\n```")[0])
    real = document("--type", "p5.48xlarge", stdin="FI_PROVIDER=efa\n")
    assert (shown.keys(), shown["findings"][0].keys()) == (real.keys(), real["findings"][0].keys())


def test_version_options_are_used() -> None:
    assert document("--plugin", "1.5.0", stdin="FI_PROVIDER=efa\n")["findings"][0]["verdict"] == "fine"


@pytest.mark.parametrize(
    ("arguments", "stdin", "sentence"),
    [
        (["-"], "", "stdin is empty - `env | corral lint-env -` checks this shell"),
        (["-"], "a\0b", "- is not a text file - give a script, a Dockerfile or the output of `env`"),
        (["/nowhere"], None, "/nowhere: No such file or directory"),
        (["/"], None, "/: Is a directory"),
        (["-", "--plugin", "new"], "A=1", "--plugin: 'new' is not a version - write it like 1.22.0"),
        (["-", "--type", "p5.48xl"], "A=1", "'p5.48xl' is not in the catalog - did you mean 'p5.48xlarge'?"),
    ],
)
def test_invalid_input_is_one_sentence(arguments: list[str], stdin: str | None, sentence: str) -> None:
    done = lint(*arguments, stdin=stdin)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"corral: {sentence}\n")


def test_binary_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)))
    assert (
        lint(str(tmp_path / "x")).stderr
        == f"corral: {tmp_path}/x is not a text file - give a script, a Dockerfile or the output of `env`\n"
    )


def test_text_in_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("# für\nNCCL_DEBUG=WARN\n".encode("latin-1"))
    assert lint(str(tmp_path / "x")).returncode == 0


def test_a_huge_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"A=1\n" * (2 << 20))
    assert lint(str(tmp_path / "x")).stderr == f"corral: {tmp_path}/x is larger than 4 MiB: not an environment file\n"


def test_terminal_as_stdin_is_an_error() -> None:
    master, slave = pty.openpty()
    command = [*CORRAL, "lint-env", "-"]
    environment = clean_environment(HOME)
    done = subprocess.run(command, stdin=slave, capture_output=True, text=True, env=environment, timeout=30)
    os.close(master)
    os.close(slave)
    sentence = "corral: stdin is a terminal - `env | corral lint-env -` checks this shell\n"
    assert (done.returncode, done.stderr) == (2, sentence)


def test_a_closed_stdin_is_one_sentence() -> None:
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *CORRAL, "lint-env", "-"]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(HOME), timeout=30)
    assert (done.returncode, done.stderr.startswith("corral: stdin is ")) == (2, True)


def test_corrals_own_scripts_have_no_wrong_variable() -> None:
    golden = sorted((REPOSITORY / "tests/golden/render").glob("*/jobs/*/*.sbatch"))
    assert (len(golden), [file for file in golden if lint(str(file)).returncode != 0]) == (13, [])
