"""Settings of the communication libraries for a queue's nodes: NCCL, or Neuron on Trainium.

One file per queue, and a shell fragment that exports it. Short on purpose: aws-ofi-nccl tunes each instance type.
"""

from collections.abc import Mapping

from corral.catalog.aws.instance_types import Vendor
from corral.catalog.aws.nccl_variables import plugin_settings, variable_catalog
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.render.gpu_devices import efa_devices, vendor
from corral.render.templates import fill


def nccl_files(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each file by its path below the cluster's prefix; none for queues without accelerators."""
    nvidia = [queue for queue in plan.queues if vendor(queue) is Vendor.NVIDIA]
    neuron = [queue for queue in plan.queues if vendor(queue) is Vendor.NEURON and queue.efa]
    return {
        **{f"nccl/{queue.name}.conf": _conf(queue) for queue in nvidia},
        **({"nccl/profile.sh": fill("nccl/profile.sh.j2")} if nvidia else {}),
        **{f"neuron/{queue.name}.sh": _neuron_profile() for queue in neuron},
    }


def _conf(queue: QueuePlan) -> str:
    return fill(
        "nccl/nccl.conf.j2",
        queue=queue.name,
        instance_type=queue.instance_type,
        efa_devices=efa_devices(queue),
        plugin_sets=tuple(plugin_settings(queue.instance_type)) if queue.efa else (),
    )


def _neuron_profile() -> str:
    return fill("nccl/neuron.sh.j2", variables=sorted(variable_catalog().neuron_environment.items()))
