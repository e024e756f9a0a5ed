"""What an aws-like box does not find yet because it was just created: which calls name it, and their errors.

Sources: EC2 developer guide, "Eventual consistency in the Amazon EC2 API"; IAM user guide, "Troubleshoot IAM"; KMS
developer guide, "AWS KMS eventual consistency". terraform-provider-aws waits for each of these kinds after its creation
(internal/service/ec2/wait.go, iam/role.go, iam/instance_profile.go, kms/key.go). Launches have rules of their own
(`ec2.launch`), lists and other services find everything. Hold the cloud's lock.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from corral.box.api_calls import Call
from corral.box.api_errors import ApiError
from corral.box.delays import NEW_RESOURCE, is_aws_like, seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKind:
    """A kind of resource. `name`: finds its name or id in the answer to its creation, or in the request if
    `in_request`; then the error of other calls.
    """

    name: str
    code: str
    text: str
    status: int = 400
    in_request: bool = False


_KINDS: Mapping[tuple[str, str], NewKind] = {
    ("ec2", "AllocateAddress"): NewKind(
        name=r"\b(eipalloc-\w+)", code="InvalidAllocationID.NotFound", text="The allocation ID '{}' does not exist"
    ),
    ("ec2", "CreateInternetGateway"): NewKind(
        name=r"\b(igw-\w+)",
        code="InvalidInternetGatewayID.NotFound",
        text="The internetGateway ID '{}' does not exist",
    ),
    ("ec2", "CreateNetworkInterface"): NewKind(
        name=r"\b(eni-\w+)",
        code="InvalidNetworkInterfaceID.NotFound",
        text="The networkInterface ID '{}' does not exist",
    ),
    ("ec2", "CreateRouteTable"): NewKind(
        name=r"\b(rtb-\w+)", code="InvalidRouteTableID.NotFound", text="The routeTable ID '{}' does not exist"
    ),
    ("ec2", "CreateSecurityGroup"): NewKind(
        name=r"\b(sg-\w+)", code="InvalidGroup.NotFound", text="The security group '{}' does not exist"
    ),
    ("ec2", "CreateSubnet"): NewKind(
        name=r"\b(subnet-\w+)", code="InvalidSubnetID.NotFound", text="The subnet ID '{}' does not exist"
    ),
    ("ec2", "CreateVolume"): NewKind(
        name=r"\b(vol-\w+)", code="InvalidVolume.NotFound", text="The volume '{}' does not exist."
    ),
    ("ec2", "CreateVpc"): NewKind(
        name=r"\b(vpc-\w+)", code="InvalidVpcID.NotFound", text="The vpc ID '{}' does not exist"
    ),
    ("iam", "CreateInstanceProfile"): NewKind(
        name=r"<InstanceProfileName>([^<]+)<",
        code="NoSuchEntity",
        text="Instance Profile {} cannot be found.",
        status=404,
    ),
    ("iam", "CreateRole"): NewKind(
        name=r"<RoleName>([^<]+)<", code="NoSuchEntity", text="The role with name {} cannot be found.", status=404
    ),
    ("kms", "CreateAlias"): NewKind(
        name=r'"AliasName": ?"(alias/[^"]+)"',
        code="NotFoundException",
        text="Alias {} is not found.",
        in_request=True,
    ),
    ("kms", "CreateKey"): NewKind(
        name=r'"KeyId": ?"([^"]+)"', code="NotFoundException", text="Key '{}' does not exist"
    ),
}
_FILTER = "Filter."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResource:
    """A resource that was created at this time, in seconds since the epoch."""

    kind: NewKind
    action: str
    at: float


class NewResources:
    """The resources that were created a short time ago, by service, region and name."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str, str], NewResource] = {}

    def check(self, call: Call, body: bytes) -> None:
        """Raises ApiError if the call names a resource that AWS would not find yet."""
        if not is_aws_like():
            return
        oldest = time.time() - seconds(NEW_RESOURCE)
        self._held = {name: held for name, held in self._held.items() if held.at > oldest}
        for name in _names(call, body) if self._held else ():
            held = self._held.get((call.service, call.region, name))
            if held and held.action != call.action:
                raise ApiError(held.kind.code, held.kind.text.format(name), held.kind.status)

    def add(self, call: Call, body: bytes, answer: bytes) -> None:
        """Note what a call with this body has created."""
        kind = _KINDS.get((call.service, call.action))
        if kind and is_aws_like():
            text = (body if kind.in_request else answer).decode("utf-8", "replace")
            if found := re.search(kind.name, text):
                self._held[call.service, call.region, found[1]] = NewResource(
                    kind=kind, action=call.action, at=time.time()
                )


def _names(call: Call, body: bytes) -> Iterator[str]:
    """The values of a call that may be names, without those of filters, which find nothing instead of failing."""
    text = body.decode("utf-8", "replace")
    if call.service == "kms":
        fields = json.loads(text or "{}")
        for value in fields.values():
            if isinstance(value, str):
                yield from (value.rpartition("/")[2], value.rpartition(":")[2])  # of a key, of an alias
    else:
        yield from (value for name, value in parse_qsl(text) if not name.startswith(_FILTER))
