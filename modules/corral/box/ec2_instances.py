"""Instances: what a validated launch makes, and what is left when one ends. Whether a launch is valid: ec2_launch."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instances import Instance, Reservation, StateReason
from moto.ec2.utils import filter_iam_instance_profiles, random_id, random_reservation_id

from corral.box.ec2_interfaces import attach
from corral.box.ec2_launch import Launch, plan_launch
from corral.box.ec2_places import NetworkCardPlace
from corral.box.ec2_reservations import CapacityReservation
from corral.box.ec2_targets import find_reservation, taken_in, wanted_by
from corral.box.ec2_volumes import key_is_usable
from corral.box.events import MachineEvent, announce
from corral.box.refusals import Refused

LISTED_AFTER_END = timedelta(hours=1)  # "Terminated instances remain visible" (EC2 user guide, instance life cycle)


class BoxInstance(Instance):
    """An instance with several network cards, which lets go of all it held when it ends."""

    ended: datetime | None = None
    capacity_reservation_id: str | None = None
    capacity_block_id: str | None = None
    interruption: datetime | None = None  # when the spot market takes it back

    def __del__(self) -> None:
        """Nothing: moto would free addresses here that others may hold by now."""

    def prep_nics(self, *_args: Any, **_kwargs: Any) -> None:
        """Starts without interfaces; the launch attaches them."""
        self.nics: dict[int, Any] = {}

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
        """Ends the instance: interfaces and volumes go or stay as their DeleteOnTermination says."""
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


class Instances:
    """The part of the EC2 backend that launches and ends instances."""

    launches: dict[str, tuple[str, Any]]

    def launch(self: Any, launch: Launch) -> Reservation:
        """The new instances; those whose volumes cannot be decrypted are dead already."""
        self.forget_ended(utcnow())
        reservation = Reservation(random_reservation_id(), owner_id=self.account_id)
        self.reservations[reservation.id] = reservation
        try:
            for index in range(launch.count):
                reservation.instances.append(self._make(launch, index))
                self.instances_by_id[reservation.instances[-1].id] = reservation.instances[-1]
                self._equip(reservation.instances[-1], launch)
        except Exception:
            self._undo(reservation)
            raise
        for instance in reservation.instances:
            announce(MachineEvent(kind="launched", region=self.region_name, instance_id=instance.id))
            if not self._volumes_can_be_used(launch):
                self._kill(instance, "Client.InternalError", "Client error on launch")
        return reservation

    def run_instances(
        self: Any, image_id: str, count: int, user_data: Any, security_group_names: list[str], **kwargs: Any
    ) -> Reservation:
        """The door through which fleets and auto scaling groups launch."""
        wanted = {
            "ImageId": image_id,
            "MinCount": count,
            "MaxCount": count,
            "UserData": user_data,
            "InstanceType": None if kwargs.get("is_instance_type_default") else kwargs.get("instance_type"),
            "SubnetId": kwargs.get("subnet_id"),
            "KeyName": kwargs.get("key_name"),
            "SecurityGroups": security_group_names,
            "SecurityGroupIds": kwargs.get("security_group_ids"),
            "LaunchTemplate": kwargs.get("launch_template"),
            "TagSpecifications": [
                {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
                for kind, tags in kwargs.get("tags", {}).items()
            ],
        }
        return self.launch(plan_launch(self, {name: value for name, value in wanted.items() if value}))

    def terminate_instances(self: Any, instance_ids: list[str]) -> Any:
        """Ends instances; one that has ended already is no error."""
        ended = super().terminate_instances(instance_ids)  # type: ignore[misc]
        for instance, _ in ended:
            announce(MachineEvent(kind="terminated", region=self.region_name, instance_id=instance.id))
        return ended

    def stop_instances(self: Any, instance_ids: list[str]) -> Any:
        """Stops instances; those of the spot market only if that was asked for at launch."""
        for instance in self.get_multi_instances_by_id(instance_ids):
            if instance.state in ("shutting-down", "terminated"):
                raise Refused("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it"
                              " can be stopped.")  # fmt: skip
            if instance.lifecycle == "spot":
                raise Refused("UnsupportedOperation", f"You can't stop the Spot Instance '{instance.id}' because it is"
                              " associated with a one-time Spot Instance request.")  # fmt: skip
        stopped = super().stop_instances(instance_ids)  # type: ignore[misc]
        for instance, _ in stopped:
            announce(MachineEvent(kind="stopped", region=self.region_name, instance_id=instance.id))
        return stopped

    def start_instances(self: Any, instance_ids: list[str]) -> Any:
        """Starts stopped instances, each in the reservation that it targets or an open one that fits."""
        instances = self.get_multi_instances_by_id(instance_ids)
        for instance in instances:
            if instance.state not in ("stopped", "running"):
                raise Refused("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it"
                              " can be started.")  # fmt: skip
        self._find_places([instance for instance in instances if instance.state == "stopped"], utcnow())
        started = super().start_instances(instance_ids)  # type: ignore[misc]
        for instance, _ in started:
            announce(MachineEvent(kind="started", region=self.region_name, instance_id=instance.id))
        return started

    def take_in(self: Any, reservation: CapacityReservation, now: datetime) -> None:
        """Lets what runs, fits and is in no reservation run in this one, if it is open."""
        running = [instance for instance in self.all_instances() if instance.state == "running"]
        free = reservation.free_at(now, self.used_capacity()[reservation.id])
        for instance in taken_in(reservation, running, free):
            instance.capacity_reservation_id = reservation.id

    def forget_ended(self: Any, now: datetime) -> None:
        """Drops what ended more than an hour ago from every listing."""
        for reservation in list(self.reservations.values()):
            kept = [i for i in reservation.instances if not (i.ended and now - i.ended > LISTED_AFTER_END)]
            for instance in reservation.instances:
                if instance not in kept:
                    self._forget(instance)
            reservation.instances = kept
            if not kept:
                del self.reservations[reservation.id]

    def _find_places(self: Any, instances: list[BoxInstance], now: datetime) -> None:
        used: Counter[str] = self.used_capacity()
        found: list[str | None] = []
        for instance in instances:
            asked = {
                "CapacityReservationSpecification": instance.capacity_reservation_specification,
                "InstanceMarketOptions": {"MarketType": instance.lifecycle},
            }
            reservation = find_reservation(self, asked, wanted_by(self, instance), used, now)
            found.append(reservation.id if reservation else None)
            used[found[-1] or ""] += 1
        for instance, reservation_id in zip(instances, found, strict=True):
            instance.capacity_reservation_id = reservation_id

    def _forget(self: Any, instance: BoxInstance) -> None:
        self.tags.pop(instance.id, None)
        self.instances_by_id.pop(instance.id, None)

    def _undo(self: Any, reservation: Reservation) -> None:
        for instance in reservation.instances:
            instance.terminate()
            self._forget(instance)
        del self.reservations[reservation.id]

    def _make(self: Any, launch: Launch, index: int) -> BoxInstance:
        asked = launch.asked
        instance = BoxInstance(
            self,
            asked["ImageId"],
            launch.user_data,
            [self.get_security_group_from_id(group) for group in launch.groups],
            instance_type=launch.instance_type,
            region_name=self.region_name,
            subnet_id=launch.subnet.id,
            key_name=asked.get("KeyName"),
            ami_launch_index=index,
            client_token=asked.get("ClientToken"),
            lifecycle=launch.lifecycle,
            monitoring_state="enabled" if (asked.get("Monitoring") or {}).get("Enabled") else "disabled",
            metadata_options=asked.get("MetadataOptions") or {},
            ebs_optimized=asked.get("EbsOptimized") or False,
            disable_api_termination=asked.get("DisableApiTermination") or False,
            disable_api_stop=asked.get("DisableApiStop") or False,
            instance_initiated_shutdown_behavior=asked.get("InstanceInitiatedShutdownBehavior"),
            hibernation_options=asked.get("HibernationOptions") or {},
        )
        instance.placement.group_name = launch.placement_group.name if launch.placement_group else ""
        instance.placement.tenancy = (asked.get("Placement") or {}).get("Tenancy") or "default"
        instance.spot_instance_request_id = random_id("sir", 8) if launch.lifecycle == "spot" else None
        instance.capacity_reservation_specification = asked.get("CapacityReservationSpecification") or {
            "CapacityReservationPreference": "open"
        }
        if launch.reservation:
            instance.capacity_reservation_id = launch.reservation.id
            instance.capacity_block_id = launch.reservation.block_id
        return instance

    def _equip(self: Any, instance: BoxInstance, launch: Launch) -> None:
        instance.add_tags(launch.tags.get("instance", {}))
        for place in launch.places:
            attach(self._interface(place, launch), instance, place.card, place.device)
        for disk in launch.disks:
            volume = self.create_volume(
                size=disk["size"],
                zone_name=instance.placement.zone,
                **{name: value for name, value in disk.items() if name not in ("size", "device", "ends")},
            )
            volume.add_tags(launch.tags.get("volume", {}))
            self.volumes[volume.id] = volume
            self.attach_volume(volume.id, instance.id, disk["device"], disk["ends"])
        profile = launch.asked.get("IamInstanceProfile")
        if profile:
            found = filter_iam_instance_profiles(
                self.account_id, self.partition, profile.get("Arn"), profile.get("Name")
            )
            self.associate_iam_instance_profile(instance.id, iam_instance_profile_arn=found.arn)
            instance.iam_instance_profile = {"Arn": found.arn, "Id": found.id}

    def _interface(self: Any, place: NetworkCardPlace, launch: Launch) -> Any:
        if place.existing:
            eni = self.get_network_interface(place.existing)
            eni.delete_on_termination = place.ends
            return eni
        return self.create_network_interface(
            place.subnet,
            place.address,
            group_ids=list(place.groups),
            description=place.description,
            tags=launch.tags.get("network-interface", {}),
            delete_on_termination=place.ends,
            interface_type=place.interface_type,
            network_card_index=place.card,
            device_index=place.device,
            public_ip_auto_assign=place.public,
        )

    def _volumes_can_be_used(self: Any, launch: Launch) -> bool:
        keys = {disk["kms_key_id"] for disk in launch.disks if disk.get("kms_key_id")}
        return all(key_is_usable(self.account_id, self.region_name, key) for key in keys)

    def _kill(self: Any, instance: BoxInstance, code: str, text: str) -> None:
        instance.terminate()
        instance.state_reason = StateReason(f"{code}: {text}", code)
        announce(MachineEvent(kind="terminated", region=self.region_name, instance_id=instance.id))
