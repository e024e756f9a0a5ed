"""`corral plan`: what would exist and what it would cost, and what becomes of a run in it, from the files alone."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.account import mean_account
from corral.cli.failure import ExitCode, Failure, at
from corral.cli.options import AsJson, BoxDirectory, Environment, Html, InBox, Project, examples, new_app
from corral.cli.planning import Options, Planned, planned
from corral.cli.project import find_environment
from corral.cli.screen import show, show_json
from corral.report.cost import cost_view
from corral.report.documents import plan_document
from corral.report.plan import plan_view
from corral.spec.files import read_environment

if TYPE_CHECKING:
    from corral.report.sections.section import Section

app = new_app()


class PriceSource(StrEnum):
    """Where prices are from: the words of the command line."""

    CATALOGUE = "catalogue"
    LIVE = "live"


Run = Annotated[
    Path | None,
    typer.Option("--run", metavar="FILE", help="A training run: whether it fits, how fast it is, what it costs."),
]
Compare = Annotated[
    str | None,
    typer.Option("--compare", metavar="LIST", help="The same run on these types and in these regions, by cost."),
]
Buy = Annotated[
    Path | None, typer.Option("--buy", metavar="FILE", help="Hardware to buy: what it costs beside renting.")
]
Prices = Annotated[
    PriceSource, typer.Option("--prices", help="live: those of AWS now, which takes credentials, or those of the box.")
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
    prices: Prices = PriceSource.CATALOGUE,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    html: Html = None,
    json: AsJson = False,
) -> None:
    """Show what would exist, and what it would cost. No account and no network is used, but for --prices live.

    Costs are those of an idle base, an idle cluster and all nodes at work; every price says where it is from. With
    --run: what becomes of a declared training run in it (docs/spec.md, "Run files"). --html also writes it as one page.
    Where usd_per_hour_max of the cluster or usd_total_max of the run does not hold: exit code 4, with all shown.
    """
    in_box, live = box or box_dir is not None, prices is PriceSource.LIVE
    if compare is not None and run is None:
        raise Failure("--compare compares a run: name its file with --run", ExitCode.WRONG_INPUT)
    if in_box and not live:
        raise Failure("--box and --box-dir say whose prices: add --prices live", ExitCode.WRONG_INPUT)
    spec = read_environment(find_environment(project, env), env)
    if live:
        mean_account(in_box=in_box, box_directory=box_dir)
    found = planned(spec, Options(run=run, compare=compare, buy=buy, live=live))
    if html is not None:
        _write(html, found)
    if json:
        _print_document(found)
    else:
        _show(found)
    if refusals := [limit.refusal for limit in found.limits if limit.refusal]:
        raise Failure("\n".join(refusals), ExitCode.REFUSED)


def _show(found: Planned) -> None:
    if found.whole is None:
        show(plan_view(found.base, found.cluster, found.notes, found.cost.kept))
        show(cost_view(found.cost))
    else:
        from corral.report.compare import compare_view
        from corral.report.run import run_view

        show(run_view(found.whole))
        if found.compared:
            show(compare_view(found.compared))
    if found.bought:
        from corral.report.buy import buy_view

        show(buy_view(found.bought))


def _print_document(found: Planned) -> None:
    buy = None
    if found.bought:
        from corral.report.buy import buy_document

        buy = buy_document(found.bought)
    if found.whole is None:
        show_json(plan_document(found.base, found.cluster, found.cost, found.notes, found.limits, buy))
        return
    from corral.report.run_document import run_document

    show_json(run_document(found.whole, found.limits, found.compared, buy))


def _write(file: Path, found: Planned) -> None:
    from corral.report.plan_page import page

    more = tuple(_sections(found))
    with at(file):
        text = page(found.base, found.cluster, found.cost, found.notes, found.whole, more)
        file.write_text(text, encoding="utf-8")


def _sections(found: Planned) -> Iterator[Section]:
    """What the page has beside the run and the plan. Their rooms are loaded for those that ask for them."""
    if found.compared:
        from corral.report.sections.compared import compare_section

        yield compare_section(found.compared)
    if found.bought:
        from corral.report.sections.bought import buy_section

        yield buy_section(found.bought)
