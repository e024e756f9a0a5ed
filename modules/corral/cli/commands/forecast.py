"""`corral forecast ...`: validates speed forecasts against published training runs, and compares accelerators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import AsJson, examples, new_app
from corral.cli.support.output import show, show_json
from corral.forecast.published.published_runs import PublishedRuns, readable_runs
from corral.forecast.published.speed_validation import PublishedTable, compare_speeds, shipped_runs
from corral.report.run.accelerator_table import accelerators_document, accelerators_view
from corral.report.run.validation_view import validation_document, validation_view
from corral.spec.spec_errors import SpecErrors

app = new_app("Validate speed forecasts and compare accelerators.")
_MAX_BYTES = 16 << 20  # a table of runs is far smaller
Rows = Annotated[
    Path | None,
    typer.Option("--rows", metavar="CSV", help="Your own runs, with the columns of corral's training_runs.csv."),
]
Shipped = Annotated[
    PublishedTable | None,
    typer.Option(
        "--table",
        help="Published runs to use (default: first). No constant of the forecast was fitted to held-out.",
    ),
]


@app.callback(epilog=examples("corral forecast validate", "corral forecast accelerators"))
def forecast() -> None:
    """Validate speed forecasts and compare accelerators."""


@app.command(
    epilog=examples(
        "corral forecast validate",
        "corral forecast validate --table held-out",
        "corral forecast validate --rows runs.csv --json | jq .median_error",
    )
)
def validate(rows: Rows = None, table: Shipped = None, json: AsJson = False) -> None:
    """Compare speed forecasts with published training runs.

    Each run is predicted on its own; nothing is fitted to it. docs/forecast.md explains the method and its errors.
    """
    if rows is not None and table is not None:
        raise Failure(f"--rows and --table {table} exclude each other: give one of them", ExitCode.WRONG_INPUT)
    shipped = table or PublishedTable.FIRST
    file = shipped.file if rows is None else str(rows)
    found = PublishedRuns(runs=shipped_runs(shipped), mistakes=()) if rows is None else _read(rows)
    if found.mistakes and not found.runs:
        raise SpecErrors(found.mistakes)
    comparisons = compare_speeds(found.runs)
    if json:
        show_json(validation_document(comparisons, file))
    else:
        show(validation_view(comparisons, file))
    if found.mistakes:
        lines = "\n".join(map(str, found.mistakes))
        raise Failure(f"these rows were skipped:\n{lines}", ExitCode.WRONG_INPUT)


@app.command(
    epilog=examples(
        "corral forecast accelerators",
        "corral forecast accelerators --json | jq '.accelerators[] | select(.provisionable)'",
    )
)
def accelerators(json: AsJson = False) -> None:
    """Compare accelerators by memory, speed, links and network.

    Shows the instance types that have each one. TPU, Gaudi, Cerebras and IPU are listed for comparison only. Every row
    has its source.
    """
    if json:
        show_json(accelerators_document())
    else:
        show(accelerators_view())


def _read(file: Path) -> PublishedRuns:
    try:
        with file.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", ExitCode.WRONG_INPUT) from None
    if len(data) > _MAX_BYTES:
        raise Failure(f"{file} is larger than {_MAX_BYTES >> 20} MiB: not a table of runs", ExitCode.WRONG_INPUT)
    try:
        return readable_runs(data.decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise Failure(f"{file} is not UTF-8 text (byte {error.start})", ExitCode.WRONG_INPUT) from None
