"""The largest supported environment: 27,500 p5.48xlarge in ten queues, which benchmarks/scale.py measures."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corral import render
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.warnings import plan_warnings
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.validation_context import ValidationContext
from corral.spec.yaml.stack_files import read_environment


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    """The benchmark module, which is not in a package."""
    path = Path(__file__).parents[2] / "benchmarks" / "scale.py"
    spec = importlib.util.spec_from_file_location("scale", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def plans(scale: Any) -> tuple[BasePlan, ClusterPlan]:
    base = parse_base(scale.BASE, name="big", where="base", context=ValidationContext(region="us-east-1"))
    context = ValidationContext(region="us-east-1", base=base)
    spec = scale.spec("big", scale.NODES, scale.QUEUES)
    planned = plan_base(base)
    return planned, plan_cluster(parse_cluster(spec, name="big", where="cluster", context=context), planned)


def test_27500_nodes_are_planned_in_ten_queues(plans: tuple[BasePlan, ClusterPlan]) -> None:
    _, cluster = plans
    assert (len(cluster.queues), sum(queue.max_nodes for queue in cluster.queues)) == (10, 27_500)


def test_27500_nodes_are_in_slurm_conf(plans: tuple[BasePlan, ClusterPlan]) -> None:
    _, cluster = plans
    lines = render.cluster_files(cluster)["slurm/slurm.conf"].splitlines()
    named = [line.split(" ")[0] for line in lines if line.startswith("NodeName=")]
    assert named == [f"NodeName=q{number}-[1-2750]" for number in range(10)]


def test_27500_nodes_in_one_vpc_are_a_warning(plans: tuple[BasePlan, ClusterPlan]) -> None:
    warnings = plan_warnings(*plans, catalog_prices("us-east-1"))
    assert [warning.text for warning in warnings if warning.about == "VPC"] == [
        "all nodes together need 907,500 network address units, but a VPC holds at most 256,000 - divide the cluster"
        " over several bases"
    ]


@pytest.mark.parametrize(
    ("seconds", "mib", "lines"),
    [
        (2.0, 200.0, []),
        (2.1, 60.0, ["27,500 nodes take 2.1 s as commands, the limit is 2 s"]),
        (0.5, 201.0, ["27,500 nodes take 201 MiB as commands, the limit is 200 MiB"]),
    ],
)
def test_the_benchmark_names_each_exceeded_limit_and_the_method(
    scale: Any, seconds: float, mib: float, lines: list[str]
) -> None:
    assert scale.exceeded_limits({"s": seconds, "MiB": mib}, "commands") == lines


@pytest.mark.long
def test_the_benchmark_ends_with_1_if_a_limit_is_exceeded(scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "ROUNDS", 1)
    monkeypatch.setattr(scale, "LIMITS", {"s": 0.0, "MiB": 200.0})
    assert scale.main() == 1


def test_the_benchmark_measures_the_commands_of_a_project_of_files(scale: Any, tmp_path: Path) -> None:
    scale.write_project(tmp_path, "big", 40, 2)
    environment = read_environment(tmp_path, "big")
    assert [(queue.name, queue.nodes.max) for queue in environment.cluster.queues] == [("q0", 20), ("q1", 20)]
    measured = scale.commands(40, 2)
    assert list(measured) == ["plan", "render"]
    assert all(one.cpu_s > 0 and one.s > 0 and one.mib > 10 for one in measured.values())


def test_a_command_that_fails_is_no_measurement(scale: Any, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        scale.command(["plan", "nothing", "--project", str(tmp_path)])
