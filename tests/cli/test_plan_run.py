"""`corral plan ENV --run FILE`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import corral

RUN = "examples/runs/llama3-8b.yaml"


@pytest.fixture(scope="module")
def shown() -> str:
    """What a person sees of 8B in `train`."""
    done = corral("plan", "train", "--run", RUN)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_everything_about_a_run_is_shown_in_one_view(shown: str) -> None:
    begins = [line.split("  ")[0] for line in shown.splitlines() if line and not line.startswith(" ")]
    assert [line for line in begins if line != "ones" and line != "expected"] == [
        "llama3-8b on 16 p5.48xlarge",
        "Layout",
        "Memory",
        "Speed",
        "Checkpoints",
        "Until it is done",
        "Power",
        "Mind",
        "Assumed",
    ]


def test_why_other_layouts_lose_is_shown(shown: str) -> None:
    assert "slower:" in shown
    assert "GiB too large" in " ".join(shown.split())


def test_no_line_is_wider_than_80_columns(shown: str) -> None:
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_the_document_has_the_same_figures(shown: str) -> None:
    document = json.loads(corral("plan", "train", "--run", RUN, "--json").stdout)
    assert (document["schema"], document["fits"], [one["market"] for one in document["courses"]]) == (
        "corral.run/1",
        True,
        ["capacity-block", "reservation", "spot"],
    )
    assert f"{document['speed']['tokens_per_s']:,.0f}" in shown


def test_a_wrong_run_file_is_told_with_all_its_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: llama3-9b\ntokens: many\nsequence_length: 0\nbatch_sequences: 8\n")
    done = corral("plan", "train", "--run", str(file))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 3)


def test_a_run_file_that_is_not_there_is_told() -> None:
    done = corral("plan", "train", "--run", "nowhere.yaml")
    assert (done.returncode, done.stderr) == (
        2,
        "nowhere.yaml: cannot be read: No such file or directory - name a run file\n",
    )


def test_a_run_that_does_not_fit_says_what_is_missing_and_what_to_change(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: llama3-405b\ntokens: 1T\nsequence_length: 8192\nbatch_sequences: 256\nnodes: 2\n")
    done = corral("plan", "train", "--run", str(file))
    assert done.returncode == 0
    assert "  lacks" in done.stdout
    assert "  change first" in done.stdout
    assert "Until it is done" not in done.stdout


def test_the_page_is_written_beside_what_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    done = corral("plan", "train", "--run", RUN, "--html", str(file))
    assert (done.returncode, file.read_text().splitlines()[0], "Until it is done" in done.stdout) == (
        0,
        "<!doctype html>",
        True,
    )


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    done = corral("plan", "dev", "--html", str(tmp_path / "nowhere" / "plan.html"))
    assert (done.returncode, "nowhere/plan.html" in done.stderr, done.stdout) == (1, True, "")
