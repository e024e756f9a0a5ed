"""EC2's instance metadata service, version 2.

`metadata_documents` is pure: all documents of an instance, by path. `MetadataService` holds the tokens and answers
requests.
Source: EC2 User Guide, "Use the Instance Metadata Service to access instance metadata" and "Instance metadata
categories"; "Spot Instance interruption notices"; "EC2 instance rebalance recommendations".
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Network
from typing import Any

from corral.model.partitions import partition_of

MetadataResponse = tuple[int, Mapping[str, str], bytes]
TOKEN_PATH = "latest/api/token"
_TTL_HEADER, _TOKEN_HEADER = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"
_MAX_TTL_S = 21_600  # six hours
_LATEST = "latest"
_TREE = f"{_LATEST}/meta-data/"
# Source: listings of EC2's service from 2024 and later in public repositories.
_VERSIONS = (
    *("1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01"),
    *("2009-04-04", "2011-01-01", "2011-05-01", "2012-01-12", "2014-02-25", "2014-11-05", "2015-10-20", "2016-04-19"),
    *("2016-06-30", "2016-09-02", "2018-03-28", "2018-08-17", "2018-09-24", "2019-10-01", "2020-10-27", "2021-01-03"),
    *("2021-03-23", "2021-07-15", "2022-07-09", "2022-09-24", "2024-04-11", _LATEST),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleCredentials:
    """A role's temporary credentials."""

    role: str
    access_key: str
    secret_key: str
    session_token: str
    expires: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataInterface:
    """One network interface of an instance. `address` is None for an EFA-only one. `groups`: names by id."""

    mac: str
    interface_id: str
    subnet_id: str
    subnet_network: IPv4Network
    groups: Mapping[str, str]
    card: int
    device: int
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceMetadata:
    """The metadata of an instance. `interruption`, `rebalance`: the times of notices, or None.

    `host_name`: with its domain. `interfaces`: the primary one first. `vpc_networks`: the VPC's own range first.
    `tags` is None unless the launch enabled tags in metadata.
    """

    instance_id: str
    instance_type: str
    image_id: str
    reservation_id: str
    account: str
    region: str
    zone_name: str
    zone_id: str
    vpc_id: str
    vpc_networks: tuple[IPv4Network, ...]
    address: str
    host_name: str
    launch_index: int
    lifecycle: str
    virtualization: str
    root_device: str
    interfaces: tuple[MetadataInterface, ...]
    tags: Mapping[str, str] | None
    user_data: bytes | None
    group_name: str | None = None
    credentials: RoleCredentials | None = None
    interruption: datetime | None = None
    rebalance: datetime | None = None


