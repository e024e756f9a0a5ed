"""`corral plan`: what would exist and what it would cost, and what becomes of a run in it, from the files alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.failure import at
from corral.cli.options import AsJson, Environment, Project, examples, new_app
from corral.cli.project import find_environment
from corral.cli.screen import show, show_json
from corral.forecast.bill import CostForecast
from corral.forecast.capacity import Counts, pool_counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.notes import Note, notes, replaced
from corral.forecast.prices import PriceList
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.report.cost import cost_view
from corral.report.documents import plan_document
from corral.report.plan import plan_view
from corral.spec.files import Environment as Spec
from corral.spec.files import read_environment

if TYPE_CHECKING:
    from corral.forecast.whole.run import WholeRun

app = new_app()
Run = Annotated[
    Path | None,
    typer.Option("--run", metavar="FILE", help="A training run: whether it fits, how fast it is, what it costs."),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page to this file as well.")
]


@app.command(
    epilog=examples(
        "corral plan dev",
        "corral plan dev --json | jq .cost.maximum_usd_per_hour",
        "corral plan train --run examples/runs/llama3-8b.yaml --html plan.html",
    )
)
def plan(env: Environment, project: Project = None, run: Run = None, html: Html = None, json: AsJson = False) -> None:
    """Show what would exist, and what it would cost. No account and no network is used.

    Costs are those of an idle base, an idle cluster and all nodes at work; every price says where it is from. With
    --run: what becomes of a declared training run in it (docs/spec.md, "Run files"). --html also writes it as one page.
    """
    spec = read_environment(find_environment(project, env), env)
    base = plan_base(spec.base)
    cluster = plan_cluster(spec.cluster, base, catalogue=spec.catalogue)
    prices = catalogue_prices(cluster.region, spec.catalogue)
    counts = pool_counts(spec.cluster)
    cost = forecast_cost(base, cluster, prices, counts)
    known = (*replaced(spec.catalogue), *notes(base, cluster, prices, counts))
    whole = _forecast(run, spec, base, cluster, cost, prices, counts) if run is not None else None
    if html is not None:
        _write(html, base, cluster, cost, known, whole)
    if whole is not None:
        _show_run(whole, as_json=json)
    elif json:
        show_json(plan_document(base, cluster, cost, known))
    else:
        show(plan_view(base, cluster, known, cost.kept))
        show(cost_view(cost))


def _forecast(
    file: Path,
    spec: Spec,
    base: BasePlan,
    cluster: ClusterPlan,
    cost: CostForecast,
    prices: PriceList,
    counts: Counts,
) -> WholeRun:
    """What becomes of the run that the file declares. Its rooms are not loaded for a plan without one."""
    from corral.forecast.whole.run import forecast_whole
    from corral.spec.run_files import read_run

    return forecast_whole(read_run(file, spec), base, cluster, cost, prices, counts)


def _show_run(whole: WholeRun, *, as_json: bool) -> None:
    if as_json:
        from corral.report.run_document import run_document

        show_json(run_document(whole))
    else:
        from corral.report.run import run_view

        show(run_view(whole))


def _write(
    file: Path, base: BasePlan, cluster: ClusterPlan, cost: CostForecast, known: Sequence[Note], whole: WholeRun | None
) -> None:
    from corral.report.plan_page import page

    with at(file):
        file.write_text(page(base, cluster, cost, known, whole), encoding="utf-8")
