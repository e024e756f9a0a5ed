"""From an instance of the cloud to what its metadata service tells it. Hold the cloud's lock."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime, timedelta
from typing import Any

from moto.core.utils import utcnow
from moto.iam.models import iam_backends

from corral.box.metadata import Card, Credentials, Described

_CREDENTIALS_LIVE = timedelta(hours=6)


def describe(backend: Any, instance: Any) -> Described:
    """The instance as its metadata tell it."""
    subnet = backend.get_subnet(instance.subnet_id)
    shows_tags = instance.metadata_options.instance_metadata_tags == "enabled"
    return Described(
        instance_id=instance.id,
        instance_type=instance.instance_type,
        image_id=instance.image_id,
        account=instance.owner_id,
        region=instance.region_name,
        zone_name=instance.placement.zone,
        zone_id=subnet._availability_zone.zone_id,
        address=instance.private_ip,
        host_name=instance.private_dns_name,
        launch_index=int(instance.ami_launch_index),
        life_cycle=instance.lifecycle or "on-demand",
        cards=tuple(_card(nic) for _, nic in sorted(instance.nics.items())),
        tags=dict(backend.tags.get(instance.id, {})) if shows_tags else None,
        user_data=user_data_of(instance),
        group_name=instance.placement.group_name or None,
        credentials=_credentials(instance, utcnow()),
        interruption=instance.interruption,
        rebalance=instance.rebalance,
    )


def user_data_of(instance: Any) -> bytes | None:
    """The instance's user data as they were given; None where there are none."""
    return base64.b64decode(str(instance.user_data)) if instance.user_data else None


def _card(nic: Any) -> Card:
    return Card(
        mac=nic.mac_address,
        interface_id=nic.id,
        subnet_id=nic.subnet.id,
        card=nic.network_card_index,
        device=nic.device_index,
        address=nic.private_ip_address,
    )


def _credentials(instance: Any, now: datetime) -> Credentials | None:
    """Those of the role in the instance's profile. They say whose they are, and are as good as the box's need be."""
    role = role_of(instance)
    if role is None:
        return None
    digest = _digest(instance.id, role)
    return Credentials(
        role=role,
        access_key=access_key(instance.id, role),
        secret_key=digest[16:56],
        session_token=f"{instance.id}/{role}",
        expires=now + _CREDENTIALS_LIVE,
    )


def access_key(instance_id: str, role: str) -> str:
    """The access key with which this instance calls in this role."""
    return f"ASIA{_digest(instance_id, role)[:16].upper()}"


def _digest(instance_id: str, role: str) -> str:
    return hashlib.sha256(f"{instance_id} {role}".encode()).hexdigest()


def role_of(instance: Any) -> str | None:
    """The role in the instance's profile; None where it has no profile, the profile is gone, or nothing is in it."""
    arn = (instance.iam_instance_profile or {}).get("Arn")
    profiles = iam_backends[instance.owner_id]["aws"].instance_profiles.values()
    return next((held.name for profile in profiles if profile.arn == arn for held in profile.roles), None)
