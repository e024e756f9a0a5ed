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
    """The terminal output for 8B in `train`."""
    done = corral("plan", "train", "--run", RUN)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_run_is_shown_in_one_view(shown: str) -> None:
    begins = [line.split("  ")[0] for line in shown.splitlines() if line and not line.startswith(" ")]
    assert [line for line in begins if line not in ("were within it", "expected")] == [
        "llama3-8b on 16 p5.48xlarge",
        "Layout",
        "Memory",
        "Speed",
        "Network",
        "Checkpoints",
        "Data",
        "Duration and cost",
        "Power",
        "Warnings",
        "Assumed",
    ]


def test_reasons_of_rejected_layouts_are_shown(shown: str) -> None:
    assert "slower:" in shown
    assert "GiB too large" in " ".join(shown.split())


def test_no_line_is_wider_than_80_columns(shown: str) -> None:
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_the_document_has_the_same_figures(shown: str) -> None:
    document = json.loads(corral("plan", "train", "--run", RUN, "--json").stdout)
    assert (document["schema"], document["fits"], [one["market"] for one in document["markets"]]) == (
        "corral.run/3",
        True,
        ["capacity-block", "reservation", "spot"],
    )
    assert f"{document['speed']['tokens_per_s']:,.0f}" in shown


def test_all_errors_of_a_run_file_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: llama3-9b\ntokens: many\nsequence_length: 0\nbatch_sequences: 8\n")
    done = corral("plan", "train", "--run", str(file))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 3)


def test_missing_run_file_is_reported() -> None:
    done = corral("plan", "train", "--run", "nowhere.yaml")
    assert (done.returncode, done.stderr) == (
        2,
        "nowhere.yaml: cannot be read: No such file or directory - use a run file\n",
    )


