"""Files of a cluster with containers: what its machines compile, how enroot is set up, how jobs use it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from container_archives import CONTAINERS
from corral.agent.config.file_placements import placements_for
from corral.model.cluster import ClusterPlan, JobsPlan, RepositoryPlan
from corral.model.enums import Role
from corral.render import account_files, cluster_files, user_data
from render.plans import boot_facts, cpu, dev, train

PLAN = replace(dev(replace(train(), nvme_mount="/local"), cpu()), containers=CONTAINERS)
NOBODY = 65534
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
        ["optional", "/opt/corral/enroot/lib/spank_job_role.so"],
        ["required", "/opt/corral/enroot/lib/spank_pyxis.so"],
        ["optional", "own.so"],
    ]


def test_slurm_runs_no_task_prolog_which_would_start_inside_of_the_container() -> None:
    assert "TaskProlog" not in cluster_files(PLAN)["slurm/slurm.conf"]
    assert "TaskProlog=/opt/corral/bin/task-prolog\n" in cluster_files(dev(train()))["slurm/slurm.conf"]


@pytest.mark.parametrize(("version", "runs"), [("24.05", True), ("24.11", False)])
def test_with_an_images_own_pyxis_it_runs_where_slurm_starts_it_by_itself(version: str, runs: bool) -> None:
    plan = dev(train(), slurm_version=version)
    own = replace(plan, hooks=replace(plan.hooks, plugstack=("required /usr/local/lib/slurm/spank_pyxis.so",)))
    assert ("TaskProlog" in cluster_files(own)["slurm/slurm.conf"]) is runs
    assert "TaskProlog" in cluster_files(plan)["slurm/slurm.conf"]


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


def test_nobody_else_enters_the_directories_for_a_jobs_containers(tmp_path: Path) -> None:
    text = cluster_files(PLAN)["containers/prolog"].replace("/var/lib/enroot", f"{tmp_path}/data")
    (script := tmp_path / "prolog").write_text(text.replace("/run/enroot", f"{tmp_path}/run"))
    environment = {"PATH": os.defpath, "SLURM_JOB_UID": str(NOBODY), "SLURM_JOB_USER": "nobody"}
    subprocess.run(["sh", str(script)], env=environment, check=True)
    made = [(tmp_path / name).stat() for name in ("data", "run", f"data/{NOBODY}", f"run/{NOBODY}")]
    assert [(one.st_uid, one.st_mode & 0o777) for one in made] == [(0, 0o755)] * 2 + [(NOBODY, 0o700)] * 2


def test_nodes_that_compiled_something_else_are_outdated() -> None:
    assert "enroot-1.0, pyxis-2.0" in user_data(PLAN, Role.COMPUTE, boot_facts())
    assert "enroot" not in user_data(PLAN, Role.HEAD, boot_facts())


ECR = replace(
    PLAN,
    jobs=JobsPlan(
        registries=(
            RepositoryPlan(account="210987654321", name="base/pytorch"),
            RepositoryPlan(account=None, name="team/train"),
            RepositoryPlan(account="210987654321", name="base/jax"),
        )
    ),
)


def test_enroot_logs_in_to_the_registries_of_the_jobs() -> None:
    password = "login AWS password $(/opt/corral/bin/ecr-password)"
    assert account_files(ECR, "123456789012")["containers/credentials"].splitlines()[1:] == [
        f"machine 123456789012.dkr.ecr.us-east-1.amazonaws.com {password}",
        f"machine 210987654321.dkr.ecr.us-east-1.amazonaws.com {password}",
    ]


def test_hosts_of_china_have_a_domain_of_their_own() -> None:
    text = account_files(replace(ECR, region="cn-north-1"), "123456789012")["containers/credentials"]
    assert "machine 123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn login AWS " in text


@pytest.mark.parametrize("plan", [PLAN, replace(ECR, containers=dev().containers)], ids=["no registry", "no container"])
def test_without_registries_or_containers_enroot_logs_in_nowhere(plan: ClusterPlan) -> None:
    assert account_files(plan, "123456789012") == {}
    assert "ENROOT_CONFIG_PATH" not in cluster_files(plan).get("containers/enroot.conf", "")


def test_nodes_have_the_file_where_enroots_settings_name_it() -> None:
    files = {**cluster_files(ECR), **account_files(ECR, "123456789012")}
    contents = {name: text.encode() for name, text in files.items()}
    paths = [one.path for one in placements_for(contents, Role.COMPUTE, "train")]
    assert (
        "/etc/corral/enroot/.credentials" in paths,
        "own=/etc/corral/enroot;" in files["containers/enroot.conf"],
    ) == (
        True,
        True,
    )


@pytest.mark.parametrize(
    ("own", "path"),
    [("", "/etc/corral/enroot"), (".config/enroot", "{home}/.config/enroot"), ("else/enroot", "{home}/else/enroot")],
    ids=["none", "the usual one", "elsewhere"],
)
def test_settings_of_the_users_own_come_first(own: str, path: str, tmp_path: Path) -> None:
    """As enroot evaluates a line: config::load."""
    (tmp_path / own).mkdir(parents=True, exist_ok=True)
    (line,) = (
        line for line in cluster_files(ECR)["containers/enroot.conf"].splitlines() if "ENROOT_CONFIG_PATH" in line
    )
    (tmp_path / "conf").write_text(f"{line}\n")
    script = r"""set -euo pipefail; "$BASH" -n "$1"; IFS=$' \t=' read -r key value <"$1"; eval echo "$value" """
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    if own.startswith("else"):
        environment["XDG_CONFIG_HOME"] = str(tmp_path / "else")
    command = ["bash", "-c", script, "bash", str(tmp_path / "conf")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (path.format(home=tmp_path) + "\n", "")
