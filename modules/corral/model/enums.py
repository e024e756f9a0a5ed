"""Enumerations that several packages share: markets, interface types, machine roles."""

from enum import StrEnum


class Market(StrEnum):
    """How EC2 sells an instance. A reservation is paid for whether used or not; a block was paid for beforehand."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVATION = "reservation"
    CAPACITY_BLOCK = "capacity-block"

    @property
    def is_reserved(self) -> bool:
        """Whether instances come out of capacity that has an id of its own."""
        return self in (Market.RESERVATION, Market.CAPACITY_BLOCK)

    @property
    def usage_class(self) -> str:
        """The usage class in EC2's DescribeInstanceTypes."""
        return "on-demand" if self is Market.RESERVATION else self.value


class InterfaceType(StrEnum):
    """What an elastic network interface can do; the values are EC2's."""

    ENA = "interface"
    EFA = "efa"
    EFA_ONLY = "efa-only"


class BalancerScheme(StrEnum):
    """Who can address a load balancer; the values are Elastic Load Balancing's."""

    INTERNET_FACING = "internet-facing"
    INTERNAL = "internal"


class Role(StrEnum):
    """What a machine is booted as."""

    HEAD = "head"
    COMPUTE = "compute"
    LOGIN = "login"
