"""EC2's instance metadata service, version 2 of its protocol: what an instance is told about itself, by its address.

`documents` is pure: everything that one instance may read, by path. `Service` holds the tokens and answers requests.
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

Answer = tuple[int, Mapping[str, str], bytes]
TOKEN_PATH = "latest/api/token"
_LIFETIME, _TOKEN = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"
_LONGEST_LIFE_S = 21_600  # six hours
_TREE = "latest/meta-data/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A role's temporary credentials."""

    role: str
    access_key: str
    secret_key: str
    session_token: str
    expires: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One network interface of an instance. `address` is None for one that only speaks EFA."""

    mac: str
    interface_id: str
    subnet_id: str
    card: int
    device: int
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """An instance as its metadata tell it. `interruption`, `rebalance`: the times of notices, where there are any.

    `tags` is None where the launch did not ask for tags in metadata.
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
    life_cycle: str
    cards: tuple[Card, ...]
    tags: Mapping[str, str] | None
    user_data: bytes | None
    group_name: str | None = None
    credentials: Credentials | None = None
    interruption: datetime | None = None
    rebalance: datetime | None = None


@dataclass(slots=True)
class Service:
    """The service of all instances: it knows who asks by the address that asks, and holds the tokens given out."""

    find: Callable[[str], Described | None]
    clock: Callable[[], float] = time.monotonic
    _tokens: dict[str, tuple[str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)  # machines ask side by side

    def answer(self, caller: str, method: str, path: str, headers: Mapping[str, str]) -> Answer:
        """Status, headers and body for a request from this address. A document is only for who shows a token."""
        who, path = self.find(caller), path.lstrip("/")
        if who is None:
            return _plain(404)
        if method == "PUT":
            return self._give_token(who, path, headers)
        if method not in ("GET", "HEAD"):
            return _plain(405)
        if not self._is_known(headers.get(_TOKEN.lower(), ""), who):
            return _plain(401)
        found = _look_up(documents(who), path)
        return _plain(404) if found is None else _plain(200, found)

    def _give_token(self, who: Described, path: str, headers: Mapping[str, str]) -> Answer:
        if path != TOKEN_PATH:
            return _plain(405)
        if "x-forwarded-for" in headers:  # it came through a proxy, which is how thieves reach the service
            return _plain(403)
        life = headers.get(_LIFETIME.lower(), "")
        if not (life.isdecimal() and 1 <= int(life) <= _LONGEST_LIFE_S):
            return _plain(400)
        now, token = self.clock(), secrets.token_urlsafe(40)
        with self._lock:
            self._tokens = {given: held for given, held in self._tokens.items() if held[1] > now}
            self._tokens[token] = (who.instance_id, now + int(life))
        return 200, {"Content-Type": "text/plain", _LIFETIME: life}, token.encode()

    def _is_known(self, token: str, who: Described) -> bool:
        with self._lock:
            owner, expires = self._tokens.get(token, ("", 0.0))
        return owner == who.instance_id and expires > self.clock()


def documents(one: Described) -> Mapping[str, bytes]:
    """Everything that the instance may read, by path without the leading slash."""
    tree = {f"{_TREE}{path}": value for path, value in _about(one).items() if value is not None}
    texts = {**tree, "latest/dynamic/instance-identity/document": json.dumps(_identity(one), indent=2)}
    found = {path: text.encode() for path, text in texts.items()}
    return found if one.user_data is None else {**found, "latest/user-data": one.user_data}


def _about(one: Described) -> Mapping[str, str | None]:
    primary = one.cards[0]
    return {
        "ami-id": one.image_id,
        "ami-launch-index": str(one.launch_index),
        "instance-id": one.instance_id,
        "instance-life-cycle": one.life_cycle,
        "instance-type": one.instance_type,
        "hostname": one.host_name,
        "local-hostname": one.host_name,
        "local-ipv4": one.address,
        "mac": primary.mac,
        "placement/availability-zone": one.zone_name,
        "placement/availability-zone-id": one.zone_id,
        "placement/group-name": one.group_name,
        "placement/region": one.region,
        "services/domain": "amazonaws.com",
        "spot/instance-action": _notice(one.interruption),
        "spot/termination-time": _time(one.interruption) if one.interruption else None,
        "events/recommendations/rebalance": json.dumps({"noticeTime": _time(one.rebalance)}) if one.rebalance else None,
        **{path: value for card in one.cards for path, value in _interface(card).items()},
        **{f"tags/instance/{key}": value for key, value in (one.tags or {}).items()},
        **(_security(one.credentials) if one.credentials else {}),
    }


def _interface(card: Card) -> Mapping[str, str | None]:
    place = f"network/interfaces/macs/{card.mac}/"
    return {
        f"{place}device-number": str(card.device),
        f"{place}interface-id": card.interface_id,
        f"{place}local-ipv4s": card.address,
        f"{place}network-card": str(card.card) if card.card else None,
        f"{place}subnet-id": card.subnet_id,
    }


def _security(held: Credentials) -> Mapping[str, str]:
    document = {
        "Code": "Success",
        "Type": "AWS-HMAC",
        "AccessKeyId": held.access_key,
        "SecretAccessKey": held.secret_key,
        "Token": held.session_token,
        "Expiration": _time(held.expires),
    }
    return {f"iam/security-credentials/{held.role}": json.dumps(document, indent=2)}


def _identity(one: Described) -> Mapping[str, Any]:
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
    """The document at this path, or the list of what is below it: one name a line, with a slash where there is more.

    The two upper lists have no slashes.
    """
    if path in tree:
        return tree[path]
    prefix = f"{path.rstrip('/')}/".lstrip("/")
    below = [name.removeprefix(prefix) for name in tree if name.startswith(prefix)]
    marks = prefix not in ("", "latest/")
    names = {part + slash * marks for part, slash, _ in (name.partition("/") for name in below)}
    return "\n".join(sorted(names)).encode() if names else None


def _plain(status: int, body: bytes = b"") -> Answer:
    return status, {"Content-Type": "text/plain"}, body
