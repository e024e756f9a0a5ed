"""Launch, terminate, stop, start and reboot instances. `launch` validates a launch."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instances import Reservation, StateReason
from moto.ec2.utils import filter_iam_instance_profiles, random_id, random_reservation_id

from corral.box.api_errors import ApiError
from corral.box.ec2 import launch_faults
from corral.box.ec2.instance import BoxInstance
from corral.box.ec2.launch import LaunchPlan, plan_launch
from corral.box.ec2.throttling import charge_instances
from corral.box.ec2.volumes import key_is_usable
from corral.box.ec2_capacity.quota_enforcement import check_on_demand, count_within_quota
from corral.box.ec2_capacity.reservation_matching import capacity_request_of, find_reservation, instances_to_adopt
from corral.box.ec2_capacity.reservations import CapacityReservation
from corral.box.ec2_network.interfaces import attach
from corral.box.ec2_network.nic_placement import NicPlacement

LISTED_AFTER_END = timedelta(hours=1)  # "Terminated instances remain visible" (EC2 user guide, instance life cycle)


class Instances:
    """The EC2 backend's instances."""

    launches: dict[str, tuple[str, Any]]

    def launch(self: Any, launch: LaunchPlan) -> Reservation:
        """Launch instances; those whose volumes cannot be decrypted terminate at once."""
        now = utcnow()
        self.remove_ended(now)
        launch = launch_faults.limit_to_capacity(self._within_quota(launch, now), now)
        charge_instances(self, "RunInstances", launch.count, time.time())
        reservation = Reservation(random_reservation_id(), owner_id=self.account_id)
        self.reservations[reservation.id] = reservation
        try:
            for index in range(launch.count):
                reservation.instances.append(self._create(launch, index))
                self.instances_by_id[reservation.instances[-1].id] = reservation.instances[-1]
                self._attach_resources(reservation.instances[-1], launch)
        except Exception:
            self._roll_back(reservation)
            raise
        for instance in reservation.instances:
            launch_faults.apply_launch_faults(instance, launch, now)
            instance.mark_pending()
            if not self._are_volumes_usable(launch):
                self._terminate_with(instance, "Client.InternalError", "Client error on launch")
        return reservation

    def _within_quota(self: Any, launch: LaunchPlan, now: datetime) -> LaunchPlan:
        """The launch with as many instances as the quota allows; a reservation was counted when it was made."""
        if launch.reservation:
            return launch
        least = int(launch.parameters["MinCount"])
        count = count_within_quota(
            self, launch.instance_type, launch.lifecycle, least=least, most=launch.count, now=now
        )
        return replace(launch, count=count)

    def run_instances(
        self: Any, image_id: str, count: int, user_data: Any, security_group_names: list[str], **kwargs: Any
    ) -> Reservation:
        """Launch for fleets and auto scaling groups."""
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
        """Terminate instances; a terminated one is no error."""
        charge_instances(self, "TerminateInstances", len(instance_ids), time.time())
        return super().terminate_instances(instance_ids)  # type: ignore[misc]

    def hidden_instances(self: Any) -> set[str]:
        """The ids of new instances that EC2 does not show yet."""
        late: set[str] = getattr(self, "late_instances", set())
        return {one for one in late if one in self.instances_by_id and not self.instances_by_id[one].is_visible}

    def describe_instance_status(self: Any, *arguments: Any, **named: Any) -> list[BoxInstance]:
        """The status of the visible instances."""
        found: list[BoxInstance] = super().describe_instance_status(*arguments, **named)  # type: ignore[misc]
        return [instance for instance in found if instance.is_visible]

    def stop_instances(self: Any, instance_ids: list[str]) -> Any:
        """Stop instances. Raises ApiError for spot instances."""
        for instance in self.get_multi_instances_by_id(instance_ids):
            if instance.state in ("shutting-down", "terminated"):
                raise ApiError("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it"
                              " can be stopped.")  # fmt: skip
            if instance.lifecycle == "spot":
                raise ApiError("UnsupportedOperation", f"You can't stop the Spot Instance '{instance.id}' because it is"
                              " associated with a one-time Spot Instance request.")  # fmt: skip
        charge_instances(self, "StopInstances", len(instance_ids), time.time())
        return super().stop_instances(instance_ids)  # type: ignore[misc]

    def start_instances(self: Any, instance_ids: list[str]) -> Any:
        """Start stopped instances, each in its target reservation or an open one that matches."""
        instances = self.get_multi_instances_by_id(instance_ids)
        for instance in instances:
            if instance.state not in ("stopped", "running"):
                raise ApiError("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it"
                              " can be started.")  # fmt: skip
        self._assign_reservations([instance for instance in instances if instance.state == "stopped"], utcnow())
        charge_instances(self, "StartInstances", len(instance_ids), time.time())
        return super().start_instances(instance_ids)  # type: ignore[misc]

    def reboot_instances(self: Any, instance_ids: list[str]) -> list[BoxInstance]:
        """Reboot machines from their disks."""
        instances: list[BoxInstance] = self.get_multi_instances_by_id(instance_ids)
        for instance in instances:
            if instance.state != "running":
                raise ApiError("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state from which it"
                              " can be rebooted.")  # fmt: skip
        for instance in instances:
            instance.reboots += 1
        return instances

    def adopt_instances(self: Any, reservation: CapacityReservation, now: datetime) -> None:
        """Move matching running instances without a reservation into this one, if it is open."""
        running = [instance for instance in self.all_instances() if instance.is_active]
        free = reservation.free_at(now, self.used_capacity()[reservation.id])
        for instance in instances_to_adopt(reservation, running, free):
            instance.capacity_reservation_id = reservation.id

    def remove_ended(self: Any, now: datetime) -> None:
        """Remove instances that terminated more than an hour ago."""
        for reservation in list(self.reservations.values()):
            kept = [i for i in reservation.instances if not (i.ended and now - i.ended > LISTED_AFTER_END)]
            for instance in reservation.instances:
                if instance not in kept:
                    self._remove(instance)
            reservation.instances = kept
            if not kept:
                del self.reservations[reservation.id]

    def _assign_reservations(self: Any, instances: list[BoxInstance], now: datetime) -> None:
        used: Counter[str] = self.used_capacity()
        found: list[str | None] = []
        for instance in instances:
            parameters = {
                "CapacityReservationSpecification": instance.capacity_reservation_specification,
                "InstanceMarketOptions": {"MarketType": instance.lifecycle},
            }
            reservation = find_reservation(self, parameters, capacity_request_of(self, instance), used, now)
            found.append(reservation.id if reservation else None)
            used[found[-1] or ""] += 1
        given = list(zip(instances, found, strict=True))
        check_on_demand(
            self, [instance.instance_type for instance, reservation_id in given if reservation_id is None], now
        )
        for instance, reservation_id in given:
            instance.capacity_reservation_id = reservation_id

    def _remove(self: Any, instance: BoxInstance) -> None:
        self.tags.pop(instance.id, None)
        self.instances_by_id.pop(instance.id, None)

    def _roll_back(self: Any, reservation: Reservation) -> None:
        for instance in reservation.instances:
            instance.terminate()
            instance.cleaned_at = None
            instance.mark_ended()
            self._remove(instance)
        del self.reservations[reservation.id]

    def _create(self: Any, launch: LaunchPlan, index: int) -> BoxInstance:
        parameters = launch.parameters
        instance = BoxInstance(
            self,
            parameters["ImageId"],
            launch.user_data,
            [self.get_security_group_from_id(group) for group in launch.groups],
            instance_type=launch.instance_type,
            region_name=self.region_name,
            subnet_id=launch.subnet.id,
            key_name=parameters.get("KeyName"),
            ami_launch_index=index,
            client_token=parameters.get("ClientToken"),
            lifecycle=launch.lifecycle,
            monitoring_state="enabled" if (parameters.get("Monitoring") or {}).get("Enabled") else "disabled",
            metadata_options=parameters.get("MetadataOptions") or {},
            ebs_optimized=parameters.get("EbsOptimized") or False,
            disable_api_termination=parameters.get("DisableApiTermination") or False,
            disable_api_stop=parameters.get("DisableApiStop") or False,
            instance_initiated_shutdown_behavior=parameters.get("InstanceInitiatedShutdownBehavior"),
            hibernation_options=parameters.get("HibernationOptions") or {},
        )
        instance.placement.group_name = launch.placement_group.name if launch.placement_group else ""
        instance.placement.tenancy = (parameters.get("Placement") or {}).get("Tenancy") or "default"
        instance.spot_instance_request_id = random_id("sir", 8) if launch.lifecycle == "spot" else None
        instance.capacity_reservation_specification = parameters.get("CapacityReservationSpecification") or {
            "CapacityReservationPreference": "open"
        }
        if launch.reservation:
            instance.capacity_reservation_id = launch.reservation.id
            instance.capacity_block_id = launch.reservation.block_id
        return instance

    def _attach_resources(self: Any, instance: BoxInstance, launch: LaunchPlan) -> None:
        instance.add_tags(launch.tags.get("instance", {}))
        for nic in launch.nic_placements:
            attach(self._interface(nic, launch), instance, nic.card, nic.device)
        for disk in launch.disks:
            volume = self.create_volume(
                size=disk["size"],
                zone_name=instance.placement.zone,
                **{
                    name: value
                    for name, value in disk.items()
                    if name not in ("size", "device", "delete_on_termination")
                },
            )
            volume.add_tags(launch.tags.get("volume", {}))
            self.volumes[volume.id] = volume
            self.attach_volume(volume.id, instance.id, disk["device"], disk["delete_on_termination"])
        profile = launch.parameters.get("IamInstanceProfile")
        if profile:
            found = filter_iam_instance_profiles(
                self.account_id, self.partition, profile.get("Arn"), profile.get("Name")
            )
            self.associate_iam_instance_profile(instance.id, iam_instance_profile_arn=found.arn)
            instance.iam_instance_profile = {"Arn": found.arn, "Id": found.id}

    def _interface(self: Any, nic: NicPlacement, launch: LaunchPlan) -> Any:
        if nic.existing:
            eni = self.get_network_interface(nic.existing)
            eni.delete_on_termination = nic.delete_on_termination
            return eni
        return self.create_network_interface(
            nic.subnet,
            nic.address,
            group_ids=list(nic.groups),
            description=nic.description,
            tags=launch.tags.get("network-interface", {}),
            delete_on_termination=nic.delete_on_termination,
            interface_type=nic.interface_type,
            network_card_index=nic.card,
            device_index=nic.device,
            public_ip_auto_assign=nic.public,
        )

    def _are_volumes_usable(self: Any, launch: LaunchPlan) -> bool:
        keys = {disk["kms_key_id"] for disk in launch.disks if disk.get("kms_key_id")}
        return all(key_is_usable(self.account_id, self.region_name, key) for key in keys)

    def _terminate_with(self: Any, instance: BoxInstance, code: str, text: str) -> None:
        instance.terminate()
        instance.state_reason = StateReason(f"{code}: {text}", code)
