"""What Slurm is told about a node: its cores, memory and accelerators."""

from corral.catalog.instances import Accelerator, InstanceType, Vendor
from corral.model.cluster import GresPlan, NodePlan

_SYSTEM_SHARE = 0.05  # of EC2's memory figure; the kernel and firmware take about 3 % of it before slurmd can see it


def plan_node(instance_type: InstanceType) -> NodePlan:
    """The node that an instance of this type registers as. Slurm sets one DOWN that has less memory than declared."""
    accelerator = instance_type.accelerator
    return NodePlan(
        sockets=instance_type.sockets,
        cores_per_socket=instance_type.cores // instance_type.sockets,
        threads_per_core=instance_type.threads_per_core,
        real_memory_mib=int(instance_type.memory_mib * (1 - _SYSTEM_SHARE)),
        gres=_gres(accelerator) if accelerator else None,
    )


def _gres(accelerator: Accelerator) -> GresPlan:
    """Slurm's plugin for `gpu` looks for GPUs and sets their variables; Neuron devices are another resource."""
    name = "neuron" if accelerator.vendor is Vendor.NEURON else "gpu"
    return GresPlan(type=accelerator.name, count=accelerator.count, name=name)
