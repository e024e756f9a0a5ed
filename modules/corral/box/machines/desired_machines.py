"""The machines that should run, and their DNS names, from the state of the cloud. Hold the cloud's lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.efs.models import efs_backends
from moto.elbv2.models import elbv2_backends
from moto.fsx.models import fsx_backends
from moto.route53.models import route53_backends

from corral.box.account import ACCOUNT
from corral.box.ec2.instance_state import is_backed_by_machine
from corral.box.faults import store
from corral.box.faults.records import Fault, Freeze, NetworkCut
from corral.box.machines.imds_data import user_data_of
from corral.model.partitions import partition_of
from corral.model.tags import NODES_TAG

_ENDED = ("shutting-down", "terminated")


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredMachine:
    """An instance that should run as a machine. `host_name`: with its domain.

    `cards`: the addresses of its network cards with their subnets, by MAC address, the primary one first.
    `volumes`: the sizes of its volumes in GiB by id, without the root volume, whose size is `root_gib`.
    `devices`: names below /dev.
    `is_node`: whether it was launched for a Slurm node.
    """

    instance_id: str
    instance_type: str
    region: str
    vpc_id: str
    network: IPv4Network
    address: IPv4Address
    cards: Mapping[str, IPv4Interface]
    host_name: str
    user_data: bytes
    root_gib: int
    volumes: Mapping[str, int]
    devices: tuple[str, ...]
    boot_wait: str
    has_mirror_errors: bool
    reboots: int
    is_node: bool
    is_frozen: bool
    is_disconnected: bool


def desired_machines() -> Iterator[DesiredMachine]:
    """The instances that should run as machines: active ones of the box's image with user data."""
    frozen, disconnected = _targets_of(Freeze), _targets_of(NetworkCut)
    for region, backend in list(ec2_backends[ACCOUNT].items()):
        for instance in running_instances(backend):
            if is_backed_by_machine(instance) and (user_data := user_data_of(instance)):
                yield DesiredMachine(
                    instance_id=instance.id,
                    instance_type=instance.instance_type,
                    region=region,
                    vpc_id=instance.vpc_id,
                    network=IPv4Network(backend.get_vpc(instance.vpc_id).cidr_block),
                    address=IPv4Address(instance.private_ip),
                    cards=_cards(instance),
                    host_name=instance.private_dns_name,
                    user_data=user_data,
                    root_gib=_root_gib(backend, instance),
                    volumes=dict(sorted(_volumes(backend, instance))),
                    devices=tuple(_devices(instance.instance_type)),
                    boot_wait=instance.boot_wait,
                    has_mirror_errors=instance.has_mirror_errors,
                    reboots=instance.reboots,
                    is_node=NODES_TAG in backend.tags.get(instance.id, {}),
                    is_frozen=instance.id in frozen,
                    is_disconnected=instance.id in disconnected,
                )


def _targets_of(kind: type[Fault]) -> frozenset[str | None]:
    return frozenset(fault.scope.target for fault in store.faults() if isinstance(fault, kind))


def running_instances(backend: Any) -> Iterator[Any]:
    """The running and starting instances of a region."""
    return (instance for instance in backend.all_instances() if instance.is_active)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingResources:
    """The ids of existing resources. `instances`: not terminated; `listed`: with recently terminated ones."""

    vpcs: frozenset[str]
    instances: frozenset[str]
    listed: frozenset[str]
    volumes: frozenset[str]
    file_systems: frozenset[str]


def existing_resources() -> ExistingResources:
    """The existing resources of all regions."""
    backends = [backend for _, backend in ec2_backends[ACCOUNT].items()]
    instances = [instance for backend in backends for instance in backend.all_instances()]
    homes = {held for _, backend in efs_backends[ACCOUNT].items() for held in backend.file_systems_by_id}
    lustre = {held for _, backend in fsx_backends[ACCOUNT].items() for held in backend.file_systems}
    return ExistingResources(
        vpcs=frozenset(vpc for backend in backends for vpc in backend.vpcs),
        instances=frozenset(one.id for one in instances if one.state not in _ENDED),
        listed=frozenset(one.id for one in instances),
        volumes=frozenset(volume for backend in backends for volume in backend.volumes),
        file_systems=frozenset(homes | lustre),
    )


def dns_names(vpc_id: str) -> Mapping[str, list[str]]:
    """The addresses by DNS name in a VPC: EC2's hosts, EFS, load balancers, and records of its private zones."""
    return {**_own_names(vpc_id), **_file_system_names(vpc_id), **_balancer_names(vpc_id), **_zone_names(vpc_id)}


def mount_targets(vpc_id: str) -> Mapping[str, str]:
    """The EFS file systems that have a mount target in the VPC, by the target's address."""
    return {target.ip_address: target.file_system_id for _, target in _mount_targets(vpc_id)}


