"""How many EFA interfaces a node of an instance type uses for Lustre. Pure.

Source of the numbers: FSx for Lustre User Guide, "Configuring EFA clients", Step 3, table of defaults. Read 2026-11.
"""

from corral.catalog.aws.instance_types import InstanceType
from corral.catalog.aws.storage import has_lustre_efa

_DEFAULTS = {
    "p5.48xlarge": 8,
    "p5e.48xlarge": 8,
    "p5en.48xlarge": 8,
    "p6-b200.48xlarge": 8,
    "p6e-gb200.36xlarge": 8,
}
_SEVERAL_CARDS = 2


def lustre_efa_interfaces(machine: InstanceType) -> int:
    """AWS's default for this type; 0 if FSx does not support it."""
    if not has_lustre_efa(machine.family, machine.efa_maximum):
        return 0
    return min(machine.efa_maximum, _DEFAULTS.get(machine.name, _SEVERAL_CARDS))
