"""The prices on docs/first-real-run.md are those that `corral plan` computes for its specs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from calls import corral

import first_run_page
from corral.spec.yaml.stack_files import read_environment

PAGE = " ".join(first_run_page.PAGE.read_text(encoding="utf-8").split())
HOURS_A_MONTH = 730


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that the page's reader has after its first `corral new` and with its specs."""
    directory = tmp_path_factory.mktemp("first")
    new = next(words for words in first_run_page.commands() if words[0] == "new")
    assert corral(*new, cwd=directory).returncode == 0
    first_run_page.write_specs(directory / new[1])
    return directory / new[1]


@pytest.fixture(scope="module")
def costs(project: Path) -> Mapping[str, Mapping[str, Any]]:
    """The cost of each environment of the page, as `corral plan --json` has it."""
    return {
        name: json.loads(corral("plan", name, "--project", str(project), "--json").stdout)["cost"]
        for name in ("first", "first-gpu")
    }


def hours(project: Path, name: str) -> int:
    """The lifetime of the page's cluster."""
    ttl = read_environment(project, name).cluster.lifetime.ttl
    assert ttl is not None
    return int(ttl.total_seconds()) // 3600


def rounded_up(usd: float) -> str:
    return f"{math.ceil(usd * 100 - 1e-9) / 100:.2f}"


def test_the_page_has_three_specs() -> None:
    assert sorted(first_run_page.specs()) == [
        "stacks/base/Pulumi.first.yaml",
        "stacks/cluster/Pulumi.first-gpu.yaml",
        "stacks/cluster/Pulumi.first.yaml",
    ]


def test_the_table_has_the_cost_of_all_nodes_for_the_whole_lifetime(
    project: Path, costs: Mapping[str, Mapping[str, Any]]
) -> None:
    most = {name: cost["maximum_usd_per_hour"]["high"] for name, cost in costs.items()}
    sums = {name: rounded_up(most[name] * hours(project, name)) for name in most}
    rows = (
        f"| CPU machines | {hours(project, 'first')} | {rounded_up(most['first'])} | {sums['first']} |",
        f"| one g5.xlarge and a Lustre | {hours(project, 'first-gpu')} | {rounded_up(most['first-gpu'])} |"
        f" {sums['first-gpu']} |",
        f"| both | | | {float(sums['first']) + float(sums['first-gpu']):.2f} |",
    )
    assert [row for row in rows if row not in PAGE] == []


def test_both_parts_cost_less_than_five_dollars(project: Path, costs: Mapping[str, Mapping[str, Any]]) -> None:
    assert sum(cost["maximum_usd_per_hour"]["high"] * hours(project, name) for name, cost in costs.items()) < 5


def test_the_costs_of_a_failure_are_those_of_the_plan(costs: Mapping[str, Mapping[str, Any]]) -> None:
    base = costs["first"]["idle_base_usd_per_month"]["high"] / HOURS_A_MONTH
    idle = {name: cost["idle_cluster_usd_per_hour"]["high"] for name, cost in costs.items()}
    with_cluster = rounded_up(base + idle["first"])
    sentences = (
        f"costs at most {rounded_up(base)} USD an hour without a cluster, and {with_cluster} with one",
        f"The head costs {rounded_up(idle['first'])} USD an hour",
        f"The base is still up, at {rounded_up(base)} USD an hour",
        f"costs {rounded_up(idle['first-gpu'] - idle['first'])} USD an hour from then on",
        f"a failure half-way costs {rounded_up(base + idle['first-gpu'])} USD an hour",
    )
    assert [sentence for sentence in sentences if sentence not in PAGE] == []
