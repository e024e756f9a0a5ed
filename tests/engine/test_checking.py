"""The check of where Pulumi keeps its states."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from corral.engine.checking import States, judge, state_check
from corral.engine.locks import Holder
from corral.preflight.checks import run
from corral.preflight.findings import Wanted
from environments import dev_base, dev_cluster

WANTED = Wanted(base=dev_base(), cluster=dev_cluster(), now=datetime(2026, 11, 22, tzinfo=UTC))


def test_a_place_that_nobody_names_is_told_with_what_makes_one(tmp_path: Path) -> None:
    (finding,) = run([state_check(tmp_path, {"HOME": str(tmp_path)})], None, WANTED)
    assert (finding.verdict, finding.text, finding.fix.split("; ")[1]) == (
        "fail",
        "where the state of the stacks is kept is not said: PULUMI_BACKEND_URL is not set",
        "`corral bootstrap` makes a bucket and says what to set",
    )


def test_a_directory_of_states_is_ok(tmp_path: Path) -> None:
    (finding,) = run([state_check(tmp_path, {"PULUMI_BACKEND_URL": f"file://{tmp_path}"})], None, WANTED)
    assert (finding.verdict, finding.text) == ("ok", f"file://{tmp_path}")


def test_a_directory_that_is_not_there_yet_is_a_warning(tmp_path: Path) -> None:
    place = tmp_path / "not" / "mounted"
    (finding,) = run([state_check(tmp_path, {"PULUMI_BACKEND_URL": f"file://{place}"})], None, WANTED)
    assert (finding.verdict, finding.text) == (
        "warn",
        f"{place} is not there yet: the first `corral up` makes it, without states",
    )


@pytest.mark.parametrize("below", ["file", "file/states"])
def test_a_directory_that_cannot_be_made_is_a_failure(below: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / below
    (finding,) = run([state_check(tmp_path, {"PULUMI_BACKEND_URL": f"file://{place}"})], None, WANTED)
    assert (finding.verdict, finding.text) == ("fail", f"{place} is no directory, and none can be made there")


def test_who_is_at_work_on_a_stack_is_told() -> None:
    holder = Holder(pid=4711, since=datetime(2026, 11, 22, 9, 30, tzinfo=UTC), host="laptop", user="ann")
    *_, finding = judge(WANTED, States(url="s3://states", holders={"cluster dev": holder}))
    assert (finding.about, finding.text) == (
        "cluster dev",
        "Pulumi is at work on it: process 4711 of ann on laptop, since 2026-11-22 09:30 UTC",
    )
