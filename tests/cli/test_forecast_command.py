"""`corral forecast` as a command: its output, and errors of invalid tables."""

from __future__ import annotations

import json
from pathlib import Path

from calls import REPOSITORY, corral

SHIPPED = REPOSITORY / "modules" / "corral" / "catalog" / "data" / "training_runs.csv"


def test_error_summary_is_shown() -> None:
    shown = corral("forecast", "validate").stdout
    assert [line.split()[0] for line in shown.splitlines() if line.startswith("  all ")] == ["all"]
    assert "dense, 16 bits" in shown


def test_the_document_has_every_run() -> None:
    document = json.loads(corral("forecast", "validate", "--json").stdout)
    assert (document["schema"], len(document["rows"])) == ("corral.forecast-validation/1", 103)


def test_rows_of_a_file_are_read_like_shipped_ones(tmp_path: Path) -> None:
    own, shipped = (
        json.loads(corral("forecast", "validate", *rows, "--json").stdout) for rows in (("--rows", str(SHIPPED)), ())
    )
    assert own["rows"] == shipped["rows"]


def test_a_bad_table_is_wrong_input(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(SHIPPED.read_text().replace(",24,2304,9216,", ",many,2304,9216,", 1))
    done = corral("forecast", "validate", "--rows", str(file))
    assert done.returncode == 2
    assert done.stderr == (
        "corral: these rows were skipped:\n"
        f"{file}:5: layers (column 5): 'many' is not a whole number from 1 to 1,000,000,000\n"
    )


def test_valid_rows_of_a_bad_table_are_predicted(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(SHIPPED.read_text().replace(",24,2304,9216,", ",many,2304,9216,", 1))
    document = json.loads(corral("forecast", "validate", "--rows", str(file), "--json").stdout)
    assert len(document["rows"]) == 102


def test_impossible_row_is_reported_and_the_others_predicted(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    text = SHIPPED.read_text()
    line = next(line for line in text.splitlines() if line.startswith("mpt-7b-A100-40-128-2048,"))
    file.write_text(text.replace(line, line.replace("bf16 pure", "fp8")))
    done = corral("forecast", "validate", "--rows", str(file), "--json")
    assert (done.returncode, len(json.loads(done.stdout)["rows"]), done.stderr.splitlines()[1]) == (
        2,
        102,
        f"{file}:{text.splitlines().index(line) + 1}: precision (column 29): A100-40 has no fp8"
        " - use fp32 or bf16 or fp16",
    )


def test_table_without_valid_rows_prints_no_table(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    lines = [line for line in SHIPPED.read_text().splitlines() if not line.startswith("#")][:2]
    file.write_text("\n".join(lines).replace(",24,2304,9216,", ",many,2304,9216,", 1))
    done = corral("forecast", "validate", "--rows", str(file))
    assert (done.returncode, done.stdout) == (2, "")


def test_rows_and_table_options_exclude_each_other() -> None:
    done = corral("forecast", "validate", "--rows", str(SHIPPED), "--table", "first")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        "corral: --rows and --table first exclude each other: give one of them\n",
    )


def test_missing_file_is_wrong_input(tmp_path: Path) -> None:
    done = corral("forecast", "validate", "--rows", str(tmp_path / "no.csv"))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_binary_file_is_wrong_input(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_bytes(b"\xff\xfe\x00")
    assert corral("forecast", "validate", "--rows", str(file)).returncode == 2


def test_accelerators_are_shown_with_the_types_that_have_them() -> None:
    shown = corral("forecast", "accelerators").stdout
    row = next(line for line in shown.splitlines() if line.startswith("  Trainium2 "))
    assert row.split(maxsplit=8) == [
        "Trainium2", "96", "2.9", "667", "1,299", "-", "1,280", "200", "trn2.3xlarge, trn2.48xlarge",
    ]  # fmt: skip


def test_accelerators_that_cannot_be_provisioned_are_marked() -> None:
    document = json.loads(corral("forecast", "accelerators", "--json").stdout)
    known = {row["name"]: row["provisionable"] for row in document["accelerators"]}
    assert [known[name] for name in ("H100-80", "Trainium1", "TPUv5p", "Gaudi3", "CS-3", "Bow-IPU")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


def test_figure_without_a_source_is_omitted() -> None:
    document = json.loads(corral("forecast", "accelerators", "--json").stdout)
    (cs3,) = (row for row in document["accelerators"] if row["name"] == "CS-3")
    assert (cs3["peak_tflops"], cs3["memory_gib"]) == ({"16": None, "8": None, "4": None}, 44.0)
