"""`corral plan ENV --run FILE`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from calls import REPOSITORY, corral

RUN = "examples/runs/llama3-8b.yaml"


@pytest.fixture(scope="module")
def shown() -> str:
    """What a person sees of 8B in `train`."""
    done = corral("plan", "train", "--run", RUN)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_everything_about_a_run_is_shown_in_one_view(shown: str) -> None:
    begins = [line.split("  ")[0] for line in shown.splitlines() if line and not line.startswith(" ")]
    assert [line for line in begins if line not in ("were within it", "expected")] == [
        "llama3-8b on 16 p5.48xlarge",
        "Layout",
        "Memory",
        "Speed",
        "Network",
        "Checkpoints",
        "Data",
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


def test_a_run_that_is_over_before_its_best_interval_saves_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: llama3-8b\ntokens: 50M\nsequence_length: 8192\nbatch_sequences: 128\n")
    shown = corral("plan", "train", "--run", str(file)).stdout
    assert (shown.count(" at its "), shown.count("once a day")) == (3, 0)


def test_a_run_that_does_not_fit_reads_at_no_rate(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: llama3-405b\ntokens: 1T\nsequence_length: 8192\nbatch_sequences: 256\nnodes: 2\n")
    assert "  data           4.00 TB in all\n" in corral("plan", "train", "--run", str(file)).stdout


def test_the_page_of_a_run_that_does_not_fit_says_so_and_what_to_change(tmp_path: Path) -> None:
    file, html = tmp_path / "run.yaml", tmp_path / "plan.html"
    file.write_text("model: llama3-405b\ntokens: 1T\nsequence_length: 8192\nbatch_sequences: 256\nnodes: 2\n")
    corral("plan", "train", "--run", str(file), "--html", str(html))
    page = html.read_text()
    said = ("no layout fits", "the one that lacks least", "first: use 16 nodes instead of 2", "the fastest that fits")
    assert [one in page for one in said] == [True, True, True, False]


def test_in_eight_bits_the_peak_is_named(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(Path(REPOSITORY, RUN).read_text().replace("bf16", "fp8"))
    assert "of the peak in 16 bits" in " ".join(corral("plan", "train", "--run", str(file)).stdout.split())


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


def test_a_run_over_its_limit_is_shown_whole_and_refused(tmp_path: Path, shown: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(Path(REPOSITORY / RUN).read_text() + "usd_total_max: 1000\n")
    done = corral("plan", "train", "--run", str(file))
    assert (done.returncode, done.stdout) == (4, shown)
    assert done.stderr.startswith(f"corral: {file}: usd_total_max: the run by spot costs up to ")


def test_the_document_has_the_limit_that_does_not_hold(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(Path(REPOSITORY / RUN).read_text() + "usd_total_max: 1000\n")
    (limit,) = json.loads(corral("plan", "train", "--run", str(file), "--json").stdout)["limits"]
    assert (limit["field"], limit["usd"], limit["refusal"] is None) == ("usd_total_max", 1000.0, False)


@pytest.fixture
def tight(tmp_path: Path) -> Path:
    """The shipped project, in which an hour of `dev` may cost a dollar."""
    shutil.copytree(REPOSITORY / "stacks", tmp_path / "stacks")
    file = tmp_path / "stacks/cluster/Pulumi.dev.yaml"
    file.write_text(
        file.read_text().replace("corral-cluster:spec:\n", "corral-cluster:spec:\n    usd_per_hour_max: 1\n")
    )
    return tmp_path


def test_an_environment_over_its_limit_is_planned_and_refused(tight: Path) -> None:
    done = corral("plan", "dev", "--project", str(tight))
    assert (done.returncode, "Where the prices are from" in done.stdout) == (4, True)
    assert "usd_per_hour_max: an hour with every node at work costs up to " in done.stderr


def test_up_refuses_an_environment_over_its_limit_before_anything_begins(tight: Path) -> None:
    done = corral("up", "dev", "--yes", "--box-dir", str(tight / "box"), "--project", str(tight))
    assert (done.returncode, done.stdout, (tight / "box").exists()) == (4, "", False)
    assert "usd_per_hour_max: an hour with every node at work costs up to " in done.stderr


def test_a_comparison_is_a_table_below_the_run(shown: str) -> None:
    done = corral("plan", "train", "--run", RUN, "--compare", "p4d.24xlarge,p5.48xlarge")
    assert (done.returncode, done.stdout.startswith(shown)) == (0, True)
    assert "Compared  the cheapest first" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_the_document_has_the_comparison_in_its_order() -> None:
    done = corral("plan", "train", "--run", RUN, "--compare", "p4d.24xlarge,us-west-2,us-east-1", "--json")
    rows = json.loads(done.stdout)["compared"]
    most = [row["usd"]["high"] for row in rows]
    assert (len(rows), most) == (6, sorted(most))


def test_wrong_words_of_a_comparison_are_told_at_once() -> None:
    done = corral("plan", "train", "--run", RUN, "--compare", "p4d.24xl,us-esat-1,m7i.2xlarge,p5e.48xlarge")
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (
        2,
        "",
        [
            "--compare: 'p4d.24xl' is neither a type with accelerators nor a region of the catalogue"
            " - did you mean 'p4d.24xlarge'?",
            "--compare: 'us-esat-1' is neither a type with accelerators nor a region of the catalogue"
            " - did you mean 'us-east-1'?",
            "--compare: 'm7i.2xlarge' has no accelerators - leave it out",
            "--compare: 'p5e.48xlarge' was not offered in us-east-1 when last looked - it was in ap-southeast-2,"
            " ap-southeast-3, eu-north-1, eu-west-2, sa-east-1, us-east-2, us-west-2",
        ],
    )


def test_a_comparison_without_a_run_is_refused() -> None:
    done = corral("plan", "train", "--compare", "p4d.24xlarge")
    assert (done.returncode, done.stderr) == (2, "corral: --compare compares a run: name its file with --run\n")


def test_the_page_has_the_comparison(tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    corral("plan", "train", "--run", RUN, "--compare", "p4d.24xlarge", "--html", str(file))
    assert '<section id="compared"' in file.read_text()


def test_hardware_to_buy_is_compared_below_the_bill() -> None:
    done = corral("plan", "train", "--buy", "examples/buy/h100.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nRent or buy  16 servers of 8 H100-80 instead of queue train\n" in done.stdout


def test_hardware_to_buy_is_in_either_document() -> None:
    buy = ("--buy", "examples/buy/h100.yaml", "--json")
    found = [json.loads(corral("plan", "train", *run, *buy).stdout)["buy"] for run in ((), ("--run", RUN))]
    assert found[0] == found[1]
    assert found[0]["price_usd"] == 4_800_000


def test_the_page_has_hardware_to_buy(tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    corral("plan", "train", "--buy", "examples/buy/h100.yaml", "--html", str(file))
    assert '<section id="buy"' in file.read_text()


def test_a_wrong_file_of_hardware_is_told_with_all_its_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "buy.yaml"
    file.write_text("usd_per_card: -1\nyears: 0\n")
    done = corral("plan", "train", "--buy", str(file))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 7)
