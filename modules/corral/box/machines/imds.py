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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from corral.model.partitions import partition_of

MetadataResponse = tuple[int, Mapping[str, str], bytes]
TOKEN_PATH = "latest/api/token"
_TTL_HEADER, _TOKEN_HEADER = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"
_MAX_TTL_S = 21_600  # six hours
_TREE = "latest/meta-data/"


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
    """One network interface of an instance. `address` is None for an EFA-only one."""

    mac: str
    interface_id: str
    subnet_id: str
    card: int
    device: int
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceMetadata:
    """The metadata of an instance. `interruption`, `rebalance`: the times of notices, or None.

    `tags` is None unless the launch enabled tags in metadata.
    """

    instance_id: str
    instance_type: str
    image_id: str
    account: str
    region: str
    zone_name: str
    zone_id: str
    address: str
    host_name: str
    launch_index: int
    lifecycle: str
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
    primary = one.interfaces[0]
    return {
        "ami-id": one.image_id,
        "ami-launch-index": str(one.launch_index),
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
        "services/domain": partition_of(one.region).dns_suffix,
        "spot/instance-action": _notice(one.interruption),
        "spot/termination-time": _time(one.interruption) if one.interruption else None,
        "events/recommendations/rebalance": json.dumps({"noticeTime": _time(one.rebalance)}) if one.rebalance else None,
        **{path: value for card in one.interfaces for path, value in _interface(card).items()},
        **{f"tags/instance/{key}": value for key, value in (one.tags or {}).items()},
        **(_security(one.credentials) if one.credentials else {}),
    }


def _interface(card: MetadataInterface) -> Mapping[str, str | None]:
    prefix = f"network/interfaces/macs/{card.mac}/"
    return {
        f"{prefix}device-number": str(card.device),
        f"{prefix}interface-id": card.interface_id,
        f"{prefix}local-ipv4s": card.address,
        f"{prefix}network-card": str(card.card) if card.card else None,
        f"{prefix}subnet-id": card.subnet_id,
    }


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


def _look_up(tree: Mapping[str, bytes], path: str) -> bytes | None:
    """The document at this path, or the names below it, one per line. A name with entries below ends in a slash.

    The two top levels have no slashes.
    """
    if path in tree:
        return tree[path]
    prefix = f"{path.rstrip('/')}/".lstrip("/")
    below = [name.removeprefix(prefix) for name in tree if name.startswith(prefix)]
    marks = prefix not in ("", "latest/")
    names = {part + slash * marks for part, slash, _ in (name.partition("/") for name in below)}
    return "\n".join(sorted(names)).encode() if names else None


def _plain(status: int, body: bytes = b"") -> MetadataResponse:
    return status, {"Content-Type": "text/plain"}, body
