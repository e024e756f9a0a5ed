"""`corral usage` over two recorded deployments, in a box without machines."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from calls import corral
from test_timeline_command import NEWER, OLDER, stored_history, upload

import boxes
from corral.box.client import BoxStatus
from corral.cli.commands.usage import moment_of
from corral.cli.support.exit_codes import Failure
from corral.model.history import StoredHistory, history_key, pack

NOW = NEWER + 1000.0


def earlier(history: StoredHistory) -> StoredHistory:
    """The same, two days earlier and of another user."""
    apart = NEWER - OLDER
    runs = tuple(
        replace(
            run,
            user="bob",
            submitted=run.submitted - apart,
            started=(run.started or 0) - apart,
            ended=(run.ended or 0) - apart,
        )
        for run in history.runs
    )
    events = tuple(line.replace("2026-11-22", "2026-11-20") for line in history.events)
    return replace(
        history,
        began=OLDER,
        stored_at=history.stored_at - apart,
        head_since=(history.head_since or 0) - apart,
        events=events,
        runs=runs,
    )


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with boxes.running_box(tmp_path_factory.mktemp("box")) as box:
        newer = stored_history(NEWER, "newer")
        objects = {
            history_key("dev", NEWER): pack(newer),
            history_key("dev", OLDER): pack(earlier(newer)),
            history_key("dev", 0): b"no history",
        }
        upload(box, "dev", objects)
        yield box


def usage(box: BoxStatus, *words: str) -> tuple[int, str]:
    done = corral("usage", "dev", "--box-dir", str(box.dir), *words)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def rows(box: BoxStatus, *words: str) -> Sequence[tuple[str, ...]]:
    """Kind, group, jobs and node hours of each row."""
    found = csv.reader(io.StringIO(usage(box, "--csv", *words)[1]))
    next(found)
    return [(*row[:3], row[5]) for row in found]


@pytest.mark.box
def test_all_deployments_of_the_name_are_counted(box: BoxStatus) -> None:
    assert rows(box) == [
        ("jobs", "ada", "1", "0.016667"),
        ("jobs", "bob", "1", "0.016667"),
        ("idle", "", "0", "0.011111"),
        ("booting", "", "0", "0.005556"),
        ("other", "", "0", "0.000000"),
    ]


@pytest.mark.box
def test_a_period_leaves_other_deployments_out(box: BoxStatus) -> None:
    assert [row[1] for row in rows(box, "--since", "2026-11-20", "--until", "2026-11-21") if row[0] == "jobs"] == [
        "bob"
    ]
    assert [row[1] for row in rows(box, "--history", "2026-11-22") if row[0] == "jobs"] == ["ada"]


@pytest.mark.box
def test_the_table_ends_with_a_total_and_what_could_not_be_read(box: BoxStatus) -> None:
    code, out = usage(box, "--by", "day")
    (total,) = re.findall(r"^  total +(\S+) +(\S+) +(\S+) +(\S+)", out, re.MULTILINE)
    assert (code, total[0], "1970-01-01T00-00-00Z.json.gz cannot be read" in " ".join(out.split())) == (0, "2", True)


@pytest.mark.box
def test_the_page_has_a_bar_for_each_day_of_all_deployments(box: BoxStatus, tmp_path: Path) -> None:
    file = tmp_path / "usage.html"
    code, out = usage(box, "--html", str(file))
    tips = re.findall(r"<title>(2026-[^:]*): ", file.read_text())
    assert (code, out.splitlines()[-1]) == (0, f"  Written: {file}")
    assert [tip for tip in dict.fromkeys(tips) if "ada" in tip or "bob" in tip] == [
        "2026-11-20, bob",
        "2026-11-22, ada",
    ]


@pytest.mark.box
def test_a_page_that_cannot_be_written_is_refused_first(box: BoxStatus, tmp_path: Path) -> None:
    code, error = usage(box, "--html", str(tmp_path / "nowhere/usage.html"))
    assert (code, "nowhere/usage.html" in error) == (1, True)


@pytest.mark.box
def test_the_document_names_its_shape_and_period(box: BoxStatus) -> None:
    document = json.loads(usage(box, "--json", "--by", "job")[1])
    assert (document["schema"], document["start"], document["rows"][0]["name"], len(document["problems"])) == (
        "corral.usage/1",
        "2026-11-20T10:28:00+00:00",
        "newer",
        1,
    )


@pytest.mark.box
@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("--csv", "--json"), 2, "--csv excludes --json"),
        (("--since", "2026-11-22", "--until", "2026-11-21"), 2, "--since 2026-11-22: not before --until 2026-11-21"),
        (
            ("--since", "soon"),
            2,
            "--since soon: not a time - write 2026-11-01, 2026-11-01T12:00, 12h or 30d",
        ),
        (
            ("--until", "2020-01-01"),
            1,
            "dev was not up between 1970-01-01 00:00 and 2020-01-01 00:00 UTC"
            " - corral timeline dev --box-dir BOX --list-history lists its histories",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(box: BoxStatus, words: tuple[str, ...], code: int, expected: str) -> None:
    assert usage(box, *words) == (code, f"corral: {expected}\n".replace("BOX", str(box.dir)))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30m", NOW - 1800),
        ("2026-11-22", 1795305600.0),
        ("2026-11-22T10:00", 1795341600.0),
        ("2026-11-22T10:00Z", 1795341600.0),
        ("2026-11-22T12:00+02:00", 1795341600.0),
    ],
)
def test_times_are_dates_in_utc_or_durations_before_now(text: str, moment: float) -> None:
    assert moment_of("--since", text, NOW) == moment


def test_a_duration_that_is_none_is_refused() -> None:
    with pytest.raises(Failure, match=r"^--since 3x: not a duration - write 30s, 2m, 12h or 1d$"):
        moment_of("--since", "3x", NOW)
