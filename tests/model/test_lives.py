"""What is kept of a cluster's life: its key in the bucket, and its content there and back."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from corral.model.head import JobRun
from corral.model.jsons import to_json
from corral.model.lives import KeptLife, began_in, life_key, packed, unpacked

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
LIFE = KeptLife(
    format=1,
    cluster="dev",
    began=BEGAN,
    kept=BEGAN + 100,
    head_since=BEGAN - 40,
    events=('{"at": "2026-11-22T10:28:30Z", "event": "keeper-began", "text": "ü"}',),
    runs=(RUN,),
)


def changed(**fields: object) -> bytes:
    document: Any = json.loads(to_json(LIFE))
    return gzip.compress(json.dumps({**document, **fields}).encode())


def test_a_life_is_named_by_its_beginning() -> None:
    assert life_key("dev", BEGAN) == "lives/dev/2026-11-22T10-28-30Z.json.gz"


def test_the_beginning_is_in_the_key() -> None:
    assert began_in("dev", "lives/dev/2026-11-22T10-28-30Z.json.gz") == BEGAN


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
def test_what_is_no_life_of_the_cluster_has_no_beginning(key: str) -> None:
    assert began_in("dev", key) is None


def test_a_life_is_read_as_it_was_written() -> None:
    assert unpacked(packed(LIFE)) == LIFE


def test_the_same_life_has_the_same_bytes() -> None:
    assert packed(LIFE) == packed(LIFE)


def test_what_a_later_corral_has_added_is_left_out() -> None:
    assert unpacked(changed(more=1)) == LIFE


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (changed(format=2), "its format is 2, this corral reads 1"),
        (changed(began="x"), "KeptLife.began: expected <class 'int'>, found 'x'"),
        (packed(LIFE)[:-9], "it cannot be unzipped: Compressed file ended before the end-of-stream marker was reached"),
        (b"{}", "it cannot be unzipped: Not a gzipped file (b'{}')"),
        (gzip.compress(b"{}"), "_Format: missing fields ['format'], unknown fields []"),
    ],
    ids=["of another format", "with another field", "cut", "not zipped", "without a format"],
)
def test_what_is_no_life_is_told(content: bytes, told: str) -> None:
    with pytest.raises(ValueError) as error:
        unpacked(content)
    assert str(error.value) == told
