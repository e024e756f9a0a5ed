"""What the machines of a queue have for those who train on them: whose accelerators, and how many EFA devices."""

from corral.catalog.instances import Vendor
from corral.catalog.nccl_variables import vendor_of
from corral.model.cluster import QueuePlan
from corral.model.markets import InterfaceType


def vendor(queue: QueuePlan) -> Vendor | None:
    """Whose accelerators they are; None where there are none."""
    return vendor_of(queue.node.gres.type) if queue.node.gres else None


def efa_devices(queue: QueuePlan) -> int:
    """How many of a machine's interfaces speak EFA."""
    return sum(nic.interface_type is not InterfaceType.ENA for nic in queue.nics) if queue.efa else 0
