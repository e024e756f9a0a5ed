"""Route 53: zones, and records in them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import tag_list, tag_map
from corral.box.provider.property_schema import block_set, boolean, integer, text, text_set
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State, Timeouts

# --- zones

DEFAULT_DESCRIPTION = "Managed by Pulumi"


def _create_zone(cloud: RegionClients, inputs: State) -> str:
    vpcs = [_vpc(cloud, vpc) for vpc in inputs.get("vpcs") or ()]
    request: dict[str, Any] = {"Name": inputs["name"], "CallerReference": secrets.token_hex(16)}
    request["HostedZoneConfig"] = {"Comment": inputs.get("comment") or DEFAULT_DESCRIPTION}
    if vpcs:
        request["VPC"] = vpcs[0]
    return str(cloud.route53.create_hosted_zone(**request)["HostedZone"]["Id"]).rpartition("/")[2]


def _vpc(cloud: RegionClients, vpc: Mapping[str, Any]) -> dict[str, str]:
    return {"VPCId": vpc["vpcId"], "VPCRegion": vpc.get("vpcRegion") or cloud.region}


def _describe_zone(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("NoSuchHostedZone"):
        zone: Mapping[str, Any] = cloud.route53.get_hosted_zone(Id=id)
    return zone


def _apply_zone(cloud: RegionClients, id: str, inputs: State) -> None:
    present = {vpc["VPCId"]: vpc for vpc in _describe_zone(cloud, id).get("VPCs", [])}
    wanted = {vpc["vpcId"]: _vpc(cloud, vpc) for vpc in inputs.get("vpcs") or ()}
    for vpc in sorted(wanted.keys() - present.keys()):
        _await_change(cloud, cloud.route53.associate_vpc_with_hosted_zone(HostedZoneId=id, VPC=wanted[vpc]))
    for vpc in sorted(present.keys() - wanted.keys()):
        _await_change(cloud, cloud.route53.disassociate_vpc_from_hosted_zone(HostedZoneId=id, VPC=present[vpc]))
    tags = tag_list(inputs.get("tagsAll"))
    if tags:
        cloud.route53.change_tags_for_resource(ResourceType="hostedzone", ResourceId=id, AddTags=tags)


def _read_zone(cloud: RegionClients, id: str, known: State) -> State:
    found = _describe_zone(cloud, id)
    zone, servers = found["HostedZone"], found.get("DelegationSet", {}).get("NameServers", [])
    tags = cloud.route53.list_tags_for_resource(ResourceType="hostedzone", ResourceId=id)
    return {
        "name": zone["Name"].removesuffix("."),
        "comment": zone.get("Config", {}).get("Comment"),
        "vpcs": [{"vpcId": vpc["VPCId"]} for vpc in found.get("VPCs", [])],
        "zoneId": id,
        "nameServers": sorted(servers),
        "primaryNameServer": servers[0] if servers else None,
        "arn": f"arn:{cloud.partition.name}:route53:::hostedzone/{id}",
        "tagsAll": tag_map(tags["ResourceTagSet"].get("Tags")),
    }


def _update_zone(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("comment"):
        cloud.route53.update_hosted_zone_comment(Id=change.id, Comment=change.new.get("comment") or DEFAULT_DESCRIPTION)


def _delete_zone(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("NoSuchHostedZone"):
        if state.get("forceDestroy"):
            _empty_zone(cloud, id)
            with suppress(cloud.route53.exceptions.InvalidArgument):  # a private zone has no DNSSEC
                cloud.route53.get_dnssec(HostedZoneId=id)
        cloud.route53.delete_hosted_zone(Id=id)


def _empty_zone(cloud: RegionClients, id: str) -> None:
    for page in cloud.route53.get_paginator("list_resource_record_sets").paginate(HostedZoneId=id):
        own = [one for one in page["ResourceRecordSets"] if one["Type"] not in {"NS", "SOA"}]
        if own:
            _change_records(cloud, id, [{"Action": "DELETE", "ResourceRecordSet": one} for one in own])


def _change_records(cloud: RegionClients, zone: str, changes: list[dict[str, Any]]) -> None:
    batch = {"Changes": changes}
    _await_change(cloud, cloud.route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=batch))


def _await_change(cloud: RegionClients, answer: Mapping[str, Any]) -> None:
    """Wait until all of Route 53's servers have a change."""
    change = answer["ChangeInfo"]["Id"]

    def probe() -> bool | None:
        return cloud.route53.get_change(Id=change)["ChangeInfo"]["Status"] == "INSYNC" or None

    if answer["ChangeInfo"]["Status"] != "INSYNC":
        cloud.until(probe, f"{change} INSYNC")


