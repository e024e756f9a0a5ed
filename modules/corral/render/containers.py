"""What a cluster with containers needs: the script that compiles them, enroot's settings, a line of plugstack.conf."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from corral.catalog.aws.instance_types import Vendor
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.job_role import URI, VARIABLE
from corral.model.urls import registry_host
from corral.render.gpu_devices import vendor
from corral.render.templates import fill

_HOME = "/opt/corral/enroot"
PLUGIN = f"{_HOME}/lib/spank_pyxis.so"
JOB_ROLE_PLUGIN = f"{_HOME}/lib/spank_job_role.so"
# `required`: a node without Pyxis must not run a task outside of its container. Images are unpacked in runtime_path,
# which for that reason is not /run, a part of the memory. A busy node from before has no plugin for the job role.
_LINES = (
    f"optional {JOB_ROLE_PLUGIN} {VARIABLE} {URI}",
    f"required {PLUGIN} runtime_path=/var/lib/enroot/pyxis container_scope=job",
)


def container_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix; none for a cluster without containers."""
    if not plan.containers.are_used:
        return {}
    directories = {source.name: source.directory for source in plan.containers.sources}
    include = PurePosixPath(plan.image.slurm_sbin).parent / "include"
    return {
        "containers/build.sh": fill(
            "containers/build.sh.j2",
            home=_HOME,
            plugin=PLUGIN,
            job_role_plugin=JOB_ROLE_PLUGIN,
            slurm_include=include,
            **directories,
        ),
        "containers/enroot.conf": fill("containers/enroot.conf.j2", registries=plan.jobs.registries),
        "containers/prolog": fill("containers/prolog.sh.j2"),
        **{f"containers/mounts/{queue.name}.fstab": _mounts(queue, plan) for queue in plan.queues},
    }


def registry_credentials(plan: ClusterPlan, account: str) -> Mapping[str, str]:
    """The text of the file in which enroot finds what logs in to the cluster's registries, by its path; none without.

    It contains no password: enroot runs the program that prints one. `account`: the cluster's.
    """
    if not (plan.containers.are_used and plan.jobs.registries):
        return {}
    owners = sorted({one.account or account for one in plan.jobs.registries})
    hosts = [registry_host(owner, plan.region) for owner in owners]
    return {"containers/credentials": fill("containers/credentials.j2", hosts=hosts)}


def container_plugins(plan: ClusterPlan) -> tuple[str, ...]:
    """The lines of plugstack.conf that load what runs containers."""
    return _LINES if plan.containers.are_used else ()


def _mounts(queue: QueuePlan, plan: ClusterPlan) -> str:
    directories = (
        *(("/home",) if plan.home else ()),
        *(system.mount for system in plan.lustre),
        *((queue.nvme_mount,) if queue.nvme_mount else ()),
    )
    return fill("containers/queue.fstab.j2", directories=directories, nccl=vendor(queue) is Vendor.NVIDIA)
