"""EC2 as the box has it: moto's backend and actions, with the parts of the box in front of them."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import re
import time
from functools import cache
from typing import Any

import moto.ec2.urls
from botocore.loaders import Loader
from moto.core.responses import ActionResult
from moto.core.utils import get_service_model, utcnow
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response
from moto.ec2.utils import (
    EC2_PREFIX_TO_RESOURCE,
    EC2_RESOURCE_TO_PREFIX,
    filter_dict_attribute_mapping,
    passes_filter_dict,
)

from corral.box.ec2_blocks import BlockActions, CapacityBlocks
from corral.box.ec2_console import ConsoleActions
from corral.box.ec2_images import Images
from corral.box.ec2_instances import Instances
from corral.box.ec2_interfaces import InterfaceActions, Interfaces
from corral.box.ec2_launch import check_tag_length, plan_launch
from corral.box.ec2_lookups import Lookups
from corral.box.ec2_network import Network
from corral.box.ec2_offerings import OfferingActions
from corral.box.ec2_placement import PlacementGroupActions, PlacementGroups
from corral.box.ec2_rates import charge_request
from corral.box.ec2_reservation_actions import ReservationActions
from corral.box.ec2_reservations import CapacityReservations
from corral.box.ec2_spot import SpotActions
from corral.box.ec2_subnets import SubnetActions, Subnets
from corral.box.ec2_templates import TemplateActions
from corral.box.ec2_topology import TopologyActions
from corral.box.ec2_volumes import Volumes
from corral.box.ec2_wished_ids import wished_id
from corral.box.ec2_zones import ZoneActions
from corral.box.refusals import Refused
from corral.box.tagging import TaggedEC2

INSTANCE_FILTERS = {
    "placement-group-name": "placement.group_name",
    "instance-lifecycle": "lifecycle",
    "client-token": "client_token",
    "iam-instance-profile.arn": "iam_instance_profile.Arn",
    "launch-index": "ami_launch_index",
    "network-interface.network-interface-id": "network_interface_ids",
    "capacity-reservation-id": "capacity_reservation_id",
}
PREFIXES = {"placement-group": "pg", "capacity-reservation": "cr", "capacity-block": "cb"}  # of ids, beyond moto's
TOKEN_LENGTH = 64  # ASCII characters (EC2 API reference, ensuring idempotency)
NAMING = ("InstanceId", "ResourceId")  # parameters that name instances which exist
TAG_PART = re.compile(r"^(?:TagSpecification\.\d+\.)?Tag\.\d+\.(Key|Value)$")
PAGE = 1000  # instances, the largest page of DescribeInstances


class BoxEC2(
    CapacityReservations,
    CapacityBlocks,
    TaggedEC2,
    PlacementGroups,
    Lookups,
    Instances,
    Interfaces,
    Subnets,
    Volumes,
    Network,
    Images,
    EC2Backend,
):
    """The EC2 of one account and region."""

    _url_module = moto.ec2.urls

    def __init__(self, region_name: str, account_id: str) -> None:
        self.placement_groups = {}
        self.launches = {}
        self.instances_by_id = {}
        self.capacity_reservations = {}
        self.reservation_tokens = {}
        self.capacity_blocks = {}
        self.block_offerings = {}
        self.sold_offerings = set()
        super().__init__(region_name, account_id)


class BoxEC2Response(
    ReservationActions,
    BlockActions,
    ZoneActions,
    PlacementGroupActions,
    InterfaceActions,
    SubnetActions,
    TemplateActions,
    ConsoleActions,
    TopologyActions,
    OfferingActions,
    SpotActions,
    EC2Response,
):
    """The actions of EC2."""

    def call_action(self) -> Any:
        """The answer to a call whose parameters and filters AWS knows."""
        try:
            self._check_parameters()
            charge_request(self.ec2_backend, self._get_action(), self.querystring, time.time())
            self._check_visible()
            with wished_id(self._get_action(), self.params, self._known_ids):
                return super().call_action()
        except Refused as refused:
            return self.serialized(ActionResult(refused))

    def serialized(self, action_result: Any) -> Any:
        """An answer on the wire; an error may have a status of its own."""
        status, headers, body = super().serialized(action_result)
        result = action_result.result
        own = result.status if isinstance(result, Refused) else None
        return own or status, headers, body

    def _known_ids(self) -> set[str]:
        backend = self.ec2_backend
        subnets = (id for zone in backend.subnets.values() for id in zone)
        return {*backend.vpcs, *subnets, *backend.capacity_reservations}

    def run_instances(self) -> ActionResult:
        """RunInstances; the same client token gives the same instances."""
        backend, request = self.ec2_backend, dict(self.params)
        token = request.get("ClientToken")
        if token:
            if len(token) > TOKEN_LENGTH or not token.isascii():
                raise Refused(
                    "InvalidParameterValue", f"Invalid value for ClientToken: more than {TOKEN_LENGTH} ASCII."
                )
            if known := backend.launches.get(token):
                return self._repeated(request, *known)
        launch = plan_launch(backend, request)
        self.error_on_dryrun()
        reservation = backend.launch(launch)
        if token:
            backend.launches[token] = (_fingerprint(request), reservation)
        return ActionResult(reservation)

    def describe_instances(self) -> ActionResult:
        """DescribeInstances, in pages of instances."""
        backend, ids, limit = self.ec2_backend, self._get_param("InstanceIds", []), self._get_param("MaxResults")
        if ids and limit:
            raise Refused("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter"
                          " maxResults")  # fmt: skip
        backend.forget_ended(utcnow())
        filters = self._filters_from_querystring()
        wanted = set(backend.get_multi_instances_by_id(ids)) if ids else None
        found = [
            (reservation, instance)
            for reservation in backend.reservations.values()
            for instance in reservation.instances
            if (wanted is None or instance in wanted) and instance.is_visible and passes_filter_dict(instance, filters)
        ]
        start = int(self._get_param("NextToken") or 0)
        end = start + min(int(limit or PAGE), PAGE)
        reservations = _regrouped(found[start:end])
        return ActionResult({"Reservations": reservations, "NextToken": str(end) if end < len(found) else None})

    def _repeated(self, request: dict[str, Any], fingerprint: str, reservation: Any) -> ActionResult:
        if fingerprint != _fingerprint(request):
            raise Refused("IdempotentParameterMismatch", "The request uses the same client token as a previous, but"
                          " non-identical request.")  # fmt: skip
        return ActionResult(reservation)

    def _check_visible(self) -> None:
        """Raises Refused where the call names an instance that EC2 does not show yet."""
        hidden = self.ec2_backend.hidden_instances()
        for given, values in self.querystring.items() if hidden else ():
            for id in hidden.intersection(values) if given.partition(".")[0] in NAMING else ():
                raise Refused("InvalidInstanceID.NotFound", f"The instance ID '{id}' does not exist")

    def _check_parameters(self) -> None:
        action = self._get_action()
        members = _members(action)
        for given, values in self.querystring.items():
            name = given.partition(".")[0]
            if members and name not in members and name not in ("Action", "Version"):
                raise Refused("UnknownParameter", f"The parameter {name} is not recognized")
            if part := TAG_PART.search(given):
                check_tag_length(part[1], values[0])
        for name in self._filters_from_querystring():
            if not _is_filter(action, name):
                raise Refused("InvalidParameterValue", f"The filter '{name}' is invalid")


def install() -> None:
    """Puts the box's EC2 in moto's place."""
    from moto.ec2.models import ec2_backends

    for kind, prefix in PREFIXES.items():
        EC2_RESOURCE_TO_PREFIX[kind] = prefix
        EC2_PREFIX_TO_RESOURCE[prefix] = kind
    filter_dict_attribute_mapping.update(INSTANCE_FILTERS)
    moto.ec2.urls.url_paths["{0}/"] = BoxEC2Response.dispatch
    ec2_backends.backend = BoxEC2


def _fingerprint(request: dict[str, Any]) -> str:
    return repr(sorted((name, repr(value)) for name, value in request.items()))


def _regrouped(found: list[tuple[Any, Any]]) -> list[dict[str, Any]]:
    grouped: dict[str, dict[str, Any]] = {}
    for reservation, instance in found:
        shown = grouped.setdefault(
            reservation.id,
            {"ReservationId": reservation.id, "OwnerId": reservation.owner_id, "Groups": [], "Instances": []},
        )
        shown["Instances"].append(instance)
    return list(grouped.values())


@cache
def _members(action: str) -> frozenset[str]:
    """The first parts of the parameter names that an action takes on the wire; empty for an unknown action."""
    service = get_service_model("ec2")
    if action not in service.operation_names:
        return frozenset()
    shape = service.operation_model(action).input_shape
    if shape is None:
        return frozenset()
    names = set()
    for name, member in shape.members.items():
        own = member.serialization
        names |= {
            name,
            own.get("queryName", ""),
            own.get("name", ""),
            own.get("name", name)[:1].upper() + own.get("name", name)[1:],
        }
    return frozenset(names)


@cache
def _filter_names(action: str) -> frozenset[str]:
    """The filters that the API reference names for an action, as botocore carries it; empty if it names none."""
    model = Loader().load_service_model("ec2", "service-2")
    shape = model["shapes"][model["operations"][action]["input"]["shape"]]
    members = shape["members"]
    text = (members.get("Filters") or members.get("Filter") or {}).get("documentation", "")
    return frozenset(re.findall(r"<code>([^<]+)</code>", text))


def _is_filter(action: str, name: str) -> bool:
    known = _filter_names(action)
    return not known or name in known or (name.startswith("tag:") and any(k.startswith("tag") for k in known))