def _retag_zone(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.route53.change_tags_for_resource(ResourceType="hostedzone", ResourceId=id, RemoveTagKeys=drop)


ZONE = Resource(
    token="aws:route53/zone:Zone",
    timeouts=Timeouts(create=1800, update=1800, delete=1800),
    props={
        "name": text(required=True, replaces=True),
        "comment": text(default=DEFAULT_DESCRIPTION),
        "vpcs": block_set({"vpcId": text(required=True), "vpcRegion": text(write_only=True, computed=True)}),
        "forceDestroy": boolean(write_only=True, default=False),
    },
    outputs={"arn": text(), "zoneId": text(), "nameServers": text_set(), "primaryNameServer": text()},
    create=_create_zone,
    apply=_apply_zone,
    read=_read_zone,
    update=_update_zone,
    delete=_delete_zone,
    retag=_retag_zone,
    is_global=True,
)

# --- records


def _fqdn(cloud: RegionClients, zone: str, name: str) -> str:
    """The full name without the final dot; a program may omit the zone."""
    domain = str(_describe_zone(cloud, zone)["HostedZone"]["Name"]).removesuffix(".")
    bare = name.removesuffix(".").lower()
    return bare if bare == domain or bare.endswith(f".{domain}") else f"{bare}.{domain}".removeprefix(".")


def _record_set(cloud: RegionClients, inputs: State) -> dict[str, Any]:
    return {
        "Name": _fqdn(cloud, inputs["zoneId"], inputs["name"]),
        "Type": inputs["type"],
        "TTL": inputs["ttl"],
        "ResourceRecords": [{"Value": value} for value in inputs["records"]],
    }


def _create_record(cloud: RegionClients, inputs: State) -> str:
    action = "UPSERT" if inputs.get("allowOverwrite") else "CREATE"
    made = _record_set(cloud, inputs)
    _change_records(cloud, inputs["zoneId"], [{"Action": action, "ResourceRecordSet": made}])
    return f"{inputs['zoneId']}_{made['Name']}_{inputs['type']}"


def _find_record(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    zone, _, rest = id.partition("_")
    name, _, kind = rest.rpartition("_")
    with not_found_on("NoSuchHostedZone"):
        found = cloud.route53.list_resource_record_sets(
            HostedZoneId=zone, StartRecordName=name, StartRecordType=kind, MaxItems="1"
        )["ResourceRecordSets"]
    if not found or found[0]["Name"].removesuffix(".").replace("\\052", "*") != name or found[0]["Type"] != kind:
        raise NotFound(f"{name} {kind} does not exist")
    record_set: Mapping[str, Any] = found[0]
    return record_set


def _read_record(cloud: RegionClients, id: str, known: State) -> State:
    found = _find_record(cloud, id)
    zone, _, rest = id.partition("_")
    fqdn, given = rest.rpartition("_")[0], str(known.get("name", ""))
    return {
        "zoneId": zone,
        "name": given if given and _fqdn(cloud, zone, given) == fqdn else fqdn,
        "fqdn": fqdn,
        "type": found["Type"],
        "ttl": found.get("TTL"),
        "records": [one["Value"] for one in found.get("ResourceRecords", [])],
    }


def _update_record(cloud: RegionClients, change: ResourceUpdate) -> None:
    wanted = _record_set(cloud, change.new)
    _change_records(cloud, change.new["zoneId"], [{"Action": "UPSERT", "ResourceRecordSet": wanted}])


def _delete_record(cloud: RegionClients, id: str, state: State) -> None:
    found = _find_record(cloud, id)
    _change_records(cloud, id.partition("_")[0], [{"Action": "DELETE", "ResourceRecordSet": dict(found)}])


RECORD = Resource(
    token="aws:route53/record:Record",
    timeouts=Timeouts(create=1800, update=1800, delete=1800),
    props={
        "zoneId": text(required=True, replaces=True),
        "name": text(required=True, replaces=True),
        "type": text(required=True, replaces=True),
        "ttl": integer(required=True),
        "records": text_set(required=True),
        "allowOverwrite": boolean(write_only=True, computed=True),
    },
    outputs={"fqdn": text()},
    create=_create_record,
    read=_read_record,
    update=_update_record,
    delete=_delete_record,
    is_global=True,
)

RESOURCES = (
    ZONE,
    RECORD,
)
