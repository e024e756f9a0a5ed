"""Plan to text: every file that a cluster's machines receive. The text is final, so a preview shows each change.

`render` decides nothing. It reads templates, and for the agent's bundle the source of the agent and of boto3. jinja2
is imported here and in `report` only.
"""

from collections.abc import Mapping
from dataclasses import replace

from corral.catalog.aws.images import find_image_profile
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.forecast.cost.price_source import PriceList
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts, Deployed
from corral.model.enums import Role
from corral.model.serialization import to_json
from corral.model.timeouts import RESUME_TIMEOUT_S
from corral.render import agent_bundle as bundle
from corral.render.access import access_files
from corral.render.boto3_bundle import library_bundle
from corral.render.containers import container_files, container_plugins, registry_credentials
from corral.render.hooks import hook_files
from corral.render.host_conf import BOX, EC2, HostFacts, host_conf
from corral.render.job_scripts import job_files
from corral.render.monitoring import monitoring_files
from corral.render.nccl import nccl_files
from corral.render.slurm_conf import cgroup_conf, check_own_keys, gres_conf, slurm_conf
from corral.render.slurmdbd_conf import accounting_files
from corral.render.templates import fill


def cluster_files(plan: ClusterPlan, prices: PriceList | None = None) -> Mapping[str, str]:
    """The text of every file of the cluster by its path below the cluster's prefix, sorted by path.

    `prices`: those of its region; None for the shipped catalog's.
    Raises ReleaseError if the cluster's Slurm does not know a key that the spec adds to slurm.conf.
    """
    check_own_keys(plan)
    texts = {
        "cluster.json": to_json(plan),
        "slurm/cgroup.conf": cgroup_conf(plan),
        "slurm/gres.conf": gres_conf(plan),
        "slurm/host.conf": host_conf(_hosts(plan)),
        "slurm/slurm.conf": slurm_conf(plan),
        **access_files(plan),
        **accounting_files(plan),
        **container_files(plan),
        **monitoring_files(plan, prices or catalog_prices(plan.region)),
        **hook_files(plan.hooks, container_plugins(plan)),
        **nccl_files(plan),
        **job_files(plan),
    }
    return dict(sorted(texts.items()))


def account_files(plan: ClusterPlan, account: str) -> Mapping[str, str]:
    """The text of the files that contain the number of the cluster's account, by path as in `cluster_files`."""
    return registry_credentials(plan, account)


def _hosts(plan: ClusterPlan) -> HostFacts:
    """The facts about the cluster's hosts. Only in the box can nodes have accelerators and an image without drivers."""
    posed = (
        queue.node.gres and image.image_id is None and not find_image_profile(image.profile).drivers
        for queue in plan.queues
        for image in (plan.image_of(queue),)
    )
    return BOX if plan.image.box else replace(EC2, poses=any(posed))


def user_data(plan: ClusterPlan, role: Role, boot: BootFacts) -> str:
    """The cloud-config of a machine in this role, as plain text; it fits into EC2's 16 KiB.

    It runs before the instance has the agent. It contains no secret: whoever may describe the instance can read it. A
    compute machine that fails to boot terminates itself; heads and login nodes stay for inspection.
    """
    script = {"role": role.value, "cluster": plan.name}
    return fill(
        "boot/user-data.yaml.j2",
        **script,
        facts=to_json(boot),
        compiles=[source.directory for source in plan.containers.sources],
        fetch=fill("boot/fetch.py.j2"),
        boot=fill("boot/boot.sh.j2", **script, powers_off=role is Role.COMPUTE, boots_within_s=RESUME_TIMEOUT_S),
    )


def deployed_json(deployed: Deployed) -> str:
    """The text of deployed.json."""
    return to_json(deployed)


def agent_bundle() -> bytes:
    """The agent as a tar.gz; its bytes depend only on its sources."""
    return bundle.agent_bundle()


def agent_library() -> bytes:
    """The agent's dependencies as a tar.gz; its bytes depend on the installed version of boto3."""
    return library_bundle()
