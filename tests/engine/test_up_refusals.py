"""What `corral up` says, without a traceback, where it cannot even begin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from corral.engine.binary import find_pulumi
from environments import PROJECT

pytestmark = pytest.mark.pulumi
BOX_HINT = "  or add --box to use the AWS on this machine"


def up(home: Path, *arguments: str, **more: str) -> tuple[int, list[str]]:
    """The exit code and the lines on stderr of `corral up dev`, with nothing in the environment but this."""
    environment: Mapping[str, str] = {
        "PATH": f"{find_pulumi().path.parent}:/usr/bin:/bin",
        "HOME": str(home),
        "AWS_EC2_METADATA_DISABLED": "true",
        **more,
    }
    command = [sys.executable, "-m", "corral.cli", "up", "dev", "--yes", *arguments]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.splitlines()


def test_without_a_state_backend_it_never_falls_back_to_a_hosted_one(tmp_path: Path) -> None:
    code, told = up(tmp_path)
    assert (code, told[0]) == (
        2,
        "corral: where the state of the stacks is kept is not said: PULUMI_BACKEND_URL is not set",
    )


def test_without_credentials_it_says_how_to_sign_in(tmp_path: Path) -> None:
    assert up(tmp_path, PULUMI_BACKEND_URL=f"file://{tmp_path}") == (
        3,
        [
            "corral: no AWS credentials were found",
            "  sign in with `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            BOX_HINT,
        ],
    )


def test_without_pulumi_it_says_how_to_get_it(tmp_path: Path) -> None:
    code, told = up(tmp_path, "--box", PATH="/usr/bin:/bin", CORRAL_BOX_DIR=str(tmp_path / "box"))
    subprocess.run([sys.executable, "-m", "corral.cli", "box", "stop", "--dir", str(tmp_path / "box")], check=True)
    assert (code, told[0]) == (1, "corral: no Pulumi CLI was found: neither $CORRAL_PULUMI, nor on PATH, nor cached")


def test_a_read_only_state_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "box").write_text("a file where the directory should be")
    code, told = up(tmp_path, "--box", CORRAL_BOX_DIR=str(tmp_path / "box"))
    assert (code, len(told), str(tmp_path / "box") in told[0]) == (1, 1, True)


def test_where_nobody_can_be_asked_it_does_not_guess(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "CORRAL_BOX_DIR": str(tmp_path / "box")}
    command = [sys.executable, "-m", "corral.cli", "up", "dev", "--box"]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "corral: nobody can be asked here, as this is no terminal",
    )
