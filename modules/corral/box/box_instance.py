"""An instance of the box: what it holds, and what is left when it ends. What launches and ends it: ec2_instances."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from copy import copy
from datetime import datetime
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instances import Instance, InstanceState, StateReason

from corral.box import ec2_machines
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

    @property
    def is_coming(self) -> bool:
        """Whether it runs as soon as its machine has started; one that dies after its launch never runs."""
        return self.state == "pending" and self.fate is None

    @property
    def is_on(self) -> bool:
        """Whether it runs or is coming: where there are machines, it should be one."""
        return self.state == "running" or self.is_coming

    @property
    def leaves(self) -> bool:
        """Whether it ends or stops as soon as its processes have gone; what a fault kills has its time as well."""
        return self.state == "stopping" or (self.state == "shutting-down" and self.fate is None)

    def begin(self) -> None:
        """The instance runs; one that is a machine will as soon as that has started."""
        if self.state == "running" and ec2_machines.takes_time(self):
            self._state = InstanceState("pending", 0)

    def has_come(self) -> None:
        """Its machine has started: what is coming runs, everything else stays as it is."""
        if self.is_coming:
            self._state = InstanceState("running", 16)

    def has_gone(self) -> None:
        """None of its processes is there: what leaves has stopped or ended, everything else stays as it is."""
        if self.state == "stopping":
            self._state = InstanceState("stopped", 80)
        elif self.leaves:
            self._end()

    def start(self) -> Any:
        """Starts the instance again."""
        previous = super().start()
        if previous.name != "running":
            self.begin()
        return previous

    def stop(self) -> Any:
        """Stops the instance; one that is a machine, as soon as its processes have gone."""
        previous = super().stop()
        if previous.name != "stopped" and ec2_machines.takes_time(self):
            self._state = InstanceState("stopping", 64)
        return previous

    def terminate(self) -> Any:
        """Ends the instance; one that is a machine, as soon as its processes have gone.

        What ends or has ended keeps the reason of its end.
        """
        previous = copy(self._state)
        if self.ended or (previous.name == "shutting-down" and self.leaves):
            return previous
        if not ec2_machines.takes_time(self):
            self._end()
            return previous
        self.fate = None  # this is it
        if previous.name != "shutting-down":
            self._show_user_initiated()
        self._state = InstanceState("shutting-down", 32)
        return previous

    def _show_user_initiated(self) -> None:
        code = "Client.UserInitiatedShutdown"
        self._reason = f"User initiated ({utcnow():%Y-%m-%d %H:%M:%S UTC})"
        self.state_reason = StateReason(f"{code}: User initiated shutdown", code)

    def _end(self) -> None:
        """Interfaces and volumes go or stay as their DeleteOnTermination says."""
        shown = (self._reason, self.state_reason) if self.state == "shutting-down" else None
        super().terminate()
        if shown:
            self._reason, self.state_reason = shown
        for key, nic in list(self.nics.items()):
            if nic.id in self.ec2_backend.enis:
                self.nics[key] = nic
                nic.device_index = key
                self.detach_eni(nic)
        self.nics = {}
        self._subnet_id = None
        self.ended = utcnow()
