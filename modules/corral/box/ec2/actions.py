"""EC2 in the box: moto's backend and actions, extended by the box's mixins."""

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

from corral.box.api.tagging import TaggedEC2
from corral.box.api_errors import ApiError
from corral.box.ec2.console import ConsoleActions
from corral.box.ec2.fixed_ids import fixed_id
from corral.box.ec2.index import IndexedLookups
from corral.box.ec2.instance_topology import TopologyActions
from corral.box.ec2.instances import Instances
from corral.box.ec2.launch import check_tag_length, plan_launch
from corral.box.ec2.launch_templates import TemplateActions
from corral.box.ec2.throttling import charge_request
from corral.box.ec2.volumes import Volumes
from corral.box.ec2_capacity.blocks import BlockActions, CapacityBlocks
from corral.box.ec2_capacity.placement_groups import PlacementGroupActions, PlacementGroups
from corral.box.ec2_capacity.reservation_api import ReservationActions
from corral.box.ec2_capacity.reservations import CapacityReservations
from corral.box.ec2_capacity.spot_api import SpotActions
from corral.box.ec2_capacity.type_offerings import OfferingActions
from corral.box.ec2_network.endpoints import VpcEndpoints
from corral.box.ec2_network.gateways import Gateways
from corral.box.ec2_network.interfaces import InterfaceActions, Interfaces
from corral.box.ec2_network.subnets import SubnetActions, Subnets
from corral.box.ec2_network.vpcs import Vpcs
from corral.box.images import Images
from corral.box.zones import ZoneActions

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
NAMING = ("InstanceId", "ResourceId")  # parameters that name existing instances
TAG_PART = re.compile(r"^(?:TagSpecification\.\d+\.)?Tag\.\d+\.(Key|Value)$")
PAGE = 1000  # instances, the largest page of DescribeInstances


class BoxEC2(
    CapacityReservations,
    CapacityBlocks,
    TaggedEC2,
    PlacementGroups,
    IndexedLookups,
    Instances,
    Interfaces,
    Subnets,
    Volumes,
    Vpcs,
    Gateways,
    VpcEndpoints,
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
        """Answer a call. Raises ApiError for an unknown parameter or filter, a throttled call or a hidden instance."""
        try:
            self._check_parameters()
            charge_request(self.ec2_backend, self._get_action(), self.querystring, time.time())
            self._check_visible()
            with fixed_id(self._get_action(), self.params, self._known_ids):
                return super().call_action()
        except ApiError as refused:
            return self.serialized(ActionResult(refused))

    def serialized(self, action_result: Any) -> Any:
        """The serialized response; an error may have its own HTTP status."""
        status, headers, body = super().serialized(action_result)
        result = action_result.result
        own = result.status if isinstance(result, ApiError) else None
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
                raise ApiError(
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
            raise ApiError("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter"
                          " maxResults")  # fmt: skip
        backend.remove_ended(utcnow())
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
            raise ApiError("IdempotentParameterMismatch", "The request uses the same client token as a previous, but"
                          " non-identical request.")  # fmt: skip
        return ActionResult(reservation)

    def _check_visible(self) -> None:
        """Raises ApiError if the call names an instance that EC2 does not show yet."""
        hidden = self.ec2_backend.hidden_instances()
        for given, values in self.querystring.items() if hidden else ():
            for id in hidden.intersection(values) if given.partition(".")[0] in NAMING else ():
                raise ApiError("InvalidInstanceID.NotFound", f"The instance ID '{id}' does not exist")

    def _check_parameters(self) -> None:
        action = self._get_action()
        members = _members(action)
        for given, values in self.querystring.items():
            name = given.partition(".")[0]
            if members and name not in members and name not in ("Action", "Version"):
                raise ApiError("UnknownParameter", f"The parameter {name} is not recognized")
            if part := TAG_PART.search(given):
                check_tag_length(part[1], values[0])
        for name in self._filters_from_querystring():
            if not _is_filter(action, name):
                raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")


def install() -> None:
    """Replace moto's EC2 with the box's."""
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
    """The top-level parameter names of an action on the wire; empty for an unknown action."""
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
    """The filters of an action in the API reference, from botocore; empty if it lists none."""
    model = Loader().load_service_model("ec2", "service-2")
    shape = model["shapes"][model["operations"][action]["input"]["shape"]]
    members = shape["members"]
    text = (members.get("Filters") or members.get("Filter") or {}).get("documentation", "")
    return frozenset(re.findall(r"<code>([^<]+)</code>", text))


def _is_filter(action: str, name: str) -> bool:
    known = _filter_names(action)
    return not known or name in known or (name.startswith("tag:") and any(k.startswith("tag") for k in known))
