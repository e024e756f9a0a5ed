"""The forecasts of declared runs are in the plan of the cluster, and so in cluster.json."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from corral.forecast.declared_runs import with_forecasts
from corral.forecast.training.run_forecast import forecast_run
from corral.render import cluster_files
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.run_files import read_run
from corral.spec.yaml.stack_files import read_environment
from corral.stacks.admission import plan_admitted
from environments import PROJECT, dev_cluster

RUN = "{model: llama3-8b, tokens: 1T, sequence_length: 8192, batch_sequences: 512, nodes: 4}\n"


def environment(directory: Path, runs: Mapping[str, str], declared: str = "") -> Environment:
    """`dev`, with these run files below `runs/`, each declared by its stem."""
    shutil.copytree(PROJECT / "stacks", directory / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    (directory / "runs").mkdir()
    for name, text in runs.items():
        (directory / f"runs/{name}.yaml").write_text(text)
    listed = declared or ", ".join(f"{name}: runs/{name}.yaml" for name in runs)
    with (directory / "stacks/cluster/Pulumi.dev.yaml").open("a") as spec:
        spec.write(f"    jobs: {{runs: {{{listed}}}}}\n")
    return read_environment(directory, "dev")


def error_of(directory: Path, runs: Mapping[str, str], declared: str = "") -> str:
    with pytest.raises(SpecErrors) as caught:
        environment(directory, runs, declared)
    return str(caught.value).replace(f"{directory}/", "")


def test_numbers_are_those_of_the_forecast_of_the_run_file(tmp_path: Path) -> None:
    declared = environment(tmp_path, {"llama": RUN})
    (found,) = with_forecasts(dev_cluster(), declared).runs
    alone = forecast_run(read_run(tmp_path / "runs/llama.yaml", declared))
    assert (found.name, found.queue, found.nodes, found.gpus, found.fits) == ("llama", "train", 4, 32, True)
    assert found.step_s == pytest.approx(alone.speed.parts.total, rel=1e-3)
    assert found.tokens_per_s_per_gpu == pytest.approx(alone.speed.tokens_per_s_per_accelerator, rel=1e-3)
    assert (found.mfu, found.communication_share) == pytest.approx(
        (alone.mfu, alone.speed.communication_share), rel=1e-3
    )
    assert found.memory_gib == pytest.approx(alone.memory.total_gib, rel=1e-3)


def test_the_step_is_that_of_the_whole_batch(tmp_path: Path) -> None:
    (found,) = with_forecasts(dev_cluster(), environment(tmp_path, {"llama": RUN})).runs
    assert found.step_s * found.tokens_per_s_per_gpu * found.gpus == pytest.approx(512 * 8192, rel=1e-3)


def test_a_run_that_does_not_fit_has_what_to_change(tmp_path: Path) -> None:
    large = "{model: llama3-405b, tokens: 1T, sequence_length: 8192, batch_sequences: 512, nodes: 4}\n"
    (found,) = with_forecasts(dev_cluster(), environment(tmp_path, {"large": large})).runs
    assert (found.fits, found.memory_gib > found.memory_limit_gib, bool(found.change)) == (False, True, True)


def test_runs_are_in_the_clusters_records_in_the_order_of_their_names(tmp_path: Path) -> None:
    files = plan_admitted(environment(tmp_path, {"small": RUN, "large": RUN}), None).files
    assert [run["name"] for run in json.loads(files["cluster.json"])["runs"]] == ["large", "small"]


def test_an_environment_without_runs_has_no_numbers() -> None:
    assert json.loads(cluster_files(dev_cluster())["cluster.json"])["runs"] == []


def test_mistakes_of_all_run_files_are_reported_with_their_files(tmp_path: Path) -> None:
    runs = {"a": RUN.replace("llama3-8b", "lama3-8b"), "b": RUN.replace("nodes: 4", "nodes: 5")}
    assert error_of(tmp_path, runs).splitlines() == [
        "runs/a.yaml: model: 'lama3-8b' is not in the catalog - did you mean 'llama3-8b'?",
        "runs/b.yaml: nodes: 5 is more than nodes.max of queue 'train' - use 4 or less, or raise nodes.max",
    ]


def test_a_run_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    found = error_of(tmp_path, {}, "llama: runs/llama.yaml")
    assert found == "runs/llama.yaml: cannot be read: No such file or directory - use a run file"