@dataclass(slots=True)
class MetadataService:
    """The service of all instances: it identifies callers by their address and holds the issued tokens."""

    find: Callable[[str], InstanceMetadata | None]
    clock: Callable[[], float] = time.monotonic
    _tokens: dict[str, tuple[str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)  # machines call concurrently

    def answer(self, caller: str, method: str, path: str, headers: Mapping[str, str]) -> MetadataResponse:
        """Status, headers and body for a request from this address. Documents need a token."""
        who, path = self.find(caller), path.lstrip("/")
        if who is None:
            return _plain(404)
        if method == "PUT":
            return self._issue_token(who, path, headers)
        if method not in ("GET", "HEAD"):
            return _plain(405)
        if not self._is_known(headers.get(_TOKEN_HEADER.lower(), ""), who):
            return _plain(401)
        found = _look_up(metadata_documents(who), path)
        return _plain(404) if found is None else _plain(200, found)

    def _issue_token(self, who: InstanceMetadata, path: str, headers: Mapping[str, str]) -> MetadataResponse:
        if path != TOKEN_PATH:
            return _plain(405)
        if "x-forwarded-for" in headers:  # through a proxy, as in SSRF attacks
            return _plain(403)
        ttl = headers.get(_TTL_HEADER.lower(), "")
        if not (ttl.isdecimal() and 1 <= int(ttl) <= _MAX_TTL_S):
            return _plain(400)
        now, token = self.clock(), secrets.token_urlsafe(40)
        with self._lock:
            self._tokens = {given: held for given, held in self._tokens.items() if held[1] > now}
            self._tokens[token] = (who.instance_id, now + int(ttl))
        return 200, {"Content-Type": "text/plain", _TTL_HEADER: ttl}, token.encode()

    def _is_known(self, token: str, who: InstanceMetadata) -> bool:
        with self._lock:
            owner, expires = self._tokens.get(token, ("", 0.0))
        return owner == who.instance_id and expires > self.clock()


def metadata_documents(one: InstanceMetadata) -> Mapping[str, bytes]:
    """All documents of the instance, by path without the leading slash."""
    tree = {f"{_TREE}{path}": value for path, value in _about(one).items() if value is not None}
    texts = {**tree, "latest/dynamic/instance-identity/document": json.dumps(_identity(one), indent=2)}
    found = {path: text.encode() for path, text in texts.items()}
    return found if one.user_data is None else {**found, "latest/user-data": one.user_data}


def _about(one: InstanceMetadata) -> Mapping[str, str | None]:
    primary, partition = one.interfaces[0], partition_of(one.region)
    return {
        "ami-id": one.image_id,
        "ami-launch-index": str(one.launch_index),
        "ami-manifest-path": "(unknown)",  # as of every image on EBS
        "block-device-mapping/ami": one.root_device,
        "block-device-mapping/root": one.root_device,
        "instance-action": "none",  # no reboot for bundling is due
        "instance-id": one.instance_id,
        "instance-life-cycle": one.lifecycle,
        "instance-type": one.instance_type,
        "hostname": one.host_name,
        "local-hostname": one.host_name,
        "local-ipv4": one.address,
        "mac": primary.mac,
        "placement/availability-zone": one.zone_name,
        "placement/availability-zone-id": one.zone_id,
        "placement/group-name": one.group_name,
        "placement/region": one.region,
        "profile": f"default-{one.virtualization}",
        "reservation-id": one.reservation_id,
        "security-groups": _lines(primary.groups.values()),
        "services/domain": partition.dns_suffix,
        "services/partition": partition.name,
        "spot/instance-action": _notice(one.interruption),
        "spot/termination-time": _time(one.interruption) if one.interruption else None,
        "events/recommendations/rebalance": json.dumps({"noticeTime": _time(one.rebalance)}) if one.rebalance else None,
        **{path: value for card in one.interfaces for path, value in _interface(one, card).items()},
        **{f"tags/instance/{key}": value for key, value in (one.tags or {}).items()},
        **(_security(one.credentials) if one.credentials else {}),
    }


def _interface(one: InstanceMetadata, card: MetadataInterface) -> Mapping[str, str | None]:
    """The documents of an interface. All have their network card: cloud-init sorts one without it behind the others."""
    found = {
        "device-number": str(card.device),
        "interface-id": card.interface_id,
        "local-hostname": _host_name(card.address, one.host_name) if card.address else None,
        "local-ipv4s": card.address,
        "mac": card.mac,
        "network-card": str(card.card),
        "owner-id": one.account,
        "security-group-ids": _lines(card.groups),
        "security-groups": _lines(card.groups.values()),
        "subnet-id": card.subnet_id,
        "subnet-ipv4-cidr-block": str(card.subnet_network),
        "vpc-id": one.vpc_id,
        "vpc-ipv4-cidr-block": str(one.vpc_networks[0]),
        "vpc-ipv4-cidr-blocks": _lines(map(str, one.vpc_networks)),
    }
    return {f"network/interfaces/macs/{card.mac}/{path}": value for path, value in found.items()}


def _host_name(address: str, primary: str) -> str:
    """The host name of an address, in the domain of the primary address's name."""
    return f"ip-{address.replace('.', '-')}.{primary.partition('.')[2]}"


def _security(held: RoleCredentials) -> Mapping[str, str]:
    document = {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "AccessKeyId": held.access_key,
        "SecretAccessKey": held.secret_key,
        "Token": held.session_token,
        "Expiration": _time(held.expires),
    }
    return {f"iam/security-credentials/{held.role}": json.dumps(document, indent=2)}


def _identity(one: InstanceMetadata) -> Mapping[str, Any]:
    return {
        "accountId": one.account,
        "architecture": "x86_64",
        "availabilityZone": one.zone_name,
        "imageId": one.image_id,
        "instanceId": one.instance_id,
        "instanceType": one.instance_type,
        "privateIp": one.address,
        "region": one.region,
    }


def _notice(at: datetime | None) -> str | None:
    return json.dumps({"action": "terminate", "time": _time(at)}) if at else None


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _lines(values: Iterable[str]) -> str:
    return "\n".join(values)


def _look_up(tree: Mapping[str, bytes], path: str) -> bytes | None:
    """The document at this path, or the names below it, one per line. A name with entries below ends in a slash.

    The names of versions, and those at the top of a version, have no slashes.
    """
    version, _, rest = path.partition("/")
    if not path:
        return _lines(_VERSIONS).encode()
    if version not in _VERSIONS:
        return None
    path = f"{_LATEST}/{rest}"
    if path in tree:
        return tree[path]
    prefix = f"{path.rstrip('/')}/"
    below = [name.removeprefix(prefix) for name in tree if name.startswith(prefix)]
    marks = prefix != f"{_LATEST}/"
    names = {part + slash * marks for part, slash, _ in (name.partition("/") for name in below)}
    return _lines(sorted(names)).encode() if names else None


def _plain(status: int, body: bytes = b"") -> MetadataResponse:
    return status, {"Content-Type": "text/plain"}, body