def test_run_that_does_not_fit_shows_missing_memory_and_first_change(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: llama3-405b\ntokens: 1T\nsequence_length: 8192\nbatch_sequences: 256\nnodes: 2\n")
    done = corral("plan", "train", "--run", str(file))
    assert done.returncode == 0
    assert "  missing" in done.stdout
    assert "  change first" in done.stdout
    assert "Duration and cost" not in done.stdout


def test_run_shorter_than_its_best_interval_saves_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: llama3-8b\ntokens: 50M\nsequence_length: 8192\nbatch_sequences: 128\n")
    shown = corral("plan", "train", "--run", str(file)).stdout
    assert (shown.count(" at the end"), shown.count("once a day")) == (3, 0)


def test_a_run_that_does_not_fit_reads_at_no_rate(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: llama3-405b\ntokens: 1T\nsequence_length: 8192\nbatch_sequences: 256\nnodes: 2\n")
    assert "  data            4.00 TB in total\n" in corral("plan", "train", "--run", str(file)).stdout


def test_page_of_a_run_that_does_not_fit_shows_the_first_change(tmp_path: Path) -> None:
    file, html = tmp_path / "run.yaml", tmp_path / "plan.html"
    file.write_text("model: llama3-405b\ntokens: 1T\nsequence_length: 8192\nbatch_sequences: 256\nnodes: 2\n")
    corral("plan", "train", "--run", str(file), "--html", str(html))
    page = html.read_text()
    sentences = (
        "no layout fits",
        "lacks the least memory",
        "first: use 16 nodes instead of 2",
        "the fastest that fits",
    )
    assert [one in page for one in sentences] == [True, True, True, False]


def test_peak_is_named_in_8_bits(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(Path(REPOSITORY, RUN).read_text().replace("bf16", "fp8"))
    assert "of the 16-bit peak" in " ".join(corral("plan", "train", "--run", str(file)).stdout.split())


def test_page_is_written_in_addition_to_the_output(tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    done = corral("plan", "train", "--run", RUN, "--html", str(file))
    assert (done.returncode, file.read_text().splitlines()[0], "Duration and cost" in done.stdout) == (
        0,
        "<!doctype html>",
        True,
    )


def test_unwritable_page_is_reported(tmp_path: Path) -> None:
    done = corral("plan", "dev", "--html", str(tmp_path / "nowhere" / "plan.html"))
    assert (done.returncode, "nowhere/plan.html" in done.stderr, done.stdout) == (1, True, "")


def test_run_over_its_limit_is_shown_and_refused(tmp_path: Path, shown: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(Path(REPOSITORY / RUN).read_text() + "usd_total_max: 1000\n")
    done = corral("plan", "train", "--run", str(file))
    assert (done.returncode, done.stdout) == (4, shown)
    assert done.stderr.startswith(f"corral: {file}: usd_total_max: the run on spot costs up to ")


def test_document_has_the_exceeded_limit(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(Path(REPOSITORY / RUN).read_text() + "usd_total_max: 1000\n")
    (limit,) = json.loads(corral("plan", "train", "--run", str(file), "--json").stdout)["limits"]
    assert (limit["field"], limit["usd"]) == ("usd_total_max", 1000.0)
    assert limit["refusal"]["message"].endswith(" USD, the limit is 1,000.00")
    assert limit["refusal"]["fix"].endswith(", or raise the limit")


@pytest.fixture
def tight(tmp_path: Path) -> Path:
    """The shipped project, with a limit of one dollar an hour for `dev`."""
    shutil.copytree(REPOSITORY / "stacks", tmp_path / "stacks")
    file = tmp_path / "stacks/cluster/Pulumi.dev.yaml"
    file.write_text(
        file.read_text().replace("corral-cluster:spec:\n", "corral-cluster:spec:\n    usd_per_hour_max: 1\n")
    )
    return tmp_path


def test_an_environment_over_its_limit_is_planned_and_refused(tight: Path) -> None:
    done = corral("plan", "dev", "--project", str(tight))
    assert (done.returncode, "Sources of the prices" in done.stdout) == (4, True)
    assert "usd_per_hour_max: an hour with all nodes running costs up to " in done.stderr


def test_up_refuses_an_environment_over_its_limit_before_any_work(tight: Path) -> None:
    done = corral("up", "dev", "--yes", "--box-dir", str(tight / "box"), "--project", str(tight))
    assert (done.returncode, done.stdout, (tight / "box").exists()) == (4, "", False)
    assert "usd_per_hour_max: an hour with all nodes running costs up to " in done.stderr


def test_a_comparison_is_a_table_below_the_run(shown: str) -> None:
    done = corral("plan", "train", "--run", RUN, "--compare", "p4d.24xlarge,p5.48xlarge")
    assert (done.returncode, done.stdout.startswith(shown)) == (0, True)
    assert "Compared  cheapest first" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_the_document_has_the_comparison_in_its_order() -> None:
    done = corral("plan", "train", "--run", RUN, "--compare", "p4d.24xlarge,us-west-2,us-east-1", "--json")
    rows = json.loads(done.stdout)["compared"]
    most = [row["usd"]["high"] for row in rows]
    assert (len(rows), most) == (6, sorted(most))


def test_all_errors_of_compare_are_reported_at_once() -> None:
    done = corral("plan", "train", "--run", RUN, "--compare", "p4d.24xl,us-esat-1,m7i.2xlarge,p5e.48xlarge")
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (
        2,
        "",
        [
            "--compare: 'p4d.24xl' is neither a type with accelerators nor a region in the catalog"
            " - did you mean 'p4d.24xlarge'?",
            "--compare: 'us-esat-1' is neither a type with accelerators nor a region in the catalog"
            " - did you mean 'us-east-1'?",
            "--compare: 'm7i.2xlarge' has no accelerators - remove it",
            "--compare: 'p5e.48xlarge' is not offered in us-east-1 by the catalog's snapshot - it is in ap-southeast-2,"
            " ap-southeast-3, eu-north-1, eu-west-2, sa-east-1, us-east-2, us-west-2",
        ],
    )


def test_a_comparison_without_a_run_is_refused() -> None:
    done = corral("plan", "train", "--compare", "p4d.24xlarge")
    assert (done.returncode, done.stderr) == (2, "corral: --compare needs a run: add --run FILE\n")


def test_the_page_has_the_comparison(tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    corral("plan", "train", "--run", RUN, "--compare", "p4d.24xlarge", "--html", str(file))
    assert '<section id="compared"' in file.read_text()


def test_rent_vs_buy_is_below_the_cost() -> None:
    done = corral("plan", "train", "--buy", "examples/buy/h100.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nRent or buy  16 servers of 8 H100-80 instead of queue train\n" in done.stdout


def test_rent_vs_buy_is_in_both_documents() -> None:
    buy = ("--buy", "examples/buy/h100.yaml", "--json")
    found = [json.loads(corral("plan", "train", *run, *buy).stdout)["buy"] for run in ((), ("--run", RUN))]
    assert found[0] == found[1]
    assert found[0]["price_usd"] == 4_800_000


def test_page_has_rent_vs_buy(tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    corral("plan", "train", "--buy", "examples/buy/h100.yaml", "--html", str(file))
    assert '<section id="buy"' in file.read_text()


def test_all_errors_of_a_buy_file_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "buy.yaml"
    file.write_text("usd_per_accelerator: -1\nyears: 0\n")
    done = corral("plan", "train", "--buy", str(file))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 7)
