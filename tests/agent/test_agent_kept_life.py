"""What the head keeps of its cluster's life in the bucket, and when that life began."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from corral.agent.ec2 import Ec2Error
from corral.agent.events import Event, Journal
from corral.agent.lives import BucketLives, LifeError, began, keep_life
from corral.agent.refusals import Kind
from corral.model.lives import KeptLife, unpacked

BEGAN = 1795343310  # 2026-11-22 10:28:30 UTC
KEY = "lives/dev/2026-11-22T10-28-30Z.json.gz"
RUN = f"1|root|train|COMPLETED|{BEGAN + 5}|{BEGAN + 9}|{BEGAN + 60}|train-1|fit\n"


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
    """A state volume, a bucket, and programs of Slurm that print the files beside them or fail."""

    place: Path
    bucket: Bucket = field(default_factory=Bucket)

    def keep(self, now: float = BEGAN + 100, head_since: Callable[[], int | None] = lambda: BEGAN - 40) -> None:
        lives = BucketLives(self.bucket, "base")
        keep_life(lives, "dev", self.place, head_since, clock=lambda: now)

    @property
    def kept(self) -> KeptLife:
        return unpacked(self.bucket.objects[KEY])


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    for name in ("sacct", "squeue"):
        (tmp_path / name).write_text(
            f'#!/bin/sh\ncat {tmp_path}/{name}.out 2>/dev/null || {{ echo "no {name}" >&2; exit 1; }}'
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "sacct.out").write_text(RUN)
    (tmp_path / "squeue.out").write_text("")
    Journal(tmp_path / "events.jsonl").tell(Event.BEGAN, "it begins", at=BEGAN)
    return Head(place=tmp_path)


def test_events_and_runs_are_kept(head: Head) -> None:
    head.keep()
    told = [json.loads(line)["event"] for line in head.kept.events]
    assert (told, [run.name for run in head.kept.runs], head.kept.problem) == (["keeper-began"], ["fit"], "")


def test_the_times_of_the_life_and_of_its_head_are_kept(head: Head) -> None:
    head.keep()
    assert (head.kept.began, head.kept.kept, head.kept.head_since) == (BEGAN, BEGAN + 100, BEGAN - 40)


def test_the_same_life_replaces_its_object(head: Head) -> None:
    head.keep()
    Journal(head.place / "events.jsonl").tell(Event.UP, "train-1 is up", at=BEGAN + 110)
    head.keep(now=BEGAN + 200)
    assert (list(head.bucket.objects), head.kept.kept, len(head.kept.events)) == ([KEY], BEGAN + 200, 2)


def test_a_life_goes_on_when_its_first_events_are_forgotten(head: Head) -> None:
    began(head.place, BEGAN + 1)
    (head.place / "events.jsonl").write_text('{"at": "2026-11-25T00:00:00Z", "event": "up", "text": "x"}\n')
    head.keep(now=BEGAN + 400_000)
    assert list(head.bucket.objects) == [KEY]


def test_a_life_without_an_event_begins_now(tmp_path: Path) -> None:
    assert (began(tmp_path, BEGAN), began(tmp_path, BEGAN + 50)) == (BEGAN, BEGAN)


def test_a_beginning_that_was_written_in_part_is_found_again(head: Head) -> None:
    (head.place / "life").write_text("")
    assert began(head.place, BEGAN + 50) == BEGAN


def test_without_slurmdbd_the_life_says_what_is_missing(head: Head) -> None:
    (head.place / "sacct.out").unlink()
    head.keep()
    assert head.kept.problem.partition(":")[0] == "jobs that have ended are missing"


def test_without_slurm_events_are_kept(head: Head) -> None:
    for name in ("sacct", "squeue"):
        (head.place / f"{name}.out").unlink()
    head.keep()
    assert (len(head.kept.events), head.kept.runs, head.kept.problem.partition(":")[0]) == (1, (), "jobs are missing")


def test_without_ec2_the_rest_is_kept(head: Head) -> None:
    def silent() -> int | None:
        raise Ec2Error("EC2 cannot be asked", Kind.OUTAGE)

    head.keep(head_since=silent)
    assert (head.kept.head_since, len(head.kept.runs)) == (None, 1)


def test_a_bucket_that_refuses_is_one_sentence(head: Head) -> None:
    head.bucket.denies = True
    with pytest.raises(LifeError) as error:
        head.keep()
    assert str(error.value).startswith(f"s3://base/{KEY} cannot be written: An error occurred (AccessDenied)")
