"""The same run on other machines, in other regions and markets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from declared_runs import environment, run

from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.cost_range import Sum, Usd
from corral.forecast.run.alternatives import parse_alternatives
from corral.forecast.run.comparison import Alternative, compare_alternatives, on_machine
from corral.model.enums import Market
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.models.run import RunSpec

TRAIN = environment()
BASE = plan_base(TRAIN.base)
CLUSTER = plan_cluster(TRAIN.cluster, BASE)


def compared(declared: RunSpec, words: str) -> tuple[Alternative, ...]:
    wanted = parse_alternatives(words, declared.machine, "us-east-1", TRAIN.catalog)
    return compare_alternatives(declared, BASE, CLUSTER, wanted, catalog_prices)


@pytest.fixture(scope="module")
def rows() -> tuple[Alternative, ...]:
    """8B on 128 accelerators of two types in two regions, one of which lacks a type."""
    return compared(run("llama3-8b", 16), "p5.48xlarge,p4de.24xlarge,us-east-1,us-east-2")


def one(rows: tuple[Alternative, ...], instance_type: str, region: str, market: Market | None) -> Alternative:
    (found,) = (row for row in rows if (row.instance_type, row.region, row.market) == (instance_type, region, market))
    return found


def moved(instance_type: str, **fields: Any) -> RunSpec:
    return on_machine(run("llama3-8b", 3, batch_sequences=768, **fields), TRAIN.catalog.instance_type(instance_type))


def test_every_market_of_a_type_has_a_row_in_each_region(rows: tuple[Alternative, ...]) -> None:
    found = [(row.instance_type, row.region, row.market) for row in rows if row.why_not is None]
    assert len(found) == len(set(found)) == 9


def test_rows_are_sorted_by_highest_possible_cost(rows: tuple[Alternative, ...]) -> None:
    most = [row.usd.usd.high for row in rows if row.usd.usd]
    assert most == sorted(most)


def test_types_that_a_region_lacks_come_last_with_the_reason(rows: tuple[Alternative, ...]) -> None:
    row = rows[-1]
    assert (row.instance_type, row.region, row.market, row.why_not) == (
        "p4de.24xlarge",
        "us-east-2",
        None,
        "not offered in us-east-2 by the catalog's snapshot",
    )


def test_nodes_hold_all_accelerators() -> None:
    # 3 nodes of 8 are 24 accelerators: 2 machines of 16, which are 32; 24 machines of one.
    assert [moved(name).nodes for name in ("trn1.32xlarge", "p5.4xlarge", "p4d.24xlarge")] == [2, 24, 3]


def test_machines_without_efa_are_forecast_without_it() -> None:
    assert (moved("g5.xlarge").efa, moved("p4d.24xlarge").efa) == (False, True)


def test_queue_without_efa_has_none_elsewhere() -> None:
    assert moved("p4d.24xlarge", efa="off").efa is False


def test_cost_of_a_row_is_that_of_the_run_there(rows: tuple[Alternative, ...]) -> None:
    # 16 nodes at 55.04 USD an hour on demand, and small other charges.
    row = one(rows, "p5.48xlarge", "us-east-1", Market.ON_DEMAND)
    assert row.days is not None and row.usd.usd is not None
    assert row.usd.usd.low == pytest.approx(16 * 55.04 * 24 * row.days.low, rel=0.03)


def test_usd_per_billion_tokens_is_a_share_of_the_whole(rows: tuple[Alternative, ...]) -> None:
    row = replace(rows[0], tokens=500 * 10**9, usd=Sum(usd=Usd(1000.0, 2000.0)))
    assert row.usd_per_billion_tokens == Usd(2.0, 4.0)


def test_incomplete_cost_has_no_cost_per_billion_tokens(rows: tuple[Alternative, ...]) -> None:
    assert replace(rows[0], usd=Sum(usd=Usd(1.0, 2.0), missing=("x",))).usd_per_billion_tokens is None


def test_rows_without_a_known_price_come_after_others() -> None:
    found = compared(run("llama3-8b", 16), "p5e.48xlarge,p4d.24xlarge,us-west-2")
    assert (found[-1].instance_type, found[-1].market, found[-1].usd.missing) == (
        "p5e.48xlarge",
        Market.ON_DEMAND,
        ("16 p5e.48xlarge, on-demand",),
    )


def test_model_that_does_not_fit_shows_the_missing_memory() -> None:
    (found,) = compared(run("llama3-405b", 16, batch_sequences=256), "g5.48xlarge")
    assert (found.market, found.tokens_per_s, str(found.why_not)[:13]) == (None, None, "does not fit:")


def test_unsupported_precision_is_a_reason() -> None:
    (found,) = compared(run("llama3-8b", 16, precision="fp8"), "p4d.24xlarge")
    assert found.why_not == "A100-40 of p4d.24xlarge has no fp8 - use fp32 or fp16 or bf16"


def test_declared_layout_is_kept_if_possible() -> None:
    layout = {"tensor": 8, "pipeline": 1, "micro_batch": 1}
    found = compared(run("llama3-8b", 16, layout=layout), "p4d.24xlarge")
    assert {row.layout for row in found} == {"TP 8, DP 16, zero1, micro-batch 1"}


def test_impossible_declared_layout_is_a_reason() -> None:
    # 24 accelerators are 32 on Trainium, which 3 data ranks of 8 do not fill.
    layout = {"tensor": 8, "data": 3}
    (found,) = compared(run("llama3-8b", 3, batch_sequences=768, layout=layout), "trn1.32xlarge,us-east-1")
    assert str(found.why_not).startswith("the declared layout: tensor 8 x pipeline 1 x context 1 x data 3 is 24")


def test_block_limit_of_an_account_is_a_reason() -> None:
    found = compared(run("llama3-8b", 512, batch_sequences=4096), "p5.48xlarge")
    row = one(found, "p5.48xlarge", "us-east-1", Market.CAPACITY_BLOCK)
    assert row.why_not == "an account can have at most 256 instances in capacity blocks"


def test_regions_without_types_use_the_type_of_the_run() -> None:
    wanted = parse_alternatives("us-west-2", TRAIN.catalog.instance_type("p5.48xlarge"), "us-east-1", TRAIN.catalog)
    assert ([one.name for one in wanted.machines], wanted.regions) == (["p5.48xlarge"], ("us-west-2",))


def test_types_without_regions_use_the_region_of_the_environment() -> None:
    machine = TRAIN.catalog.instance_type("p5.48xlarge")
    assert parse_alternatives("p4d.24xlarge", machine, "us-east-1", TRAIN.catalog).regions == ("us-east-1",)
