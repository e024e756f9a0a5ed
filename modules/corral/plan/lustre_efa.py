"""How many EFA interfaces a node of an instance type uses for Lustre. Pure.

Sources: FSx for Lustre User Guide, "Working with EFA-enabled file systems", Prerequisites: Nitro v4 or higher,
excluding trn2; the same, "Configuring EFA clients", Step 3, table of default numbers; EC2 User Guide, "Elastic Fabric
Adapter", Supported instance types by Nitro version. Read 2026-11.
"""

from corral.catalog.aws.instance_types import InstanceType

# With EFA, but of Nitro v3; and trn2, which FSx excludes.
_WITHOUT = frozenset(
    (
        *("c5n", "dl1", "dl2q", "g4dn", "g5", "i3en", "inf1", "m5dn", "m5n", "m5zn"),
        *("p3dn", "p4d", "p4de", "r5dn", "r5n", "trn2", "trn2u", "vt1", "x2iezn"),
    )
)
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
    if machine.name.partition(".")[0] in _WITHOUT:
        return 0
    return min(machine.efa_maximum, _DEFAULTS.get(machine.name, _SEVERAL_CARDS))
