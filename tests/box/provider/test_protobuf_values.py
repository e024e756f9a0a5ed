"""Pulumi's property encoding."""

from __future__ import annotations

from corral.box.provider.protobuf_values import (
    OUTPUT,
    RESOURCE,
    SECRET,
    SIGNATURE,
    UNKNOWN,
    from_struct,
    is_unknown,
    to_struct,
)


def test_a_whole_number_comes_back_as_an_integer() -> None:
    read = from_struct(to_struct({"port": 22, "threshold": 0.5}))
    assert (repr(read["port"]), repr(read["threshold"])) == ("22", "0.5")


def test_a_secret_is_unwrapped_at_any_depth() -> None:
    wrapped = {"tags": {"key": {SIGNATURE: SECRET, "value": ["s3cret"]}}}
    assert from_struct(to_struct(wrapped)) == {"tags": {"key": ["s3cret"]}}


def test_a_resource_reference_becomes_its_id() -> None:
    assert from_struct(to_struct({"vpcId": {SIGNATURE: RESOURCE, "urn": "u", "id": "vpc-1"}})) == {"vpcId": "vpc-1"}


def test_an_output_without_a_value_is_unknown() -> None:
    assert from_struct(to_struct({"vpcId": {SIGNATURE: OUTPUT}})) == {"vpcId": UNKNOWN}


def test_an_unknown_number_is_unknown() -> None:
    number = "3eeb2bf0-c639-47a8-9e75-3b44932eb421"
    assert from_struct(to_struct({"size": number})) == {"size": UNKNOWN}


def test_a_list_with_an_unknown_part_is_unknown() -> None:
    assert is_unknown({"groups": ["sg-1", UNKNOWN]})


def test_null_stays_null() -> None:
    assert from_struct(to_struct({"tags": None})) == {"tags": None}
