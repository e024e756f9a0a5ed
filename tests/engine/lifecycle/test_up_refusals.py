"""Errors of `corral up` before it starts: sentences without a traceback."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from corral.engine.pulumi.binary import find_pulumi
from environments import PROJECT
from forked_corral import run_corral

pytestmark = pytest.mark.pulumi
BOX_HINT = "  or add --box to use the local AWS emulator"


def up(home: Path, *arguments: str, **more: str) -> tuple[int, list[str]]:
    """The exit code and stderr lines of `corral up dev`, with only these environment variables."""
    environment: Mapping[str, str] = {
        "PATH": f"{find_pulumi().path.parent}:/usr/bin:/bin",
        "HOME": str(home),
        "AWS_EC2_METADATA_DISABLED": "true",
        **more,
    }
    done = run_corral("up", "dev", "--yes", *arguments, cwd=PROJECT, env=environment)
    return done.returncode, done.stderr.splitlines()


def test_without_a_state_backend_it_never_falls_back_to_a_hosted_one(tmp_path: Path) -> None:
    code, lines = up(tmp_path)
    assert (code, lines[0]) == (
        2,
        "corral: no state backend is configured: PULUMI_BACKEND_URL is not set",
    )


def test_missing_credentials_are_reported_with_how_to_sign_in(tmp_path: Path) -> None:
    assert up(tmp_path, PULUMI_BACKEND_URL=f"file://{tmp_path}") == (
        3,
        [
            "corral: no AWS credentials were found",
            "  sign in with `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            BOX_HINT,
        ],
    )


def test_missing_pulumi_is_reported_with_how_to_install_it(tmp_path: Path) -> None:
    code, lines = up(tmp_path, "--box", PATH="/usr/bin:/bin", CORRAL_BOX_DIR=str(tmp_path / "box"))
    run_corral("box", "stop", "--dir", str(tmp_path / "box")).check_returncode()
    assert (code, lines[0]) == (1, "corral: Pulumi CLI not found in $CORRAL_PULUMI, on PATH or in corral's cache")


def test_unusable_state_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "box").write_text("a file where the directory should be")
    code, lines = up(tmp_path, "--box", CORRAL_BOX_DIR=str(tmp_path / "box"))
    assert (code, len(lines), str(tmp_path / "box") in lines[0]) == (1, 1, True)


def test_up_without_a_terminal_needs_yes(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "CORRAL_BOX_DIR": str(tmp_path / "box")}
    done = run_corral("up", "dev", "--box", cwd=PROJECT, env=environment)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "corral: cannot ask for confirmation without a terminal",
    )
