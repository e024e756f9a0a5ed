"""Hold answers of AWS against botocore's service model: what a server answers, and what corral reads from an answer.

botocore validates requests itself, and ignores what an answer has beyond the model. `watch_answers` hooks into
botocore's parsers for a whole test run, so that each answer that a test receives in its own process is compared; reads
of fakes and in other processes are not (tests/test_aws_calls.py reads the source of those).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from botocore import parsers
from botocore.model import Shape

# What the answers since the last test, or corral's reads of them, have that botocore's model lacks.
DEPARTURES: list[str] = []
# Python's types of the values that botocore makes from each type of the model.
TYPES: Mapping[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "character": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (float, int),
    "double": (float, int),
    "boolean": (bool,),
    "timestamp": (datetime,),
}
# Parts of any answer, beside the members of its shape.
ENVELOPE = frozenset({"ResponseMetadata", "requestId", "RequestId", "__type", "message"})
# What is allowed beyond the model, and why.
BEYOND: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "FileSystemDescription has no FileSystemPolicy",
            "FileSystemDescription has no LifecyclePolicies",
            "MountTargetDescription has no SecurityGroups",
        ),
        "moto adds them; every SDK ignores what its model lacks",
    ),
    **dict.fromkeys(
        (
            "CreateVpcEndpointResult.VpcEndpoint.State is 'available', which State lacks",
            "DescribeVpcEndpointsResult.VpcEndpoints[].State is 'available', which State lacks",
        ),
        "AWS answers in lower case (PrivateLink guide; terraform-provider-aws, ec2/enum.go); the model has 'Available'",
    ),
    "DescribeNetworkInterfacesResult.NetworkInterfaces[].InterfaceType is 'nat_gateway', "
    "which NetworkInterfaceType lacks": (
        "EC2 API, DescribeNetworkInterfaces, filter interface-type: nat_gateway; the model has 'natGateway'"
    ),
    "DescribeInternetGatewaysResult.InternetGateways[].Attachments[].State is 'available', "
    "which AttachmentStatus lacks": ("EC2 API, InternetGatewayAttachment: the state of an attached one"),
    **dict.fromkeys(
        (
            "DescribeImagesResult.Images[].Platform is 'windows', which PlatformValues lacks",
            "DescribeInstancesResult.Reservations[].Instances[].Platform is 'windows', which PlatformValues lacks",
            "Reservation.Instances[].Platform is 'windows', which PlatformValues lacks",
        ),
        "AWS answers in lower case (EC2 API, DescribeInstances, filter platform); the model has 'Windows'",
    ),
    "DescribeImagesResult.Images[].Platform is 'Linux/UNIX', which PlatformValues lacks": "moto's own images",
    "ListGrantsResponse has no GrantCount": "moto adds it",
    "ListHostedZonesResponse lacks Marker": "the first page of a list follows no marker",
    "CreateHostedZoneResponse lacks DelegationSet": "a private zone has no name servers of its own",
}
# Modules that read the fields of many kinds in one function, of which each kind has some. test_aws_calls compares all
# of the inventory's; those of the stand-in are held against the provider's schema, which has arguments no answer has.
SHARED_READERS = ("corral.inventory.ec2_resources", "corral.box.provider.property_conversion")


class Answer(dict[str, Any]):
    """A structure of an answer; `reads` gets a line for each member that corral reads and that its shape lacks."""

    shape: Shape
    reads: list[str]

    def __getitem__(self, key: str) -> Any:
        self._check(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of the member."""
        self._check(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._check(key)
        return super().__contains__(key)

    def _check(self, key: object) -> None:
        reader = sys._getframe(2)
        if key in self.shape.members or key in ENVELOPE:
            return
        module = str(reader.f_globals.get("__name__"))
        if module.startswith("corral.") and module not in SHARED_READERS:
            self.reads.append(f"{self.shape.name} has no {key}, which {module} reads in line {reader.f_lineno}")


def checked(shape: Shape, value: Any, reads: list[str]) -> Any:
    """The answer, with structures that report reads of unknown members."""
    if isinstance(value, list) and shape.type_name == "list":
        return [checked(shape.member, one, reads) for one in value]
    if not isinstance(value, dict) or type(value) is Answer:
        return value
    if shape.type_name == "map":
        return {key: checked(shape.value, one, reads) for key, one in value.items()}
    if shape.type_name != "structure" or shape.is_document_type:
        return value
    answer = Answer(
        {key: checked(shape.members[key], one, reads) if key in shape.members else one for key, one in value.items()}
    )
    answer.shape, answer.reads = shape, reads
    return answer


def differences(shape: Shape, value: Any, path: str = "") -> Iterator[str]:
    """One line for each part of a parsed answer that its shape does not allow: a type, a value, a missing member."""
    wanted = TYPES.get(shape.type_name, (object,))
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted and object not in wanted):
        yield f"{path or shape.name} is {type(value).__name__}, not {shape.type_name}"
    elif shape.type_name == "list":
        for one in value:
            yield from differences(shape.member, one, f"{path}[]")
    elif shape.type_name == "map":
        for one in value.values():
            yield from differences(shape.value, one, f"{path}{{}}")
    elif shape.type_name == "structure":
        yield from (f"{path or shape.name} lacks {name}" for name in shape.required_members if name not in value)
        for name, one in value.items():
            if name in shape.members:
                yield from differences(shape.members[name], one, f"{path}.{name}" if path else f"{shape.name}.{name}")
    elif shape.type_name == "string" and shape.enum and value not in shape.enum:
        yield f"{path} is {value!r}, which {shape.name} lacks"


def unknown_members(shape: Shape, names: Iterable[str]) -> list[str]:
    """One line for each of these names on the wire that the shape lacks."""
    whole = shape._shape_resolver.get_shape_by_name(shape.name)  # corral's agent cuts the shapes of one of its clients
    known = {_wire_name(name, member) for name, member in whole.members.items()} | ENVELOPE
    return sorted(f"{shape.name} has no {name}" for name in set(names) - known)


def _wire_name(name: str, member: Shape) -> str:
    if member.type_name == "list" and member.serialization.get("flattened"):
        name = member.serialization.get("name") or name
        return str(member.member.serialization.get("name", name))
    return str(member.serialization.get("name", name))


def watch_answers(found: list[str]) -> None:
    """Append to the list what every later answer in this process departs by. For the rest of the process."""
    _watch_structures(parsers.BaseXMLResponseParser, found)
    _watch_structures(parsers.BaseJSONParser, found)
    _watch_structures(parsers.BaseRpcV2Parser, found)
    parse = parsers.ResponseParser.parse

    def compared(self: Any, response: Mapping[str, Any], shape: Any) -> Any:
        answer = parse(self, response, shape)
        if response["status_code"] >= 301 or shape is None or not isinstance(answer, dict):
            return answer
        found.extend(line for line in differences(shape, answer) if line not in BEYOND)
        return checked(shape, answer, found)

    parsers.ResponseParser.parse = compared  # type: ignore[method-assign]


def _watch_structures(parser: Any, found: list[str]) -> None:
    handle = parser._handle_structure

    def compared(self: Any, shape: Any, value: Any) -> Any:
        if value is not None and not shape.is_document_type and not shape.metadata.get("exception"):
            names = self._build_name_to_xml_node(value) if hasattr(self, "_build_name_to_xml_node") else value
            found.extend(line for line in unknown_members(shape, names) if line not in BEYOND)
        return handle(self, shape, value)

    parser._handle_structure = compared
