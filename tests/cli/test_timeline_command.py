"""`corral timeline` where no head runs: lives in the bucket of a base, in a box without machines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import REPOSITORY, corral

import boxes
from corral.box import control
from corral.box.control import BoxStatus
from corral.inventory.account import open_session
from corral.inventory.kept import delete_kept
from corral.model.head import JobRun
from corral.model.lives import KeptLife, life_key, packed

pytestmark = pytest.mark.box
NEWER, OLDER = 1795343310, 1795170510  # 2026-11-22 and 2026-11-20, 10:28:30
BUCKET = "kept-for-dev"


def life(began: int, job: str) -> KeptLife:
    lines = (
        {"at": "2026-11-22T10:28:30Z", "event": "keeper-began", "text": "it begins"},
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
    return KeptLife(
        format=1,
        cluster="dev",
        began=began,
        kept=NEWER + 99,
        head_since=NEWER - 30,
        events=tuple(json.dumps(line) for line in lines),
        runs=(run,),
    )


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    """Two lives of dev and one that cannot be read, beside what is none."""
    with boxes.running_box(tmp_path_factory.mktemp("box")) as box:
        s3 = boxes.client(box, "s3")
        s3.create_bucket(Bucket=BUCKET)
        tags = {"corral:base": "dev", "corral:keep": "artefacts"}
        s3.put_bucket_tagging(
            Bucket=BUCKET, Tagging={"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}
        )
        objects = {
            life_key("dev", NEWER): packed(life(NEWER, "newer")),
            life_key("dev", OLDER): packed(life(OLDER, "older")),
            life_key("dev", 0): b"no life",
            life_key("dev2", NEWER): b"",
            "lives/dev/notes.txt": b"",
        }
        for key, content in objects.items():
            s3.put_object(Bucket=BUCKET, Key=key, Body=content)
        yield box


def timeline(box: BoxStatus, *words: str, env: str = "dev") -> tuple[int, str]:
    done = corral("timeline", env, "--box-dir", str(box.dir), *words)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def test_the_newest_life_is_drawn_and_said_to_be_kept(box: BoxStatus) -> None:
    code, out = timeline(box)
    note = out.splitlines()[2].partition(", kept at")[0]
    rows = re.findall(r"^  (head|train-1|7 \w+) ", out, re.MULTILINE)
    assert (code, note, rows) == (
        0,
        "  dev has no head now: the life that began 2026-11-22 10:28:30",
        ["head", "train-1", "7 newer"],
    )


def test_a_kept_life_is_drawn_from_the_launch_of_its_head_to_when_it_was_kept(box: BoxStatus) -> None:
    assert timeline(box)[1].splitlines()[1] == "dev  2026-11-22 10:28:00 to 10:30:10 UTC, 2 min"


def test_marks_of_a_kept_life_are_told_by_its_page_since_there_is_no_head(box: BoxStatus) -> None:
    assert f"  ▼ see `corral timeline dev --box-dir {box.dir} --html FILE`\n" in timeline(box)[1]


def test_below_the_picture_stands_what_the_life_took(box: BoxStatus) -> None:
    told = re.findall(r"^  (cost|node time|kept work|interruptions|train|7) {2,}(\S+)", timeline(box)[1], re.MULTILINE)
    assert [(name, word) for name, word in told if name != "cost"] == [
        ("node time", "0.03"),  # 90 s
        ("kept work", "67%"),
        ("interruptions", "none"),
        ("train", "p4d.24xlarge"),
        ("7", "newer"),
    ]


def test_the_document_has_the_rows_and_what_the_life_took(box: BoxStatus) -> None:
    document = json.loads(timeline(box, "--json")[1])
    (pool,) = document["spent"]["pools"]
    assert (document["schema"], [row["name"] for row in document["rows"]]) == (
        "corral.timeline/1",
        ["head", "train-1", "7 newer"],
    )
    assert (pool["market"], pool["machines"], pool["in_jobs"]["node_hours"]) == ("on-demand", 1, 0.016667)


def test_a_run_of_a_queue_that_the_environment_lacks_is_told_before_anything_is_drawn(
    box: BoxStatus, tmp_path: Path
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text((REPOSITORY / "examples/runs/llama3-8b.yaml").read_text().replace("queue: train", "queue: trian"))
    code, err = timeline(box, "--run", str(file))
    assert (code, "queue" in err, "trian" in err) == (2, True, True)


def test_since_counts_from_when_a_life_was_kept(box: BoxStatus) -> None:
    assert timeline(box, "--since", "60s")[1].splitlines()[1] == "dev  2026-11-22 10:29:10 to 10:30:10 UTC, 1 min"


def test_an_older_life_is_asked_for_by_its_beginning(box: BoxStatus) -> None:
    assert "7 older" in timeline(box, "--life", "2026-11-20")[1]


def test_lives_are_listed_the_newest_first(box: BoxStatus) -> None:
    assert re.findall(r"^  (\S+Z) ", timeline(box, "--lives")[1], re.MULTILINE) == [
        "2026-11-22T10-28-30Z",
        "2026-11-20T10-28-30Z",
        "1970-01-01T00-00-00Z",
    ]


@pytest.mark.parametrize(
    ("words", "env", "told"),
    [
        (
            ("--life", "2026-11-2"),
            "dev",
            (2, "--life 2026-11-2: 2 lives of dev begin so: 2026-11-22T10-28-30Z, 2026-11-20T10-28-30Z"),
        ),
        (
            ("--life", "2025"),
            "dev",
            (
                2,
                "--life 2025: no life of dev that is kept began then"
                " - corral timeline dev --box-dir BOX --lives lists them",
            ),
        ),
        (
            ("--life", "1970"),
            "dev",
            (
                1,
                f"s3://{BUCKET}/lives/dev/1970-01-01T00-00-00Z.json.gz cannot be read:"
                " it cannot be unzipped: Not a gzipped file (b'no')",
            ),
        ),
        (
            (),
            "train",
            (1, "train has no head now, and no life of it is kept - bring it up: corral up train --box-dir BOX"),
        ),
        (("--life", "2026"), "train", (1, "--life 2026: no life of train is kept")),
        (("--lives", "--life", "2026"), "dev", (2, "--lives lists lives and draws none: leave the other options out")),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(
    box: BoxStatus, words: tuple[str, ...], env: str, told: tuple[int, str]
) -> None:
    code, err = timeline(box, *words, env=env)
    assert (code, err) == (told[0], f"corral: {told[1]}\n".replace("BOX", str(box.dir)))


def test_the_page_has_the_kept_life(box: BoxStatus, tmp_path: Path) -> None:
    timeline(box, "--html", str(tmp_path / "life.html"))
    assert "job 7 (newer) of ada" in (tmp_path / "life.html").read_text()


def test_lives_go_with_the_data_of_their_base(box: BoxStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in control.environment(box.dir).items():
        monkeypatch.setenv(name, value)
    session: Any = open_session("us-east-1")
    delete_kept(session, "dev")
    assert timeline(box, "--lives")[1].split() == ["dev", "no", "life", "is", "kept"]
