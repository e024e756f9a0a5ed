"""Plan to text: every file that a cluster's machines receive, finished, so that a preview shows each change of it.

Nothing is decided here that the plan could say, and nothing is read but the package's templates. jinja2 is imported in
this room alone.
"""

from collections.abc import Mapping

from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.jsons import to_json
from corral.render.host import host_conf
from corral.render.slurm import cgroup_conf, gres_conf, slurm_conf


def cluster_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of every file of the cluster by its path below the cluster's prefix, sorted by path."""
    files = {
        "cluster.json": to_json(plan),
        "slurm/cgroup.conf": cgroup_conf(),
        "slurm/gres.conf": gres_conf(plan),
        "slurm/host.conf": host_conf(),
        "slurm/slurm.conf": slurm_conf(plan),
    }
    return dict(sorted(files.items()))


def deployed_json(deployed: Deployed) -> str:
    """The text of deployed.json."""
    return to_json(deployed)
