"""Address and network fields: parsing and JSON Schema."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

# Source: RFC 1918, and RFC 6598 for what providers use.
PRIVATE_NETWORKS = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))


def parse_address(value: Any) -> IPv4Address:
    """Return the address in this text. Raises PydanticCustomError for anything else."""
    try:
        return IPv4Address(_text(value))
    except ValueError:
        raise PydanticCustomError("ip_v4_address", "not an address") from None


def parse_network(value: Any) -> IPv4Network:
    """Return the network in this text; its host bits must be zero. Raises PydanticCustomError for anything else."""
    try:
        return IPv4Network(_text(value))
    except ValueError:
        raise PydanticCustomError("ip_v4_network", "not a network") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("addresses are text")
    return value


Address = Annotated[IPv4Address, PlainValidator(parse_address), WithJsonSchema({"type": "string", "format": "ipv4"})]
Network = Annotated[
    IPv4Network,
    PlainValidator(parse_network),
    WithJsonSchema(
        {"type": "string", "pattern": r"^\d+\.\d+\.\d+\.\d+/\d+$", "examples": ["10.64.0.0/16", "172.31.128.0/20"]}
    ),
]
