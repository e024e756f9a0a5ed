"""`corral timeline` without a running head: histories in the bucket of a base, in a box without machines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from calls import REPOSITORY, corral

import boxes
from corral.box import client
from corral.box.client import BoxStatus
from corral.inventory.resources import ResourceKind
from corral.inventory.retained_data import RetainedResource, delete_retained
from corral.inventory.scan import open_session
from corral.model.head_report import JobRun
from corral.model.history import StoredHistory, history_key, pack

pytestmark = pytest.mark.box
NEWER, OLDER = 1795343310, 1795170510  # 2026-11-22 and 2026-11-20, 10:28:30
BUCKET = "kept-for-dev"


def stored_history(began: int, job: str) -> StoredHistory:
    lines = (
        {"at": "2026-11-22T10:28:30Z", "event": "autoscaler-started", "text": "it begins"},
        {
            "at": "2026-11-22T10:28:40Z",
            "event": "launched",
            "text": "x",
            "nodes": "train-1",
            "instances": {"train-1": "i-1"},
            "instance_type": "p4d.24xlarge",
            "market": "on-demand",
        },
    )
    lines += ({"at": "2026-11-22T10:29:00Z", "event": "refused", "text": "y"},)
    run = JobRun(
        job_id="7",
        user="ada",
        name=job,
        queue="train",
        state="completed",
        nodes="train-1",
        submitted=NEWER + 10,
        started=NEWER + 20,
        ended=NEWER + 80,
    )
    return StoredHistory(
        format=2,
        cluster="dev",
        began=began,
        stored_at=NEWER + 99,
        head_since=NEWER - 30,
        events=tuple(json.dumps(line) for line in lines),
        runs=(run,),
    )


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    """Two histories of dev, an unreadable one, and an object that is no history."""
    with boxes.running_box(tmp_path_factory.mktemp("box")) as box:
        objects = {
            history_key("dev", NEWER): pack(stored_history(NEWER, "newer")),
            history_key("dev", OLDER): pack(stored_history(OLDER, "older")),
            history_key("dev", 0): b"no history",
            history_key("dev2", NEWER): b"",
            "lives/dev/notes.txt": b"",
        }
        upload(box, "dev", objects)
        yield box


def upload(box: BoxStatus, base: str, objects: Mapping[str, bytes]) -> None:
    """Create the bucket of a base with these objects."""
    s3, bucket = boxes.client(box, "s3"), f"kept-for-{base}"
    s3.create_bucket(Bucket=bucket)
    tags = {"corral:base": base, "corral:keep": "artefacts"}
    s3.put_bucket_tagging(
        Bucket=bucket, Tagging={"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}
    )
    for key, content in objects.items():
        s3.put_object(Bucket=bucket, Key=key, Body=content)


def timeline(box: BoxStatus, *words: str, env: str = "dev") -> tuple[int, str]:
    done = corral("timeline", env, "--box-dir", str(box.dir), *words)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def test_newest_history_is_shown_and_named_as_recorded(box: BoxStatus) -> None:
    code, out = timeline(box)
    heading = out.splitlines()[2].partition(", saved at")[0]
    rows = re.findall(r"^  (head|train-1|7 \w+) ", out, re.MULTILINE)
    assert (code, heading, rows) == (
        0,
        "  dev has no head now: the history that began 2026-11-22 10:28:30",
        ["head", "train-1", "7 newer"],
    )


def test_recorded_history_is_shown_from_its_head_launch_to_its_end(box: BoxStatus) -> None:
    assert timeline(box)[1].splitlines()[1] == "dev  2026-11-22 10:28:00 to 10:30:10 UTC, 2 min"


def test_marks_of_a_recorded_history_refer_to_its_page(box: BoxStatus) -> None:
    assert f"  ▼ see `corral timeline dev --box-dir {box.dir} --html FILE`\n" in timeline(box)[1]


def test_usage_is_below_the_timeline(box: BoxStatus) -> None:
    figures = re.findall(r"^  (cost|node time|goodput|interruptions|train|7) {2,}(\S+)", timeline(box)[1], re.MULTILINE)
    assert [(name, word) for name, word in figures if name != "cost"] == [
        ("node time", "0.03"),  # 90 s
        ("goodput", "67%"),
        ("interruptions", "none"),
        ("train", "p4d.24xlarge"),
        ("7", "newer"),
    ]


def test_document_has_the_rows_and_the_usage(box: BoxStatus) -> None:
    document = json.loads(timeline(box, "--json")[1])
    (pool,) = document["usage"]["pools"]
    assert (document["schema"], [row["name"] for row in document["rows"]]) == (
        "corral.timeline/2",
        ["head", "train-1", "7 newer"],
    )
    assert (pool["market"], pool["machines"], pool["in_jobs"]["node_hours"]) == ("on-demand", 1, 0.016667)


def test_run_of_an_unknown_queue_is_reported_before_any_output(box: BoxStatus, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text((REPOSITORY / "examples/runs/llama3-8b.yaml").read_text().replace("queue: train", "queue: trian"))
    code, err = timeline(box, "--run", str(file))
    assert (code, "queue" in err, "trian" in err) == (2, True, True)


def test_since_counts_from_the_end_of_a_recorded_history(box: BoxStatus) -> None:
    assert timeline(box, "--since", "60s")[1].splitlines()[1] == "dev  2026-11-22 10:29:10 to 10:30:10 UTC, 1 min"


def test_older_history_is_selected_by_its_start(box: BoxStatus) -> None:
    assert "7 older" in timeline(box, "--history", "2026-11-20")[1]


def test_histories_are_listed_newest_first(box: BoxStatus) -> None:
    assert re.findall(r"^  (\S+Z) ", timeline(box, "--list-history")[1], re.MULTILINE) == [
        "2026-11-22T10-28-30Z",
        "2026-11-20T10-28-30Z",
        "1970-01-01T00-00-00Z",
    ]


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        (
            ("--history", "2026-11-2"),
            "dev",
            (
                2,
                "--history 2026-11-2: 2 recorded histories of dev match: 2026-11-22T10-28-30Z, 2026-11-20T10-28-30Z",
            ),
        ),
        (
            ("--history", "2025"),
            "dev",
            (
                2,
                "--history 2025: no recorded history of dev starts then"
                " - corral timeline dev --box-dir BOX --list-history lists them",
            ),
        ),
        (
            ("--history", "1970"),
            "dev",
            (
                1,
                f"s3://{BUCKET}/lives/dev/1970-01-01T00-00-00Z.json.gz cannot be read:"
                " it is not valid gzip: Not a gzipped file (b'no')",
            ),
        ),
        (
            (),
            "train",
            (1, "train has no head now and no recorded history - to deploy it: corral up train --box-dir BOX"),
        ),
        (("--history", "2026"), "train", (1, "--history 2026: no recorded history of train")),
        (
            ("--list-history", "--history", "2026"),
            "dev",
            (2, "--list-history excludes --history, --since, --html, --run and --json"),
        ),
    ],
)
def test_unreadable_history_is_one_sentence(
    box: BoxStatus, words: tuple[str, ...], env: str, expected: tuple[int, str]
) -> None:
    code, err = timeline(box, *words, env=env)
    assert (code, err) == (expected[0], f"corral: {expected[1]}\n".replace("BOX", str(box.dir)))


def test_page_has_the_recorded_history(box: BoxStatus, tmp_path: Path) -> None:
    timeline(box, "--html", str(tmp_path / "timeline.html"))
    assert "job 7 (newer) of ada" in (tmp_path / "timeline.html").read_text()


def test_histories_are_deleted_with_the_data_of_their_base(box: BoxStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(box, "train", {history_key("train", NEWER): pack(stored_history(NEWER, "newer"))})
    listed = timeline(box, "--list-history", env="train")[1]
    for name, value in client.environment(box.dir).items():
        monkeypatch.setenv(name, value)
    session: Any = open_session("us-east-1")
    bucket = RetainedResource(kind=ResourceKind.BUCKET, id="kept-for-train", name="", size_gib=None, usd_per_month=None)
    delete_retained(session, "train", [bucket])
    assert "2026-11-22T10-28-30Z" in listed
    assert timeline(box, "--list-history", env="train")[1].split() == ["train", "no", "recorded", "history"]
