"""Pulumi's property encoding: convert a protobuf Struct with its markers to plain Python and back.

Source of the markers: Pulumi SDK, sdk/proto/go and sdk/go/common/resource/properties.go, v3.259.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format, struct_pb2

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
ASSET = "c44067f5952c0a294b673a41bacd8c17"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# Unknowns by type; a provider may return the first one for all types.
UNKNOWNS = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # list
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """The properties as plain Python: secrets unwrapped, resource references as ids, whole numbers as int."""
    return {name: _plain(value) for name, value in struct.fields.items()}


def to_struct(properties: dict[str, Any]) -> struct_pb2.Struct:
    """The properties as a Struct."""
    struct = struct_pb2.Struct()
    json_format.ParseDict(properties, struct)
    return struct


def is_unknown(value: object) -> bool:
    """True if the value, or a part of it, is unknown."""
    if isinstance(value, dict):
        return any(is_unknown(part) for part in value.values())
    if isinstance(value, list | tuple):
        return any(is_unknown(part) for part in value)
    return isinstance(value, str) and value in UNKNOWNS


def _plain(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            return _unwrapped({name: _plain(part) for name, part in value.struct_value.fields.items()})
        case "list_value":
            return [_plain(part) for part in value.list_value.values]
        case "number_value":  # a Struct has only doubles, and botocore refuses 22.0 for an integer
            return int(value.number_value) if value.number_value.is_integer() else value.number_value
        case "string_value":
            return UNKNOWN if value.string_value in UNKNOWNS else value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None


def _unwrapped(record: dict[str, Any]) -> Any:
    match record.get(SIGNATURE):
        case signature if signature == SECRET:
            return record.get("value")
        case signature if signature == OUTPUT:
            return record.get("value", UNKNOWN)
        case signature if signature == RESOURCE:
            return record.get("id") or UNKNOWN
        case _:
            return record
