"""How answers of AWS are held against botocore's service model (answer_shapes.py)."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.model import Shape
from botocore.session import get_session

from answer_shapes import Answer, checked, differences, unknown_members


def output(service: str, operation: str) -> Any:
    return get_session().get_service_model(service).operation_model(operation).output_shape


def vpcs(*vpcs: object) -> tuple[Shape, dict[str, Any]]:
    return output("ec2", "DescribeVpcs"), {"Vpcs": list(vpcs)}


def test_an_answer_of_the_model_has_no_differences() -> None:
    assert list(differences(*vpcs({"VpcId": "vpc-1", "State": "available", "IsDefault": False}))) == []


@pytest.mark.parametrize(
    ("vpc", "difference"),
    [
        ({"VpcId": 1}, "DescribeVpcsResult.Vpcs[].VpcId is int, not string"),
        ({"IsDefault": "true"}, "DescribeVpcsResult.Vpcs[].IsDefault is str, not boolean"),
        ({"Tags": {}}, "DescribeVpcsResult.Vpcs[].Tags is dict, not list"),
        ({"State": "gone"}, "DescribeVpcsResult.Vpcs[].State is 'gone', which VpcState lacks"),
    ],
)
def test_a_type_or_value_that_the_model_lacks_is_a_difference(vpc: dict[str, Any], difference: str) -> None:
    assert list(differences(*vpcs(vpc))) == [difference]


def test_a_true_is_no_number() -> None:
    shape = output("ec2", "DescribeCapacityReservations")
    answer = {"CapacityReservations": [{"TotalInstanceCount": True}]}
    path = "DescribeCapacityReservationsResult.CapacityReservations[].TotalInstanceCount"
    assert list(differences(shape, answer)) == [f"{path} is bool, not integer"]


def test_a_missing_member_that_the_model_requires_is_a_difference() -> None:
    assert list(differences(output("kms", "DescribeKey"), {"KeyMetadata": {}})) == [
        "DescribeKeyResponse.KeyMetadata lacks KeyId"
    ]


def test_names_on_the_wire_are_compared_with_the_wires_names() -> None:
    shape = output("ec2", "DescribeVpcs").members["Vpcs"].member
    assert unknown_members(shape, ["vpcId", "VpcId", "tagSet"]) == ["Vpc has no VpcId"]


def read_as(module: str, expression: str, answer: Answer) -> object:
    """What the expression reads from the answer, in a module of this name."""
    return eval(expression, {"__name__": module, "answer": answer})


@pytest.mark.parametrize("expression", ["answer.get('Vpc')", "'Vpc' in answer"])
def test_a_read_of_an_unknown_member_by_corral_is_reported(expression: str) -> None:
    reads: list[str] = []
    shape, answer = vpcs()
    read_as("corral.inventory.scan", expression, checked(shape, answer, reads))
    assert reads == ["DescribeVpcsResult has no Vpc, which corral.inventory.scan reads in line 1"]


@pytest.mark.parametrize(
    ("module", "expression"),
    [("corral.inventory.scan", "answer['Vpcs'][0].get('VpcId')"), ("botocore.paginate", "answer.get('Marker')")],
)
def test_a_read_of_a_member_and_a_read_by_others_are_not_reported(module: str, expression: str) -> None:
    reads: list[str] = []
    shape, answer = vpcs({"VpcId": "vpc-1"})
    read_as(module, expression, checked(shape, answer, reads))
    assert reads == []
