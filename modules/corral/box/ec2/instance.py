"""An instance of the box: its state transitions, and the release of its resources. `instances` has the actions."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from copy import copy
from datetime import datetime
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instances import Instance, InstanceState, StateReason

from corral.box.delays import PENDING, duration
from corral.box.ec2 import instance_state
from corral.box.ec2.launch_faults import ScheduledTermination, cleanup_delay


class BoxInstance(Instance):
    """An instance with several network cards, which releases its resources at its end."""

    ended: datetime | None = None
    capacity_reservation_id: str | None = None
    capacity_block_id: str | None = None
    interruption: datetime | None = None  # when spot reclaims it
    rebalance: datetime | None = None  # when spot recommended a rebalance
    scheduled_termination: ScheduledTermination | None = None  # by a fault
    visible_from: datetime | None = None  # if EC2 shows it later than it was created
    boot_wait: str = "0"  # delay of the user data, an argument of sleep
    has_mirror_errors: bool = False
    reboots: int = 0
    cleaned_at: datetime | None = None  # until then it is stopping or shutting-down
    runs_from: datetime | None = None  # until then it is pending, also if its machine has started
    has_machine: bool = False  # whether its machine has started

    def __del__(self) -> None:
        """Do nothing: moto would release addresses here that others may use by now."""

    def prep_nics(self, *_args: Any, **_kwargs: Any) -> None:
        """Start without interfaces; the launch attaches them."""
        self.nics: dict[int, Any] = {}

    @property
    def is_visible(self) -> bool:
        """False until EC2 shows the new instance."""
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
        """The name that AWS derives from the address; empty without one."""
        return str(Instance.private_dns_name.fget(self)) if self.private_ip else ""

    @property
    def public_ip(self) -> Any:
        """The public address, or None."""
        return self.primary and self.primary.public_ip

    public_ip_address = public_ip

    @property
    def is_starting(self) -> bool:
        """True if it will run once its machine has started; one that fails after its launch never does."""
        return self.state == "pending" and self.scheduled_termination is None

    @property
    def is_active(self) -> bool:
        """True if it runs or is starting, and so should be a machine."""
        return self.state == "running" or self.is_starting

    @property
    def is_ending(self) -> bool:
        """True if it stops or terminates once its processes have ended; a fault's kill has a fixed time instead."""
        return self.state == "stopping" or (self.state == "shutting-down" and self.scheduled_termination is None)

    def mark_pending(self) -> None:
        """Make a new instance pending if a machine has to start first, or if AWS takes time for it."""
        pending = duration(PENDING)
        self.runs_from, self.has_machine = utcnow() + pending if pending else None, False
        if self.state == "running" and (pending or instance_state.is_backed_by_machine(self)):
            self._state = InstanceState("pending", 0)

    def mark_running(self) -> None:
        """Set a starting instance to running: its machine has started. Not before AWS would."""
        self.has_machine = True
        if self.is_starting and (self.runs_from is None or self.runs_from <= utcnow()):
            self._state = InstanceState("running", 16)

    def finish_pending(self, now: datetime) -> bool:
        """Set an instance to running that AWS has started by now, and its machine too. True if it was pending."""
        due = self.runs_from is not None and self.runs_from <= now
        if not (due and self.is_starting and (self.has_machine or not instance_state.is_backed_by_machine(self))):
            return False
        self.mark_running()
        return True

    def mark_ended(self) -> None:
        """Set an ending instance to stopped or terminated: its processes have ended. Not while EC2 cleans it."""
        if self.cleaned_at:
            return
        if self.state == "stopping":
            self._state = InstanceState("stopped", 80)
        elif self.is_ending:
            self._end()

    def start(self) -> Any:
        """Start the stopped instance."""
        previous = super().start()
        if previous.name != "running":
            self.mark_pending()
        return previous

    def stop(self) -> Any:
        """Stop the instance; a machine is stopping until its processes have ended."""
        previous = super().stop()
        if previous.name != "stopped" and (self._must_be_cleaned() or instance_state.is_backed_by_machine(self)):
            self._state = InstanceState("stopping", 64)
        return previous

    def terminate(self) -> Any:
        """Terminate the instance; a machine is shutting-down until its processes have ended.

        A second call does not change the reason.
        """
        previous = copy(self._state)
        if self.ended or (previous.name == "shutting-down" and self.is_ending):
            return previous
        cleaned = previous.name != "stopped" and self._must_be_cleaned()
        if not cleaned and not instance_state.is_backed_by_machine(self):
            self._end()
            return previous
        self.scheduled_termination = None
        if previous.name != "shutting-down":
            self._show_user_initiated()
        self._state = InstanceState("shutting-down", 32)
        return previous

    def _must_be_cleaned(self) -> bool:
        now = utcnow()
        delay = cleanup_delay(self, now)
        self.cleaned_at = now + delay if delay else None
        return bool(delay)

    def _show_user_initiated(self) -> None:
        code = "Client.UserInitiatedShutdown"
        self._reason = f"User initiated ({utcnow():%Y-%m-%d %H:%M:%S UTC})"
        self.state_reason = StateReason(f"{code}: User initiated shutdown", code)

    def _end(self) -> None:
        """Terminate now. DeleteOnTermination decides about interfaces and volumes."""
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