def listeners(vpc_id: str) -> Mapping[str, list[str]]:
    """The targets of the VPC's network load balancers by listener, each an address with a port: 10.64.0.7:22.

    Only running targets count, in the zones of the load balancer.
    """
    found: dict[str, list[str]] = {}
    for backend, balancer in _balancers(vpc_id):
        for listener in balancer.listeners.values():
            targets = list(_targets(backend, listener))
            found |= {f"{address}:{listener.port}": targets for address in backend.addresses(balancer)}
    return found


def _balancers(vpc_id: str) -> Iterator[tuple[Any, Any]]:
    """The VPC's load balancers, each with its region's backend."""
    for _, backend in list(elbv2_backends[ACCOUNT].items()):
        for balancer in backend.load_balancers.values():
            if balancer.vpc_id == vpc_id:
                yield backend, balancer


def _targets(backend: Any, listener: Any) -> Iterator[str]:
    for action in listener.default_actions:
        for arn in backend._get_target_group_arns_from(action.data):
            for health in backend.describe_target_health(arn, []):
                instance = backend.ec2_backend.get_instance_by_id(health.instance_id)
                if health.status == "healthy" and instance and instance.is_active:
                    yield f"{instance.private_ip}:{health.port}"


def _file_system_names(vpc_id: str) -> Mapping[str, list[str]]:
    """`fs-0123.efs.REGION.DOMAIN`. Each zone has its own target; without zones the first one serves all.

    Source: EFS User Guide, "Mounting on Amazon EC2 with a DNS name".
    """
    found: dict[str, list[str]] = {}
    for region, target in _mount_targets(vpc_id):
        name = f"{target.file_system_id}.efs.{region}.{partition_of(region).dns_suffix}"
        found.setdefault(name, [target.ip_address])
    return found


def _mount_targets(vpc_id: str) -> Iterator[tuple[str, Any]]:
    for region, backend in list(efs_backends[ACCOUNT].items()):
        for target in backend.mount_targets_by_id.values():
            if target.vpc_id == vpc_id:
                yield region, target


def _balancer_names(vpc_id: str) -> Mapping[str, list[str]]:
    """The private addresses of network load balancers by their names."""
    return {
        balancer.dns_name.lower(): backend.addresses(balancer)
        for backend, balancer in _balancers(vpc_id)
        if balancer.interface_ids
    }


def _own_names(vpc_id: str) -> Mapping[str, list[str]]:
    """`ip-10-64-1-11.ec2.internal` for every instance that is not terminated.

    Source: EC2 User Guide, "EC2 instance hostnames and domains" (IP address names).
    """
    instances = (one for _, backend in list(ec2_backends[ACCOUNT].items()) for one in backend.all_instances())
    active = (one for one in instances if one.vpc_id == vpc_id and one.state not in _ENDED and one.private_ip)
    return {one.private_dns_name: [one.private_ip] for one in active}


def _zone_names(vpc_id: str) -> Mapping[str, list[str]]:
    zones = route53_backends[ACCOUNT]["aws"].zones.values()
    held = [zone for zone in zones if any(vpc["vpc_id"] == vpc_id for vpc in zone.vpcs)]
    return {
        record.name.rstrip(".").lower(): [
            value["Value"] if isinstance(value, dict) else value for value in record.records
        ]
        for zone in held
        for record in zone.rrsets
        if record.type == "A"
    }


def _volumes(backend: Any, instance: Any) -> Iterator[tuple[str, int]]:
    root = instance.root_device_name
    held = (one.volume_id for device, one in instance.block_device_mapping.items() if device != root)
    return ((volume_id, backend.volumes[volume_id].size) for volume_id in held)


def _cards(instance: Any) -> Mapping[str, IPv4Interface]:
    """The interfaces with an address; an EFA-only one has none, and is no card of the machine's network."""
    nics = [instance.primary, *(nic for _, nic in sorted(instance.nics.items()) if nic is not instance.primary)]
    return {
        nic.mac_address: IPv4Interface((nic.private_ip_address, IPv4Network(nic.subnet.cidr_block).prefixlen))
        for nic in nics
        if nic.private_ip_address
    }


def _root_gib(backend: Any, instance: Any) -> int:
    held = instance.block_device_mapping[instance.root_device_name]
    return int(backend.volumes[held.volume_id].size)


def _devices(instance_type: str) -> Iterator[str]:
    """The device names of the accelerators' drivers: nvidia0, neuron0."""
    facts = INSTANCE_TYPES[instance_type]
    for name, group, kind in (("nvidia", "GpuInfo", "Gpus"), ("neuron", "NeuronInfo", "NeuronDevices")):
        count = sum(row["Count"] for row in facts.get(group, {}).get(kind, ()))
        yield from (f"{name}{number}" for number in range(count))
