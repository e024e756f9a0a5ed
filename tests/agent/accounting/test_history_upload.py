"""The history of a cluster that its head stores in the bucket, and when it began."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from corral.agent.accounting.history_upload import BucketHistoryStore, HistoryError, began, upload_history
from corral.agent.cluster.ec2_client import Ec2Error
from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.events import Event, EventLog
from corral.model.history import StoredHistory, unpack

BEGAN = 1795343310  # 2026-11-22 10:28:30 UTC
KEY = "lives/dev/2026-11-22T10-28-30Z.json.gz"
RUN = f"1|1|root|train|COMPLETED|{BEGAN + 5}|{BEGAN + 9}|{BEGAN + 60}|train-1|1|cpu=1\n"
NAME = f"{1:<12} {BEGAN + 5:<20} {'ml':<321} {'fit':<321} \n"


@dataclass(kw_only=True)
class Bucket:
    """S3's client, for who may write."""

    objects: dict[str, bytes] = field(default_factory=dict)
    denies: bool = False

    def put_object(self, Bucket: str, Key: str, Body: bytes) -> Any:
        if self.denies:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")
        self.objects[Key] = Body


@dataclass(kw_only=True)
class Head:
    """A state volume, a bucket, and Slurm programs that print the files next to them or fail."""

    work_dir: Path
    bucket: Bucket = field(default_factory=Bucket)

    def keep(self, now: float = BEGAN + 100, head_since: Callable[[], int | None] = lambda: BEGAN - 40) -> None:
        store = BucketHistoryStore(self.bucket, "base")
        upload_history(store, "dev", self.work_dir, head_since, clock=lambda: now)

    @property
    def kept(self) -> StoredHistory:
        return unpack(self.bucket.objects[KEY])


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    for name in ("sacct", "squeue"):
        (tmp_path / name).write_text(
            f'#!/bin/sh\ncase "$*" in *JobName*) cat {tmp_path}/names.out; exit;; esac\n'
            f'cat {tmp_path}/{name}.out 2>/dev/null || {{ echo "no {name}" >&2; exit 1; }}'
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "sacct.out").write_text(RUN)
    (tmp_path / "names.out").write_text(NAME)
    (tmp_path / "squeue.out").write_text("")
    EventLog(tmp_path / "events.jsonl").log_event(Event.AUTOSCALER_STARTED, "it begins", at=BEGAN)
    return Head(work_dir=tmp_path)


def test_events_and_runs_are_stored(head: Head) -> None:
    head.keep()
    kinds = [json.loads(line)["event"] for line in head.kept.events]
    assert (kinds, [run.name for run in head.kept.runs], head.kept.problem) == (["autoscaler-started"], ["fit"], "")


def test_the_start_of_the_history_and_of_its_head_are_stored(head: Head) -> None:
    head.keep()
    assert (head.kept.began, head.kept.stored_at, head.kept.head_since) == (BEGAN, BEGAN + 100, BEGAN - 40)


def test_the_same_history_replaces_its_object(head: Head) -> None:
    head.keep()
    EventLog(head.work_dir / "events.jsonl").log_event(Event.UP, "train-1 is up", at=BEGAN + 110)
    head.keep(now=BEGAN + 200)
    assert (list(head.bucket.objects), head.kept.stored_at, len(head.kept.events)) == ([KEY], BEGAN + 200, 2)


def test_a_history_continues_after_its_first_events_are_rotated_away(head: Head) -> None:
    began(head.work_dir, BEGAN + 1)
    (head.work_dir / "events.jsonl").write_text('{"at": "2026-11-25T00:00:00Z", "event": "up", "text": "x"}\n')
    head.keep(now=BEGAN + 400_000)
    assert list(head.bucket.objects) == [KEY]


def test_a_history_without_an_event_begins_now(tmp_path: Path) -> None:
    assert (began(tmp_path, BEGAN), began(tmp_path, BEGAN + 50)) == (BEGAN, BEGAN)


def test_a_truncated_start_time_is_computed_again(head: Head) -> None:
    (head.work_dir / "life").write_text("")
    assert began(head.work_dir, BEGAN + 50) == BEGAN


def test_without_slurmdbd_the_history_names_what_is_missing(head: Head) -> None:
    (head.work_dir / "sacct.out").unlink()
    head.keep()
    assert head.kept.problem.partition(":")[0] == "ended jobs are missing"


def test_without_slurm_events_are_stored(head: Head) -> None:
    for name in ("sacct", "squeue"):
        (head.work_dir / f"{name}.out").unlink()
    head.keep()
    assert (len(head.kept.events), head.kept.runs, head.kept.problem.partition(":")[0]) == (1, (), "jobs are missing")


def test_without_ec2_the_rest_is_stored(head: Head) -> None:
    def silent() -> int | None:
        raise Ec2Error("EC2 cannot be asked", LaunchErrorKind.OUTAGE)

    head.keep(head_since=silent)
    assert (head.kept.head_since, len(head.kept.runs)) == (None, 1)


def test_a_bucket_that_refuses_is_one_sentence(head: Head) -> None:
    head.bucket.denies = True
    with pytest.raises(HistoryError) as error:
        head.keep()
    assert str(error.value).startswith(f"cannot write s3://base/{KEY}: An error occurred (AccessDenied)")
