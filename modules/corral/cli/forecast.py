"""`corral forecast ...`: how well training speed is predicted, by runs that others published; accelerators compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corral.cli.failure import ExitCode, Failure
from corral.cli.options import AsJson, examples, new_app
from corral.cli.screen import show, show_json
from corral.forecast.training.runs import PublishedRuns, readable_runs
from corral.forecast.training.validation import Table, compare, shipped_runs
from corral.report.accelerators import accelerators_document, accelerators_view
from corral.report.validation import validation_document, validation_view
from corral.spec.errors import SpecErrors

app = new_app("How fast a model trains, and how well that is predicted.")
_MOST_BYTES = 16 << 20  # of a table of runs; more is something else
Rows = Annotated[
    Path | None,
    typer.Option("--rows", metavar="CSV", help="Runs of your own, in the columns of corral's training_runs.csv."),
]
Shipped = Annotated[
    Table | None,
    typer.Option(
        "--table",
        help="Which published runs, first without it: no constant of the forecast was fitted to those that were held"
        " out.",
    ),
]


@app.callback(epilog=examples("corral forecast validate", "corral forecast accelerators"))
def forecast() -> None:
    """Forecast training speed, and say how well that is done."""


@app.command(
    epilog=examples(
        "corral forecast validate",
        "corral forecast validate --table held-out",
        "corral forecast validate --rows runs.csv --json | jq .median_error",
    )
)
def validate(rows: Rows = None, table: Shipped = None, json: AsJson = False) -> None:
    """Predict the speed of published training runs, and compare it with what was reported.

    Every row of the table is predicted by itself; nothing is fitted to it. docs/forecast.md says how, and what is off.
    """
    if rows is not None and table is not None:
        raise Failure(f"--rows and --table {table} both say which runs: give one of them", ExitCode.WRONG_INPUT)
    shipped = table or Table.FIRST
    file = shipped.file if rows is None else str(rows)
    found = PublishedRuns(runs=shipped_runs(shipped), mistakes=()) if rows is None else _read(rows)
    if found.mistakes and not found.runs:
        raise SpecErrors(found.mistakes)
    comparisons = compare(found.runs)
    if json:
        show_json(validation_document(comparisons, file))
    else:
        show(validation_view(comparisons, file))
    if found.mistakes:
        lines = "\n".join(map(str, found.mistakes))
        raise Failure(f"these rows are left out, the others are predicted:\n{lines}", ExitCode.WRONG_INPUT)


@app.command(
    epilog=examples(
        "corral forecast accelerators",
        "corral forecast accelerators --json | jq '.accelerators[] | select(.provisionable)'",
    )
)
def accelerators(json: AsJson = False) -> None:
    """Compare accelerators: memory, peaks, links, network, and which instance types have them.

    Those that no instance type has - TPU, Gaudi, Cerebras, IPU - are there for comparison alone. Every row has its
    source.
    """
    if json:
        show_json(accelerators_document())
    else:
        show(accelerators_view())


def _read(file: Path) -> PublishedRuns:
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", ExitCode.WRONG_INPUT) from None
    if len(data) > _MOST_BYTES:
        raise Failure(f"{file} has more than {_MOST_BYTES >> 20} MiB: that is no table of runs", ExitCode.WRONG_INPUT)
    try:
        return readable_runs(data.decode("utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise Failure(f"{file} is no UTF-8 text (byte {error.start})", ExitCode.WRONG_INPUT) from None
