"""What the libraries below a training program are told of a queue's machines: NCCL's, or Neuron's on Trainium.

A file per queue, and a shell fragment that exports it. Short on purpose: aws-ofi-nccl knows each type.
"""

from collections.abc import Mapping

from corral.catalog.instances import Vendor
from corral.catalog.nccl_variables import plugin_settings, variable_catalogue
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.render.devices import efa_devices, vendor
from corral.render.texts import fill


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
    return fill("nccl/neuron.sh.j2", variables=sorted(variable_catalogue().neuron_environment.items()))
