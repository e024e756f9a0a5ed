"""Route tables, their routes and their associations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import text
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.ec2_requests import delete_and_wait, only, retag, tag_specifications


def _create_table(cloud: RegionClients, inputs: State) -> str:
    made = cloud.ec2.create_route_table(VpcId=inputs["vpcId"], **tag_specifications("route-table", inputs))
    return str(made["RouteTable"]["RouteTableId"])


def _describe_table(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("InvalidRouteTableID.NotFound"):
        table: Mapping[str, Any] = only(cloud.ec2.describe_route_tables(RouteTableIds=[id])["RouteTables"], id)
    return table


def _read_table(cloud: RegionClients, id: str, known: State) -> State:
    table = _describe_table(cloud, id)
    return {
        **from_response(TABLE.state, table),
        "arn": cloud.arn("ec2", f"route-table/{id}"),
        "tagsAll": tag_map(table.get("Tags")),
    }


def _delete_table(cloud: RegionClients, id: str, state: State) -> None:
    delete_and_wait(cloud, lambda: cloud.ec2.delete_route_table(RouteTableId=id), id, "InvalidRouteTableID.NotFound")


TABLE = Resource(
    token="aws:ec2/routeTable:RouteTable",
    props={"vpcId": text(required=True, replaces=True)},
    outputs={"arn": text(), "ownerId": text()},
    create=_create_table,
    read=_read_table,
    delete=_delete_table,
    retag=retag,
)


def _destination(values: State) -> str:
    return str(values.get("destinationCidrBlock") or values.get("destinationPrefixListId"))


def _create_route(cloud: RegionClients, inputs: State) -> str:
    cloud.ec2.create_route(**to_request(ROUTE.props, inputs))
    return f"{inputs['routeTableId']}_{_destination(inputs)}"


def _read_route(cloud: RegionClients, id: str, known: State) -> State:
    table, _, destination = id.partition("_")
    for route in _describe_table(cloud, table).get("Routes", []):
        found = from_response(ROUTE.state, route)
        if _destination(found) == destination:
            return {**found, "routeTableId": table}
    raise NotFound(f"{table} has no route to {destination}")


def _update_route(cloud: RegionClients, change: ResourceUpdate) -> None:
    cloud.ec2.replace_route(**to_request(ROUTE.props, change.new))


def _delete_route(cloud: RegionClients, id: str, state: State) -> None:
    where = to_request(ROUTE.props, state, ("routeTableId", "destinationCidrBlock", "destinationPrefixListId"))
    with not_found_on("InvalidRoute.NotFound", "InvalidRouteTableID.NotFound"):
        cloud.ec2.delete_route(**where)


ROUTE = Resource(
    token="aws:ec2/route:Route",
    props={
        "routeTableId": text(required=True, replaces=True),
        "destinationCidrBlock": text(replaces=True),
        "destinationPrefixListId": text(replaces=True),
        "gatewayId": text(),
        "natGatewayId": text(),
        "networkInterfaceId": text(computed=True),
        "transitGatewayId": text(),
        "vpcPeeringConnectionId": text(),
    },
    outputs={"origin": text(), "state": text(), "instanceId": text(), "instanceOwnerId": text()},
    create=_create_route,
    read=_read_route,
    update=_update_route,
    delete=_delete_route,
)


def _create_association(cloud: RegionClients, inputs: State) -> str:
    return str(cloud.ec2.associate_route_table(**to_request(ASSOCIATION.props, inputs))["AssociationId"])


def _find_association(cloud: RegionClients, id: str, known: State) -> tuple[str, str, str]:
    """The association's id, its subnet or gateway, and its route table."""
    side = known.get("subnetId") or known.get("gatewayId") or id.partition("/")[0]  # an import names SUBNET/TABLE
    for table in cloud.ec2.describe_route_tables()["RouteTables"]:
        for association in table.get("Associations", []):
            ends = (association.get("SubnetId"), association.get("GatewayId"))
            if side in ends:
                return association["RouteTableAssociationId"], side, table["RouteTableId"]
    raise NotFound(f"{side} has no route table")


def _read_association(cloud: RegionClients, id: str, known: State) -> State:
    _, side, table = _find_association(cloud, id, known)
    return {"subnetId" if side.startswith("subnet-") else "gatewayId": side, "routeTableId": table}


def _update_association(cloud: RegionClients, change: ResourceUpdate) -> None:
    id, _, _ = _find_association(cloud, change.id, change.old)
    cloud.ec2.replace_route_table_association(AssociationId=id, RouteTableId=change.new["routeTableId"])


def _delete_association(cloud: RegionClients, id: str, state: State) -> None:
    current, _, _ = _find_association(cloud, id, state)
    with not_found_on("InvalidAssociationID.NotFound"):
        cloud.ec2.disassociate_route_table(AssociationId=current)


ASSOCIATION = Resource(
    token="aws:ec2/routeTableAssociation:RouteTableAssociation",
    props={
        "routeTableId": text(required=True),
        "subnetId": text(replaces=True),
        "gatewayId": text(replaces=True),
    },
    create=_create_association,
    read=_read_association,
    update=_update_association,
    delete=_delete_association,
)

RESOURCES = (
    TABLE,
    ROUTE,
    ASSOCIATION,
)
