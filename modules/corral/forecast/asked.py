"""What a forecast asks of a price list, so that all of it can be looked up at once before it is asked again."""

from __future__ import annotations

from corral.forecast.prices import InstancePrice, PriceList, ServicePrice


class Recording:
    """A price list that remembers which services it was asked for; the answers are those of another one."""

    def __init__(self, behind: PriceList) -> None:
        self._behind = behind
        self.services: set[str] = set()

    def instance(self, instance_type: str) -> InstancePrice | None:
        """The other list's price of this type."""
        return self._behind.instance(instance_type)

    def service(self, service: str) -> ServicePrice | None:
        """The other list's price of this service."""
        self.services.add(str(service))
        return self._behind.service(service)
