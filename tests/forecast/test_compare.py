"""The same run on other machines, in other regions and markets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from declared_runs import environment, run

from corral.forecast.catalogue import catalogue_prices
from corral.forecast.money import Sum, Usd
from corral.forecast.whole.alternatives import parse_alternatives
from corral.forecast.whole.compare import Compared, compare, on_machine
from corral.model.markets import Market
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.run import RunSpec

TRAIN = environment()
BASE = plan_base(TRAIN.base)
CLUSTER = plan_cluster(TRAIN.cluster, BASE)


def compared(declared: RunSpec, words: str) -> tuple[Compared, ...]:
    wanted = parse_alternatives(words, declared.machine, "us-east-1", TRAIN.catalogue)
    return compare(declared, BASE, CLUSTER, wanted, catalogue_prices)


@pytest.fixture(scope="module")
def rows() -> tuple[Compared, ...]:
    """8B of 128 accelerators on two types in two regions, one of which has not both."""
    return compared(run("llama3-8b", 16), "p5.48xlarge,p4de.24xlarge,us-east-1,us-east-2")


def one(rows: tuple[Compared, ...], instance_type: str, region: str, market: Market | None) -> Compared:
    (found,) = (row for row in rows if (row.instance_type, row.region, row.market) == (instance_type, region, market))
    return found


def moved(instance_type: str, **fields: Any) -> RunSpec:
    return on_machine(run("llama3-8b", 3, batch_sequences=768, **fields), TRAIN.catalogue.instance_type(instance_type))


def test_every_market_of_a_type_has_a_row_in_each_region(rows: tuple[Compared, ...]) -> None:
    found = [(row.instance_type, row.region, row.market) for row in rows if row.why_not is None]
    assert len(found) == len(set(found)) == 9


def test_rows_go_by_the_most_that_they_may_cost(rows: tuple[Compared, ...]) -> None:
    most = [row.usd.usd.high for row in rows if row.usd.usd]
    assert most == sorted(most)


def test_what_a_region_does_not_offer_comes_last_with_the_reason(rows: tuple[Compared, ...]) -> None:
    row = rows[-1]
    assert (row.instance_type, row.region, row.market, row.why_not) == (
        "p4de.24xlarge",
        "us-east-2",
        None,
        "was not offered in us-east-2 when last looked",
    )


def test_nodes_are_as_many_as_hold_the_accelerators() -> None:
    # 3 nodes of 8 are 24 accelerators: 2 machines of 16, which are 32; 24 machines of one.
    assert [moved(name).nodes for name in ("trn1.32xlarge", "p5.4xlarge", "p4d.24xlarge")] == [2, 24, 3]


def test_machines_without_efa_are_joined_without_it() -> None:
    assert (moved("g5.xlarge").efa, moved("p4d.24xlarge").efa) == (False, True)


def test_a_queue_that_wants_no_efa_wants_none_elsewhere() -> None:
    assert moved("p4d.24xlarge", efa="off").efa is False


def test_a_row_costs_what_the_run_costs_there(rows: tuple[Compared, ...]) -> None:
    # 16 nodes at 55.04 USD an hour on demand, and little beside them.
    row = one(rows, "p5.48xlarge", "us-east-1", Market.ON_DEMAND)
    assert row.days is not None and row.usd.usd is not None
    assert row.usd.usd.low == pytest.approx(16 * 55.04 * 24 * row.days.low, rel=0.03)


def test_usd_for_a_billion_tokens_is_a_part_of_the_whole(rows: tuple[Compared, ...]) -> None:
    row = replace(rows[0], tokens=500 * 10**9, usd=Sum(usd=Usd(1000.0, 2000.0)))
    assert row.usd_per_billion_tokens == Usd(2.0, 4.0)


def test_of_a_cost_that_lacks_a_price_no_billion_is_told(rows: tuple[Compared, ...]) -> None:
    assert replace(rows[0], usd=Sum(usd=Usd(1.0, 2.0), missing=("x",))).usd_per_billion_tokens is None


def test_what_has_no_known_price_comes_after_what_has() -> None:
    found = compared(run("llama3-8b", 16), "p5e.48xlarge,p4d.24xlarge,us-west-2")
    assert (found[-1].instance_type, found[-1].market, found[-1].usd.missing) == (
        "p5e.48xlarge",
        Market.ON_DEMAND,
        ("16 p5e.48xlarge, on-demand",),
    )


def test_a_model_that_does_not_fit_says_what_it_lacks() -> None:
    (found,) = compared(run("llama3-405b", 16, batch_sequences=256), "g5.48xlarge")
    assert (found.market, found.tokens_per_s, str(found.why_not)[:13]) == (None, None, "does not fit,")


def test_numbers_that_a_machine_has_not_are_a_reason() -> None:
    (found,) = compared(run("llama3-8b", 16, precision="fp8"), "p4d.24xlarge")
    assert found.why_not == "A100-40 of p4d.24xlarge has no fp8 - use fp32 or fp16 or bf16"


def test_a_declared_layout_is_kept_where_it_is_possible() -> None:
    layout = {"tensor": 8, "pipeline": 1, "micro_batch": 1}
    found = compared(run("llama3-8b", 16, layout=layout), "p4d.24xlarge")
    assert {row.layout for row in found} == {"TP 8, DP 16, zero1, micro-batch 1"}


def test_a_declared_layout_that_is_not_possible_is_told() -> None:
    # 24 accelerators are 32 on Trainium, which 3 data ranks of 8 do not make.
    layout = {"tensor": 8, "data": 3}
    (found,) = compared(run("llama3-8b", 3, batch_sequences=768, layout=layout), "trn1.32xlarge,us-east-1")
    assert str(found.why_not).startswith("the declared layout: tensor 8 x pipeline 1 x context 1 x data 3 is 24")


def test_more_than_an_account_has_in_blocks_is_told() -> None:
    found = compared(run("llama3-8b", 512, batch_sequences=4096), "p5.48xlarge")
    row = one(found, "p5.48xlarge", "us-east-1", Market.CAPACITY_BLOCK)
    assert row.why_not == "an account has 256 instances in capacity blocks at most"


def test_regions_alone_mean_the_type_of_the_run() -> None:
    wanted = parse_alternatives("us-west-2", TRAIN.catalogue.instance_type("p5.48xlarge"), "us-east-1", TRAIN.catalogue)
    assert ([one.name for one in wanted.machines], wanted.regions) == (["p5.48xlarge"], ("us-west-2",))


def test_types_alone_mean_the_region_of_the_environment() -> None:
    machine = TRAIN.catalogue.instance_type("p5.48xlarge")
    assert parse_alternatives("p4d.24xlarge", machine, "us-east-1", TRAIN.catalogue).regions == ("us-east-1",)
