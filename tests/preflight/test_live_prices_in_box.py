"""`corral plan --prices live` against the box, whose price list has the catalog's prices and whose spot moves."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import boxes
from corral.box.client import BoxStatus
from environments import PROJECT
from forked_corral import run_corral

pytestmark = pytest.mark.box


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    """An account without anything."""
    with boxes.running_box(tmp_path_factory.mktemp("box")) as status:
        yield status


def corral(box: BoxStatus, *words: str) -> subprocess.CompletedProcess[str]:
    return run_corral("plan", *words, cwd=PROJECT, env=boxes.process_environment(box))


def live(box: BoxStatus, *words: str) -> dict[str, Any]:
    done = corral(box, *words, "--prices", "live", "--box-dir", str(box.dir), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_on_demand_is_the_price_lists(box: BoxStatus) -> None:
    queues = live(box, "dev")["cost"]["queues"]
    (row,) = (one for one in queues if one["market"] == "on-demand")
    assert (row["usd_per_node_hour"]["high"], row["source"][:31]) == (21.957642, "AWS Price List API, 2026-11-01;")


def test_spot_is_a_range_of_thirty_days(box: BoxStatus) -> None:
    queues = live(box, "dev")["cost"]["queues"]
    (row,) = (one for one in queues if one["market"] == "spot")
    assert row["usd_per_node_hour"]["low"] < row["usd_per_node_hour"]["high"]
    assert "spot: DescribeSpotPriceHistory, the lowest and the highest price in use1-az1, use1-az2" in row["source"]


def test_services_are_the_price_lists_where_it_has_them(box: BoxStatus) -> None:
    base = {row["what"]: row["source"] for row in live(box, "dev")["cost"]["base"]}
    assert base["NAT gateway"] == "AWS Price List API, 2026-11-01"


def test_prices_that_are_not_current_are_a_warning(box: BoxStatus) -> None:
    texts = [one["message"] for one in live(box, "dev")["warnings"] if one["about"] == "prices"]
    assert [text.partition(":")[0] for text in texts] == ["from the catalog, since AWS did not return them"]


def test_a_run_is_compared_by_the_prices_of_each_region(box: BoxStatus) -> None:
    words = ("train", "--run", "examples/runs/llama3-8b.yaml", "--compare", "p4d.24xlarge,us-east-1,us-west-2")
    rows = live(box, *words)["compared"]
    assert sorted({row["region"] for row in rows}) == ["us-east-1", "us-west-2"]


def test_a_box_without_live_prices_is_refused(box: BoxStatus) -> None:
    done = corral(box, "dev", "--box-dir", str(box.dir))
    assert (done.returncode, done.stderr) == (
        2,
        "corral: --box and --box-dir need --prices live\n",
    )


def test_a_stopped_box_is_an_error(box: BoxStatus, tmp_path: Path) -> None:
    done = corral(box, "dev", "--prices", "live", "--box-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
