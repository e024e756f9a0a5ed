"""`corral plan`: shows the resources and cost of an environment, and forecasts a training run in it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import AsJson, BoxDirectory, Environment, Html, InBox, Project, examples, new_app
from corral.cli.support.output import show, show_json
from corral.cli.support.page_file import write_page
from corral.cli.support.plan_service import PlanOptions, PlanResult, compute_plan
from corral.cli.support.project import find_environment
from corral.cli.support.target_account import use_account
from corral.report.plan.cost_view import cost_view
from corral.report.plan.plan_json import plan_document
from corral.report.plan.plan_view import plan_view
from corral.spec.yaml.stack_files import read_environment

if TYPE_CHECKING:
    from corral.report.sections.section import Section

app = new_app()


class PriceSource(StrEnum):
    """Where prices come from: the values of --prices."""

    CATALOG = "catalog"
    LIVE = "live"


Run = Annotated[
    Path | None,
    typer.Option("--run", metavar="FILE", help="Forecast this training run: memory, speed, days, cost."),
]
Compare = Annotated[
    str | None,
    typer.Option(
        "--compare", metavar="LIST", help="Compare the run on these instance types and in these regions, by cost."
    ),
]
Buy = Annotated[Path | None, typer.Option("--buy", metavar="FILE", help="Compare renting with buying this hardware.")]
Prices = Annotated[
    PriceSource,
    typer.Option(
        "--prices",
        show_default=False,
        help="Price source; `live` queries AWS and needs credentials or --box (default: catalog).",
    ),
]


@app.command(
    epilog=examples(
        "corral plan dev",
        "corral plan dev --json | jq .cost.maximum_usd_per_hour",
        "corral plan train --run examples/runs/llama3-8b.yaml --html plan.html",
        "corral plan train --run examples/runs/llama3-8b.yaml --compare p4d.24xlarge,p5.48xlarge,us-west-2",
        "corral plan train --buy examples/buy/h100.yaml",
        "corral plan dev --prices live --box",
    )
)
def plan(
    env: Environment,
    project: Project = None,
    run: Run = None,
    compare: Compare = None,
    buy: Buy = None,
    prices: Prices = PriceSource.CATALOG,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    html: Html = None,
    json: AsJson = False,
) -> None:
    """Show the resources of an environment and their cost.

    Uses no account and no network, except with --prices live. Shows the cost of the idle base, of the idle cluster and
    of all nodes running; every price names its source. --run forecasts a training run (docs/spec.md, "Run files"). The
    exit code is 4 if the cost exceeds usd_per_hour_max of the cluster or usd_total_max of the run.
    """
    in_box, live = box or box_dir is not None, prices is PriceSource.LIVE
    if compare is not None and run is None:
        raise Failure("--compare needs a run: add --run FILE", ExitCode.WRONG_INPUT)
    if in_box and not live:
        raise Failure("--box and --box-dir need --prices live", ExitCode.WRONG_INPUT)
    spec = read_environment(find_environment(project, env), env)
    if live:
        use_account(in_box=in_box, box_directory=box_dir)
    result = compute_plan(spec, PlanOptions(run=run, compare=compare, buy=buy, live=live))
    if html is not None:
        _write(html, result)
    if json:
        _print_document(result)
    else:
        _show(result)
    if refusals := [str(limit.refusal) for limit in result.limits if limit.refusal]:
        raise Failure("\n".join(refusals), ExitCode.REFUSED)


def _show(result: PlanResult) -> None:
    if result.run is None:
        show(plan_view(result.base, result.cluster, result.warnings, result.cost.retained))
        show(cost_view(result.cost))
    else:
        from corral.report.run.comparison_view import compare_view
        from corral.report.run.run_view import run_view

        show(run_view(result.run))
        if result.alternatives:
            show(compare_view(result.alternatives))
    if result.rent_vs_buy:
        from corral.report.run.rent_vs_buy_view import buy_view

        show(buy_view(result.rent_vs_buy))


def _print_document(result: PlanResult) -> None:
    buy = None
    if result.rent_vs_buy:
        from corral.report.run.rent_vs_buy_view import buy_document

        buy = buy_document(result.rent_vs_buy)
    if result.run is None:
        show_json(plan_document(result.base, result.cluster, result.cost, result.warnings, result.limits, buy))
        return
    from corral.report.run.run_json import run_document

    show_json(run_document(result.run, result.limits, result.alternatives, buy))


def _write(file: Path, result: PlanResult) -> None:
    from corral.report.pages.plan_page import plan_page

    more = tuple(_sections(result))
    write_page(file, plan_page(result.base, result.cluster, result.cost, result.warnings, result.run, more))


def _sections(result: PlanResult) -> Iterator[Section]:
    """Further sections of the page. Their modules are imported only when needed."""
    if result.alternatives:
        from corral.report.sections.comparison_section import compare_section

        yield compare_section(result.alternatives)
    if result.rent_vs_buy:
        from corral.report.sections.rent_vs_buy_section import buy_section

        yield buy_section(result.rent_vs_buy)
