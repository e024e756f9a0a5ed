"""`corral plan`: what would exist and what it would cost, from the files alone."""

from __future__ import annotations

from corral.cli.options import AsJson, Environment, Project, examples, new_app
from corral.cli.project import find_environment
from corral.cli.screen import show, show_json
from corral.forecast.capacity import pool_counts
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.cost import forecast_cost
from corral.forecast.notes import notes, replaced
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.report.cost import cost_view
from corral.report.documents import plan_document
from corral.report.plan import plan_view
from corral.spec.files import read_environment

app = new_app()


@app.command(epilog=examples("corral plan dev", "corral plan dev --json | jq .cost.maximum_usd_per_hour"))
def plan(env: Environment, project: Project = None, json: AsJson = False) -> None:
    """Show what would exist, and what it would cost. No account and no network is used.

    Costs are those of an idle base, an idle cluster and all nodes at work; every price says where it is from.
    """
    spec = read_environment(find_environment(project, env), env)
    base = plan_base(spec.base)
    cluster = plan_cluster(spec.cluster, base, catalogue=spec.catalogue)
    prices = catalogue_prices(cluster.region, spec.catalogue)
    counts = pool_counts(spec.cluster)
    cost = forecast_cost(base, cluster, prices, counts)
    known = (*replaced(spec.catalogue), *notes(base, cluster, prices, counts))
    if json:
        show_json(plan_document(base, cluster, cost, known))
        return
    show(plan_view(base, cluster, known, cost.kept))
    show(cost_view(cost))
