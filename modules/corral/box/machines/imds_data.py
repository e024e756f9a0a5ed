"""The metadata of an instance, from the state of the cloud. Hold the cloud's lock."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from ipaddress import IPv4Network
from typing import Any

from moto.core.utils import utcnow
from moto.iam.models import iam_backends

from corral.box.machines.imds import InstanceMetadata, MetadataInterface, RoleCredentials
from corral.box.secret import BoxSecret

TEMPORARY = "ASIA"  # prefix of the access keys of sessions. Source: IAM User Guide, "IAM identifiers"
_CREDENTIALS_TTL = timedelta(hours=6)


def instance_metadata(backend: Any, instance: Any, secret: BoxSecret) -> InstanceMetadata:
    """The metadata of an instance."""
    subnet = backend.get_subnet(instance.subnet_id)
    shows_tags = instance.metadata_options.instance_metadata_tags == "enabled"
    return InstanceMetadata(
        instance_id=instance.id,
        instance_type=instance.instance_type,
        image_id=instance.image_id,
        reservation_id=_reservation_id(backend, instance),
        account=instance.owner_id,
        region=instance.region_name,
        zone_name=instance.placement.zone,
        zone_id=subnet._availability_zone.zone_id,
        vpc_id=subnet.vpc_id,
        vpc_networks=_networks(backend.get_vpc(subnet.vpc_id)),
        address=instance.private_ip,
        host_name=instance.private_dns_name,
        launch_index=int(instance.ami_launch_index),
        lifecycle=instance.lifecycle or "on-demand",
        virtualization=instance.virtualization_type,
        root_device=instance.root_device_name,
        interfaces=tuple(_card(nic) for _, nic in sorted(instance.nics.items())),
        tags=dict(backend.tags.get(instance.id, {})) if shows_tags else None,
        user_data=user_data_of(instance),
        group_name=instance.placement.group_name or None,
        credentials=_credentials(instance, secret, utcnow()),
        interruption=instance.interruption,
        rebalance=instance.rebalance,
    )


def user_data_of(instance: Any) -> bytes | None:
    """The instance's user data, or None."""
    return base64.b64decode(str(instance.user_data)) if instance.user_data else None


def _reservation_id(backend: Any, instance: Any) -> str:
    return next(str(held.id) for held in backend.reservations.values() if instance in held.instances)


def _networks(vpc: Any) -> tuple[IPv4Network, ...]:
    """The VPC's ranges in the order of their association; its own is the first."""
    return tuple(IPv4Network(held["cidr_block"]) for held in vpc.get_cidr_block_association_set())


def _card(nic: Any) -> MetadataInterface:
    return MetadataInterface(
        mac=nic.mac_address,
        interface_id=nic.id,
        subnet_id=nic.subnet.id,
        subnet_network=IPv4Network(nic.subnet.cidr_block),
        groups={group.id: group.name for group in nic.group_set},
        card=nic.network_card_index,
        device=nic.device_index,
        address=nic.private_ip_address,
    )


def _credentials(instance: Any, secret: BoxSecret, now: datetime) -> RoleCredentials | None:
    """Credentials of the role in the instance's profile, derived from the secret, the instance's id and the role."""
    role = role_of(instance)
    if role is None:
        return None
    return RoleCredentials(
        role=role,
        access_key=access_key(secret, instance.id, role),
        secret_key=secret.secret_key("instance", instance.id, role),
        session_token=f"{instance.id}/{role}",
        expires=now + _CREDENTIALS_TTL,
    )


def access_key(secret: BoxSecret, instance_id: str, role: str) -> str:
    """The access key of this instance in this role."""
    return secret.access_key(TEMPORARY, "instance", instance_id, role)


def role_of(instance: Any) -> str | None:
    """The role in the instance's profile; None if the profile is missing or empty."""
    arn = (instance.iam_instance_profile or {}).get("Arn")
    profiles = iam_backends[instance.owner_id]["aws"].instance_profiles.values()
    return next((held.name for profile in profiles if profile.arn == arn for held in profile.roles), None)
