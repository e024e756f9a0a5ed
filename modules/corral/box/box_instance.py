"""An instance of the box: what it holds, and what is left when it ends. What launches and ends it: ec2_instances."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from copy import copy
from datetime import datetime
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instances import Instance

from corral.box.faults.launching import Fate


class BoxInstance(Instance):
    """An instance with several network cards, which lets go of all it held when it ends."""

    ended: datetime | None = None
    capacity_reservation_id: str | None = None
    capacity_block_id: str | None = None
    interruption: datetime | None = None  # when the spot market takes it back
    rebalance: datetime | None = None  # when the spot market said that it might
    fate: Fate | None = None  # what ends it, and when
    visible_from: datetime | None = None  # where it is shown later than it was made
    boot_wait: str = "0"  # how long its user data wait, in seconds as sleep has them
    reboots: int = 0

    def __del__(self) -> None:
        """Nothing: moto would free addresses here that others may hold by now."""

    def prep_nics(self, *_args: Any, **_kwargs: Any) -> None:
        """Starts without interfaces; the launch attaches them."""
        self.nics: dict[int, Any] = {}

    @property
    def is_visible(self) -> bool:
        """False as long as EC2 does not show the new instance yet."""
        return self.visible_from is None or self.visible_from <= utcnow()

    @property
    def primary(self) -> Any:
        """The interface at network card 0, device 0; None once the instance has ended."""
        return self.nics.get(0)

    @property
    def private_ip(self) -> Any:
        """The primary private address."""
        return self.primary and self.primary.private_ip_address

    private_ip_address = private_ip

    @property
    def private_dns_name(self) -> str:
        """The name that AWS derives from the address; empty once there is none."""
        return str(Instance.private_dns_name.fget(self)) if self.private_ip else ""

    @property
    def public_ip(self) -> Any:
        """The public address, if there is one."""
        return self.primary and self.primary.public_ip

    public_ip_address = public_ip

    def terminate(self) -> Any:
        """Ends the instance: interfaces and volumes go or stay as their DeleteOnTermination says.

        What has ended keeps the reason of its end.
        """
        if self.ended:
            return copy(self._state)
        previous = super().terminate()
        for key, nic in list(self.nics.items()):
            if nic.id in self.ec2_backend.enis:
                self.nics[key] = nic
                nic.device_index = key
                self.detach_eni(nic)
        self.nics = {}
        self._subnet_id = None
        self.ended = self.ended or utcnow()
        return previous
