"""Every rendered file of `dev`, byte by byte; `make regold` rewrites them for review."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from corral.model.cluster import QueuePlan
from corral.model.enums import Role
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render import cluster_files, deployed_json, user_data
from corral.render.job_scripts import job_files
from corral.render.slurm_conf import slurm_conf
from corral.render.slurmdbd_conf import buffer_pool_mib
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT
from render.plans import boot_facts, cpu, deployed, dev, train

Golden = Callable[[str, str], None]
FILES = (
    "access/authorized_keys",
    "access/sshd.conf",
    "access/sudoers",
    "accounting/accounts",
    "accounting/mariadb.cnf",
    "accounting/slurmdbd.conf",
    "cluster.json",
    "jobs/train/accelerate.sbatch",
    "jobs/train/deepspeed.sbatch",
    "jobs/train/jax.sbatch",
    "jobs/train/jupyter.sbatch",
    "jobs/train/lightning.sbatch",
    "jobs/train/megatron.sbatch",
    "jobs/train/nccl-tests.sbatch",
    "jobs/train/sweep.sbatch",
    "jobs/train/torchrun.sbatch",
    "nccl/profile.sh",
    "nccl/train.conf",
    "slurm/cgroup.conf",
    "slurm/gres.conf",
    "slurm/host.conf",
    "slurm/plugstack.conf",
    "slurm/slurm.conf",
    "slurm/users.conf",
)


def test_the_files_of_a_cluster_are_these_in_this_order() -> None:
    assert tuple(cluster_files(dev())) == FILES


@pytest.mark.parametrize("path", FILES)
def test_file_of_dev(golden: Golden, path: str) -> None:
    golden(f"render/dev/{path}", cluster_files(dev())[path])


@pytest.mark.parametrize("role", Role)
def test_user_data_of_dev(golden: Golden, role: Role) -> None:
    golden(f"render/dev/user-data.{role}.yaml", user_data(dev(), role, boot_facts()))


def test_deployed_json_of_dev(golden: Golden) -> None:
    golden("render/dev/deployed.json", deployed_json(deployed()))


def test_slurm_conf_of_two_queues_for_debians_slurm(golden: Golden) -> None:
    golden("render/two-queues/slurm.conf", slurm_conf(dev(train(), cpu(), slurm_version="22.05")))


def test_rendering_twice_gives_the_same_text() -> None:
    assert cluster_files(dev()) == cluster_files(dev())


@pytest.mark.parametrize("path", [path for path in FILES if path != "cluster.json"])
def test_the_first_line_of_a_file_names_corral(path: str) -> None:
    beginning = next(line for line in cluster_files(dev())[path].splitlines() if not line.startswith("#!"))
    assert re.match("# Managed by corral: do not edit", beginning)


@pytest.mark.parametrize("path", ["eval/nccl-tests", "trainium/sweep", "trainium/torchrun"])
def test_job_script_of_another_queue(golden: Golden, path: str) -> None:
    environment = read_environment(PROJECT, "mixed")
    plan = plan_cluster(environment.cluster, plan_base(environment.base))
    golden(f"render/mixed/jobs/{path}.sbatch", job_files(plan)[f"jobs/{path}.sbatch"])


def test_job_script_of_machines_without_accelerators(golden: Golden) -> None:
    golden("render/two-queues/jobs/cpu/accelerate.sbatch", job_files(dev(train(), cpu()))["jobs/cpu/accelerate.sbatch"])


@pytest.mark.parametrize(("memory_mib", "pool_mib"), [(1024, 512), (8192, 2048), (65536, 4096)])
def test_the_database_has_a_quarter_of_the_heads_memory_within_bounds(memory_mib: int, pool_mib: int) -> None:
    assert buffer_pool_mib(memory_mib) == pool_mib


@pytest.mark.parametrize(
    ("profile", "image_id", "queue", "poses"),
    [
        ("debian-13", None, train(), True),
        ("debian-13", "ami-0123456789abcdef0", train(), False),
        ("debian-13", None, cpu(), False),
        ("ubuntu-24.04-dlami", None, train(), False),
    ],
    ids=["in-the-box", "own-image", "no-accelerator", "image-with-drivers"],
)
def test_nodes_pose_whose_image_has_no_driver_for_their_accelerators(
    profile: str, image_id: str | None, queue: QueuePlan, poses: bool
) -> None:
    plan = dev(queue)
    plan = replace(plan, image=replace(plan.image, profile=profile, image_id=image_id))
    assert ("SlurmdParameters=config_overrides" in cluster_files(plan)["slurm/host.conf"]) == poses
