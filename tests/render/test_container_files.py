"""Files of a cluster with containers: what its machines compile, how enroot is set up, how jobs use it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from container_archives import CONTAINERS
from corral.model.enums import Role
from corral.render import cluster_files, user_data
from render.plans import boot_facts, cpu, dev, train

PLAN = replace(dev(replace(train(), nvme_mount="/local"), cpu()), containers=CONTAINERS)
SCRIPTS = ("accelerate", "deepspeed", "jax", "lightning", "megatron", "nccl-tests", "sweep", "torchrun")


def test_a_cluster_without_containers_has_none_of_their_files() -> None:
    assert [name for name in cluster_files(dev(train())) if name.startswith("containers/")] == []


def test_each_queue_has_its_own_mounts() -> None:
    assert [name for name in cluster_files(PLAN) if name.startswith("containers/")] == [
        "containers/build.sh",
        "containers/enroot.conf",
        "containers/mounts/cpu.fstab",
        "containers/mounts/train.fstab",
        "containers/prolog",
    ]


def test_containers_have_the_shared_file_systems_the_instance_store_and_nccls_settings() -> None:
    lines = cluster_files(PLAN)["containers/mounts/train.fstab"].splitlines()
    assert [line.split()[0] for line in lines if not line.startswith("#")] == [
        "/home",
        "/scratch",
        "/local",
        "/etc/nccl.conf",
    ]


def test_slurm_loads_pyxis_before_the_environments_own_plugins() -> None:
    plan = replace(PLAN, hooks=replace(PLAN.hooks, plugstack=("optional own.so",)))
    lines = cluster_files(plan)["slurm/plugstack.conf"].splitlines()
    assert [line.split()[:2] for line in lines if not line.startswith("#")] == [
        ["required", "/opt/corral/enroot/lib/spank_pyxis.so"],
        ["optional", "own.so"],
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_job_runs_in_the_container_that_it_names(name: str) -> None:
    text = cluster_files(PLAN)[f"jobs/train/{name}.sbatch"]
    assert '--kill-on-bad-exit=1 "${container[@]}"' in text
    assert "${container" not in cluster_files(dev(train(), cpu()))[f"jobs/train/{name}.sbatch"]


@pytest.mark.parametrize(
    "name", ["containers/build.sh", "containers/prolog", *(f"jobs/train/{s}.sbatch" for s in SCRIPTS)]
)
def test_scripts_pass_shellcheck(name: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(cluster_files(PLAN)[name])
    shellcheck = shutil.which("shellcheck")
    assert shellcheck, "make test installs shellcheck"
    done = subprocess.run([shellcheck, str(script)], capture_output=True, text=True)
    assert done.stdout == ""


def test_nodes_that_compiled_something_else_are_outdated() -> None:
    assert "enroot-1.0, pyxis-2.0" in user_data(PLAN, Role.COMPUTE, boot_facts())
    assert "enroot" not in user_data(PLAN, Role.HEAD, boot_facts())
