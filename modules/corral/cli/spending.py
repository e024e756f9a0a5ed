"""What a life took, priced by the environment's files as they are now, and a run's forecast: for `corral timeline`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corral.cli.lived import Lived
from corral.cli.outlines import Outline
from corral.cli.planning import Options, planned
from corral.forecast.catalogue import catalogue_prices
from corral.forecast.whole.run import WholeRun
from corral.report.spent.compared import Comparison, compare, interval_of
from corral.report.spent.ledger import Spent, spent
from corral.report.spent.tariff import Tariff


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """By what a life is measured: the prices, and the forecast of a run where one is given."""

    tariff: Tariff
    whole: WholeRun | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What was spent, the forecast beside it. `problem`: why one of them is missing though it was wished."""

    took: Spent | None
    against: Comparison | None = None
    problem: str = ""


def measures(seen: Outline, run: Path | None) -> Measures | None:
    """None where the environment's files have mistakes, since prices follow the plan.

    Raises SpecErrors where the run's file has some.
    """
    if seen.spec is None:
        return None
    now = planned(seen.spec, Options(run=run, compare=None, buy=None, live=False))
    prices = catalogue_prices(now.cluster.region, seen.spec.catalogue)
    return Measures(tariff=Tariff(cluster=now.cluster, cost=now.cost, prices=prices), whole=now.whole)


def spending(by: Measures | None, life: Lived) -> Spending:
    """What was spent in the time that is shown, and the run's forecast beside it."""
    if by is None:
        return Spending(took=None, problem="nothing is said of money, since the environment's files have mistakes")
    interval_s = None if by.whole is None else interval_of(by.whole)
    shown = life.picture
    took = spent(life.events, life.runs, by.tariff, start=shown.start, end=shown.end, interval_s=interval_s)
    against = None if by.whole is None else compare(took, by.whole)
    problem = ""
    if by.whole is not None and against is None:
        problem = f"no job of queue {by.whole.spec.queue} has run: no forecast stands beside it"
    return Spending(took=took, against=against, problem=problem)
