"""The closed sets that several rooms name: markets, interface kinds, data link directions."""

from enum import StrEnum


class Market(StrEnum):
    """How EC2 sells an instance."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


class InterfaceType(StrEnum):
    """What an elastic network interface can do; the values are EC2's."""

    ENA = "interface"
    EFA = "efa"
    EFA_ONLY = "efa-only"


class Role(StrEnum):
    """What a machine is booted as."""

    HEAD = "head"
    COMPUTE = "compute"
