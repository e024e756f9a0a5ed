"""`corral forecast ...`: for now how well training speed is predicted, by runs that others published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corral.cli.failure import ExitCode, Failure
from corral.cli.options import AsJson, examples, new_app
from corral.cli.screen import show, show_json
from corral.forecast.training.runs import PublishedRun, parse_runs
from corral.forecast.training.validation import SHIPPED, compare, shipped_runs
from corral.report.validation import validation_document, validation_view

app = new_app("How fast a model trains, and how well that is predicted.")
_MOST_BYTES = 16 << 20  # of a table of runs; more is something else
Rows = Annotated[
    Path | None,
    typer.Option("--rows", metavar="CSV", help="Runs of your own, in the columns of corral's training_runs.csv."),
]


@app.callback(epilog=examples("corral forecast validate"))
def forecast() -> None:
    """Forecast training speed, and say how well that is done."""


@app.command(
    epilog=examples("corral forecast validate", "corral forecast validate --rows runs.csv --json | jq .median_error")
)
def validate(rows: Rows = None, json: AsJson = False) -> None:
    """Predict the speed of published training runs, and compare it with what was reported.

    Every row of the table is predicted by itself; nothing is fitted to it. docs/forecast.md says how, and what is off.
    """
    file = SHIPPED if rows is None else str(rows)
    comparisons = compare(shipped_runs() if rows is None else _read(rows))
    if json:
        show_json(validation_document(comparisons, file))
    else:
        show(validation_view(comparisons, file))


def _read(file: Path) -> tuple[PublishedRun, ...]:
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", ExitCode.WRONG_INPUT) from None
    if len(data) > _MOST_BYTES:
        raise Failure(f"{file} has more than {_MOST_BYTES >> 20} MiB: that is no table of runs", ExitCode.WRONG_INPUT)
    try:
        return parse_runs(data.decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise Failure(f"{file} is no UTF-8 text (byte {error.start})", ExitCode.WRONG_INPUT) from None
