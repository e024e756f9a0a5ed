"""A cluster's stored history: its key in the bucket, and its content packed and unpacked."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from corral.model.head_report import JobRun
from corral.model.history import StoredHistory, began_of_key, history_key, pack, unpack
from corral.model.serialization import to_json

BEGAN = 1795343310  # 2026-11-22 10:28:30 UTC
RUN = JobRun(
    job_id="7",
    user="ada",
    name="fit",
    queue="train",
    state="completed",
    nodes="train-1",
    submitted=BEGAN + 5,
    started=BEGAN + 9,
    ended=BEGAN + 60,
)
HISTORY = StoredHistory(
    format=2,
    cluster="dev",
    began=BEGAN,
    stored_at=BEGAN + 100,
    head_since=BEGAN - 40,
    events=('{"at": "2026-11-22T10:28:30Z", "event": "autoscaler-started", "text": "ü"}',),
    runs=(RUN,),
)


def changed(**fields: object) -> bytes:
    document: Any = json.loads(to_json(HISTORY))
    return gzip.compress(json.dumps({**document, **fields}).encode())


def test_a_history_is_named_by_its_beginning() -> None:
    assert history_key("dev", BEGAN) == "lives/dev/2026-11-22T10-28-30Z.json.gz"


def test_the_beginning_is_in_the_key() -> None:
    assert began_of_key("dev", "lives/dev/2026-11-22T10-28-30Z.json.gz") == BEGAN


@pytest.mark.parametrize(
    "key",
    [
        "lives/dev/2026-11-22T10-28-30Z.json",
        "lives/dev/2026-11-22.json.gz",
        "lives/dev/2026-11-22T10-28-30Z.json.gz.json.gz",
        "lives/prod/2026-11-22T10-28-30Z.json.gz",
        "2026-11-22T10-28-30Z",
    ],
)
def test_a_key_of_anything_else_has_no_beginning(key: str) -> None:
    assert began_of_key("dev", key) is None


def test_a_history_is_read_as_it_was_written() -> None:
    assert unpack(pack(HISTORY)) == HISTORY


def test_the_same_history_has_the_same_bytes() -> None:
    assert pack(HISTORY) == pack(HISTORY)


def test_fields_that_a_later_corral_added_are_dropped() -> None:
    assert unpack(changed(more=1)) == HISTORY


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed(format=3), "its format is 3, this corral reads 2"),
        (changed(began="x"), "StoredHistory.began: expected <class 'int'>, found 'x'"),
        (pack(HISTORY)[:-9], "it is not valid gzip: Compressed file ended before the end-of-stream marker was reached"),
        (b"{}", "it is not valid gzip: Not a gzipped file (b'{}')"),
        (gzip.compress(b"{}"), "_Format: missing fields ['format'], unknown fields []"),
    ],
    ids=["of another format", "with another field", "cut", "not zipped", "without a format"],
)
def test_content_that_is_no_history_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError) as error:
        unpack(content)
    assert str(error.value) == message
