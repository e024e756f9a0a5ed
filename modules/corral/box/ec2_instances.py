"""Instances as the API changes them: launched, ended, stopped, started. Whether a launch is valid: ec2_launch."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instances import Reservation, StateReason
from moto.ec2.utils import filter_iam_instance_profiles, random_id, random_reservation_id

from corral.box.box_instance import BoxInstance
from corral.box.ec2_interfaces import attach
from corral.box.ec2_launch import Launch, plan_launch
from corral.box.ec2_places import NetworkCardPlace
from corral.box.ec2_quotas import check_on_demand, within_quota
from corral.box.ec2_rates import charge_instances
from corral.box.ec2_reservations import CapacityReservation
from corral.box.ec2_targets import find_reservation, taken_in, wanted_by
from corral.box.ec2_volumes import key_is_usable
from corral.box.faults import launching
from corral.box.refusals import Refused

LISTED_AFTER_END = timedelta(hours=1)  # "Terminated instances remain visible" (EC2 user guide, instance life cycle)


class Instances:
    """The part of the EC2 backend that launches and ends instances."""

    launches: dict[str, tuple[str, Any]]

    def launch(self: Any, launch: Launch) -> Reservation:
        """The new instances; those whose volumes cannot be decrypted are dead already."""
        now = utcnow()
        self.forget_ended(now)
        launch = launching.admit(within_quota(self, launch, now), now)
        charge_instances(self, "RunInstances", launch.count, time.time())
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
            launching.befall(instance, launch, now)
            instance.begin()
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
        charge_instances(self, "TerminateInstances", len(instance_ids), time.time())
        return super().terminate_instances(instance_ids)  # type: ignore[misc]

    def hidden_instances(self: Any) -> set[str]:
        """The ids of new instances that EC2 does not show yet."""
        late: set[str] = getattr(self, "late_instances", set())
        return {one for one in late if one in self.instances_by_id and not self.instances_by_id[one].is_visible}

    def describe_instance_status(self: Any, *arguments: Any, **named: Any) -> list[BoxInstance]:
        """The instances whose states are told: those that EC2 shows."""
        found: list[BoxInstance] = super().describe_instance_status(*arguments, **named)  # type: ignore[misc]
        return [instance for instance in found if instance.is_visible]

    def stop_instances(self: Any, instance_ids: list[str]) -> Any:
        """Stops instances; those of the spot market only if that was asked for at launch."""
        for instance in self.get_multi_instances_by_id(instance_ids):
            if instance.state in ("shutting-down", "terminated"):
                raise Refused("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it"
                              " can be stopped.")  # fmt: skip
            if instance.lifecycle == "spot":
                raise Refused("UnsupportedOperation", f"You can't stop the Spot Instance '{instance.id}' because it is"
                              " associated with a one-time Spot Instance request.")  # fmt: skip
        charge_instances(self, "StopInstances", len(instance_ids), time.time())
        return super().stop_instances(instance_ids)  # type: ignore[misc]

    def start_instances(self: Any, instance_ids: list[str]) -> Any:
        """Starts stopped instances, each in the reservation that it targets or an open one that fits."""
        instances = self.get_multi_instances_by_id(instance_ids)
        for instance in instances:
            if instance.state not in ("stopped", "running"):
                raise Refused("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it"
                              " can be started.")  # fmt: skip
        self._give_places([instance for instance in instances if instance.state == "stopped"], utcnow())
        charge_instances(self, "StartInstances", len(instance_ids), time.time())
        return super().start_instances(instance_ids)  # type: ignore[misc]

    def reboot_instances(self: Any, instance_ids: list[str]) -> list[BoxInstance]:
        """Boots machines again, from their disks."""
        instances: list[BoxInstance] = self.get_multi_instances_by_id(instance_ids)
        for instance in instances:
            if instance.state != "running":
                raise Refused("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it"
                              " can be rebooted.")  # fmt: skip
        for instance in instances:
            instance.reboots += 1
        return instances

    def take_in(self: Any, reservation: CapacityReservation, now: datetime) -> None:
        """Lets what runs, fits and is in no reservation run in this one, if it is open."""
        running = [instance for instance in self.all_instances() if instance.is_on]
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

    def _give_places(self: Any, instances: list[BoxInstance], now: datetime) -> None:
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
        given = list(zip(instances, found, strict=True))
        check_on_demand(self, [instance.instance_type for instance, place in given if place is None], now)
        for instance, reservation_id in given:
            instance.capacity_reservation_id = reservation_id

    def _forget(self: Any, instance: BoxInstance) -> None:
        self.tags.pop(instance.id, None)
        self.instances_by_id.pop(instance.id, None)

    def _undo(self: Any, reservation: Reservation) -> None:
        for instance in reservation.instances:
            instance.terminate()
            instance.has_gone()
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
