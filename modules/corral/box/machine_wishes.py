"""What should run, and under which names, as the cloud has it now. Hold the cloud's lock while asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.efs.models import efs_backends
from moto.fsx.models import fsx_backends
from moto.route53.models import route53_backends

from corral.agent.identity import NODES_TAG
from corral.box.control import ACCOUNT
from corral.box.ec2_machines import is_machine
from corral.box.faults import book
from corral.box.faults.records import Fault, Hang, Partition
from corral.box.instance_metadata import user_data_of

_ENDED = ("shutting-down", "terminated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An instance that should be a machine. `host_name`: with its domain. `volumes`: those beside its root.

    `devices`: names below /dev. `is_node`: whether it was launched because slurmctld asked for it.
    """

    instance_id: str
    region: str
    vpc_id: str
    network: IPv4Network
    address: IPv4Address
    host_name: str
    user_data: bytes
    volumes: tuple[str, ...]
    devices: tuple[str, ...]
    boot_wait: str
    boots: int
    is_node: bool
    hangs: bool
    is_cut_off: bool


def wanted_machines() -> Iterator[Wanted]:
    """The instances that should be machines: those that run, of the one image that this system holds."""
    hanging, cut_off = _struck(Hang), _struck(Partition)
    for region, backend in list(ec2_backends[ACCOUNT].items()):
        for instance in running_instances(backend):
            if is_machine(instance) and (user_data := user_data_of(instance)):
                yield Wanted(
                    instance_id=instance.id,
                    region=region,
                    vpc_id=instance.vpc_id,
                    network=IPv4Network(backend.get_vpc(instance.vpc_id).cidr_block),
                    address=IPv4Address(instance.private_ip),
                    host_name=instance.private_dns_name,
                    user_data=user_data,
                    volumes=tuple(sorted(_volumes(backend, instance))),
                    devices=tuple(_devices(instance.instance_type)),
                    boot_wait=instance.boot_wait,
                    boots=instance.reboots,
                    is_node=NODES_TAG in backend.tags.get(instance.id, {}),
                    hangs=instance.id in hanging,
                    is_cut_off=instance.id in cut_off,
                )


def _struck(kind: type[Fault]) -> frozenset[str | None]:
    return frozenset(fault.where.of for fault in book.faults() if isinstance(fault, kind))


def running_instances(backend: Any) -> Iterator[Any]:
    """The instances of a region that run, or will as soon as their machines have started."""
    return (instance for instance in backend.all_instances() if instance.is_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """The ids of what exists. `instances`: those that have not ended; `listed`: also those that ended lately."""

    vpcs: frozenset[str]
    instances: frozenset[str]
    listed: frozenset[str]
    volumes: frozenset[str]
    file_systems: frozenset[str]


def existing() -> Existing:
    """What exists in all regions."""
    backends = [backend for _, backend in ec2_backends[ACCOUNT].items()]
    instances = [instance for backend in backends for instance in backend.all_instances()]
    homes = {held for _, backend in efs_backends[ACCOUNT].items() for held in backend.file_systems_by_id}
    lustre = {held for _, backend in fsx_backends[ACCOUNT].items() for held in backend.file_systems}
    return Existing(
        vpcs=frozenset(vpc for backend in backends for vpc in backend.vpcs),
        instances=frozenset(one.id for one in instances if one.state not in _ENDED),
        listed=frozenset(one.id for one in instances),
        volumes=frozenset(volume for backend in backends for volume in backend.volumes),
        file_systems=frozenset(homes | lustre),
    )


def names_in(vpc_id: str) -> Mapping[str, list[str]]:
    """The addresses by name that machines of a VPC can look up: EC2's own names, and those of its private zones."""
    return {**_own_names(vpc_id), **_zone_names(vpc_id)}


def _own_names(vpc_id: str) -> Mapping[str, list[str]]:
    """`ip-10-64-1-11.ec2.internal` for every instance that has not ended.

    Source: EC2 User Guide, "EC2 instance hostnames and domains" (IP address names).
    """
    instances = (one for _, backend in list(ec2_backends[ACCOUNT].items()) for one in backend.all_instances())
    living = (one for one in instances if one.vpc_id == vpc_id and one.state not in _ENDED and one.private_ip)
    return {one.private_dns_name: [one.private_ip] for one in living}


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


def _volumes(backend: Any, instance: Any) -> Iterator[str]:
    root = instance.root_device_name
    return (held.volume_id for place, held in instance.block_device_mapping.items() if place != root)


def _devices(instance_type: str) -> Iterator[str]:
    """What a driver would make of the accelerators: /dev/nvidia0, /dev/neuron0."""
    facts = INSTANCE_TYPES[instance_type]
    for name, group, kind in (("nvidia", "GpuInfo", "Gpus"), ("neuron", "NeuronInfo", "NeuronDevices")):
        count = sum(row["Count"] for row in facts.get(group, {}).get(kind, ()))
        yield from (f"{name}{number}" for number in range(count))
