"""The preflight check of Pulumi's state backend."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from corral.engine.backend.stack_locks import LockHolder
from corral.engine.lifecycle.backend_check import BackendStatus, evaluate, state_check, states_as_data
from corral.preflight.checks import run
from corral.preflight.preflight_findings import PreflightRequest
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT, dev_base, dev_cluster

WANTED = PreflightRequest(base=dev_base(), cluster=dev_cluster(), now=datetime(2026, 11, 22, tzinfo=UTC))


def test_missing_backend_is_reported_with_the_command_that_creates_one(tmp_path: Path) -> None:
    (finding,) = run([state_check(tmp_path, {"HOME": str(tmp_path)})], None, WANTED)
    assert (finding.verdict, finding.message, finding.fix.split("; ")[1]) == (
        "fail",
        "no state backend is configured: PULUMI_BACKEND_URL is not set",
        "`corral bootstrap` creates a bucket and prints what to set",
    )


def test_existing_state_directory_is_ok(tmp_path: Path) -> None:
    (finding,) = run([state_check(tmp_path, {"PULUMI_BACKEND_URL": f"file://{tmp_path}"})], None, WANTED)
    assert (finding.verdict, finding.message) == ("ok", f"file://{tmp_path}")


def test_missing_state_directory_is_a_warning(tmp_path: Path) -> None:
    directory = tmp_path / "not" / "mounted"
    (finding,) = run([state_check(tmp_path, {"PULUMI_BACKEND_URL": f"file://{directory}"})], None, WANTED)
    assert (finding.verdict, finding.message) == (
        "warn",
        f"{directory} does not exist; the first `corral up` creates it empty",
    )


@pytest.mark.parametrize("below", ["file", "file/states"])
def test_state_directory_that_cannot_be_created_is_a_failure(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    directory = tmp_path / below
    (finding,) = run([state_check(tmp_path, {"PULUMI_BACKEND_URL": f"file://{directory}"})], None, WANTED)
    assert (finding.verdict, finding.message) == ("fail", f"{directory} is not a directory and cannot be created")


def test_holder_of_a_stack_lock_is_reported() -> None:
    holder = LockHolder(pid=4711, since=datetime(2026, 11, 22, 9, 30, tzinfo=UTC), host="laptop", user="ann")
    *_, finding = evaluate(WANTED, BackendStatus(url="s3://states", holders={"cluster dev": holder}))
    assert (finding.about, finding.message) == (
        "cluster dev",
        "locked by Pulumi: process 4711 of ann on laptop, since 2026-11-22 09:30 UTC",
    )


@pytest.mark.parametrize(("bucket", "paths"), [("corral-example-corpus", ["storage.lustre[0].data[0].s3"]), ("x", [])])
def test_a_file_system_is_not_linked_to_the_bucket_of_the_states(bucket: str, paths: list[str]) -> None:
    errors = states_as_data(f"s3://{bucket}?region=us-east-1", read_environment(PROJECT, "dev"))
    assert [one.path for one in errors] == paths
