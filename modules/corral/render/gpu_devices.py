"""Accelerator vendor and number of EFA devices of a queue's nodes."""

from corral.catalog.aws.instance_types import Vendor
from corral.catalog.aws.nccl_variables import vendor_of
from corral.model.cluster import QueuePlan
from corral.model.enums import InterfaceType


def vendor(queue: QueuePlan) -> Vendor | None:
    """The accelerators' vendor; None without accelerators."""
    return vendor_of(queue.node.gres.type) if queue.node.gres else None


def efa_devices(queue: QueuePlan) -> int:
    """The number of EFA interfaces of a node."""
    return sum(nic.interface_type is not InterfaceType.ENA for nic in queue.nics) if queue.efa else 0
