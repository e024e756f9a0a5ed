"""Plan to text: every file that a cluster's machines receive, finished, so that a preview shows each change of it.

Nothing is decided here that the plan could say, and nothing is read but the package's templates. jinja2 is imported in
this room alone.
"""

from collections.abc import Mapping

from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts, Deployed
from corral.model.jsons import to_json
from corral.model.markets import Role
from corral.render import bundle
from corral.render.accounting import accounting_files
from corral.render.boot import cloud_config
from corral.render.host import BOX, EC2, host_conf
from corral.render.jobs import job_files
from corral.render.library import library_bundle
from corral.render.nccl import nccl_files
from corral.render.slurm import cgroup_conf, check_own_keys, gres_conf, slurm_conf
from corral.render.ssh import ssh_files


def cluster_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of every file of the cluster by its path below the cluster's prefix, sorted by path.

    Raises ReleaseError where the cluster's Slurm does not know what the user would add to slurm.conf.
    """
    check_own_keys(plan)
    texts = {
        "cluster.json": to_json(plan),
        "slurm/cgroup.conf": cgroup_conf(),
        "slurm/gres.conf": gres_conf(plan),
        "slurm/host.conf": host_conf(BOX if plan.image.box else EC2),
        "slurm/slurm.conf": slurm_conf(plan),
        **accounting_files(plan),
        **nccl_files(plan),
        **job_files(plan),
        **ssh_files(plan),
    }
    return dict(sorted(texts.items()))


def user_data(plan: ClusterPlan, role: Role, boot: BootFacts) -> str:
    """The user data of a machine in this role, as plain text; it fits into EC2's 16 KiB."""
    return cloud_config(plan, role, boot)


def deployed_json(deployed: Deployed) -> str:
    """The text of deployed.json."""
    return to_json(deployed)


def agent_bundle() -> bytes:
    """The agent for the machines, a tar.gz; its bytes depend on nothing but its sources."""
    return bundle.agent_bundle()


def agent_library() -> bytes:
    """What the agent needs beside itself, a tar.gz; its bytes depend on the version of boto3 that is installed here."""
    return library_bundle()
