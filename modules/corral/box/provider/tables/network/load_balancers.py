"""Load balancers, their listeners, target groups, and the targets in these."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import block, block_list, boolean, integer, text, text_set
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.ec2_requests import only


def _tags(cloud: RegionClients, arn: str) -> dict[str, str]:
    found = cloud.elbv2.describe_tags(ResourceArns=[arn])["TagDescriptions"]
    return tag_map(only(found, arn)["Tags"])


def _retag(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.elbv2.remove_tags(ResourceArns=[id], TagKeys=drop)
    if put:
        cloud.elbv2.add_tags(ResourceArns=[id], Tags=tag_list(put))


def _attributes(values: Mapping[str, Any]) -> list[dict[str, str]]:
    """Attributes by key; Python's True is AWS's 'true'."""
    spelled = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}
    return [{"Key": key, "Value": value} for key, value in spelled.items()]


def _read_attributes(answer: Mapping[str, Any]) -> dict[str, str]:
    return {one["Key"]: str(one["Value"]) for one in answer["Attributes"]}


# --- load balancers

_CROSS_ZONE, _PROTECTION = "load_balancing.cross_zone.enabled", "deletion_protection.enabled"


def _create_balancer(cloud: RegionClients, inputs: State) -> str:
    request = to_request(BALANCER.props, inputs, ("name", "loadBalancerType", "securityGroups", "subnets"))
    scheme = {"Scheme": "internal"} if inputs.get("internal") else {}
    made = cloud.elbv2.create_load_balancer(**request, **scheme, Tags=tag_list(inputs.get("tagsAll")))
    return str(made["LoadBalancers"][0]["LoadBalancerArn"])


def _describe_balancer(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("LoadBalancerNotFound"):
        found: Mapping[str, Any] = only(cloud.elbv2.describe_load_balancers(LoadBalancerArns=[id])["LoadBalancers"], id)
    return found


def _apply_balancer(cloud: RegionClients, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_balancer(cloud, id)["State"]["Code"] == "active" or None, f"{id} active")
    wanted = {
        _CROSS_ZONE: bool(inputs.get("enableCrossZoneLoadBalancing")),
        _PROTECTION: bool(inputs.get("enableDeletionProtection")),
    }
    cloud.elbv2.modify_load_balancer_attributes(LoadBalancerArn=id, Attributes=_attributes(wanted))


def _read_balancer(cloud: RegionClients, id: str, known: State) -> State:
    found = _describe_balancer(cloud, id)
    attributes = _read_attributes(cloud.elbv2.describe_load_balancer_attributes(LoadBalancerArn=id))
    return {
        **from_response(BALANCER.state, found),
        "name": found["LoadBalancerName"],
        "internal": found["Scheme"] == "internal",
        "subnets": [one["SubnetId"] for one in found["AvailabilityZones"]],
        "enableCrossZoneLoadBalancing": attributes.get(_CROSS_ZONE) == "true",
        "enableDeletionProtection": attributes.get(_PROTECTION) == "true",
        "arnSuffix": id.partition(":loadbalancer/")[2],
        "tagsAll": _tags(cloud, id),
    }


def _update_balancer(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("securityGroups"):
        cloud.elbv2.set_security_groups(LoadBalancerArn=change.id, SecurityGroups=change.new["securityGroups"])
    if change.touches("subnets"):
        cloud.elbv2.set_subnets(LoadBalancerArn=change.id, Subnets=change.new["subnets"])


def _delete_balancer(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("LoadBalancerNotFound"):
        cloud.elbv2.delete_load_balancer(LoadBalancerArn=id)


BALANCER = Resource(
    token="aws:lb/loadBalancer:LoadBalancer",
    props={
        "name": text(replaces=True),
        "loadBalancerType": text(replaces=True, default="application", aws="Type"),
        "internal": boolean(replaces=True, computed=True),
        "securityGroups": text_set(computed=True),
        "subnets": text_set(computed=True),
        "enableCrossZoneLoadBalancing": boolean(default=False),
        "enableDeletionProtection": boolean(default=False),
    },
    outputs={
        "arn": text(aws="LoadBalancerArn"),
        "arnSuffix": text(),
        "dnsName": text(aws="DNSName"),
        "vpcId": text(),
        "zoneId": text(aws="CanonicalHostedZoneId"),
    },
    create=_create_balancer,
    apply=_apply_balancer,
    read=_read_balancer,
    update=_update_balancer,
    delete=_delete_balancer,
    retag=_retag,
    autonamed="name",
)

# --- target groups

_DELAY, _PRESERVE = "deregistration_delay.timeout_seconds", "preserve_client_ip.enabled"
_STICKY, _STICKY_TYPE = "stickiness.enabled", "stickiness.type"
_CHECK = {
    "enabled": "HealthCheckEnabled",
    "protocol": "HealthCheckProtocol",
    "port": "HealthCheckPort",
    "path": "HealthCheckPath",
    "interval": "HealthCheckIntervalSeconds",
    "timeout": "HealthCheckTimeoutSeconds",
    "healthyThreshold": "HealthyThresholdCount",
    "unhealthyThreshold": "UnhealthyThresholdCount",
}


def _health_check(inputs: State) -> dict[str, Any]:
    given = inputs.get("healthCheck") or {}
    fields = GROUP.props["healthCheck"].fields
    values = {name: given.get(name, prop.default) for name, prop in fields.items()} if given else {}
    return {_CHECK[name]: value for name, value in values.items() if value is not None and name in _CHECK}


def _create_group(cloud: RegionClients, inputs: State) -> str:
    request = to_request(GROUP.props, inputs, ("name", "port", "protocol", "vpcId", "targetType"))
    tags = tag_list(inputs.get("tagsAll"))
    made = cloud.elbv2.create_target_group(**request, **_health_check(inputs), Tags=tags)
    return str(made["TargetGroups"][0]["TargetGroupArn"])


def _apply_group(cloud: RegionClients, id: str, inputs: State) -> None:
    wanted: dict[str, Any] = {_DELAY: inputs.get("deregistrationDelay", 300)}
    if inputs.get("preserveClientIp") is not None:
        wanted[_PRESERVE] = inputs["preserveClientIp"]
    if sticky := inputs.get("stickiness"):
        wanted |= {_STICKY: sticky.get("enabled", True), _STICKY_TYPE: sticky["type"]}
    cloud.elbv2.modify_target_group_attributes(TargetGroupArn=id, Attributes=_attributes(wanted))


def _read_group(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("TargetGroupNotFound"):
        found = only(cloud.elbv2.describe_target_groups(TargetGroupArns=[id])["TargetGroups"], id)
        attributes = _read_attributes(cloud.elbv2.describe_target_group_attributes(TargetGroupArn=id))
    check = {name: found[aws] for name, aws in _CHECK.items() if found.get(aws) is not None}
    sticky = {"enabled": attributes.get(_STICKY) == "true", "type": attributes.get(_STICKY_TYPE, "source_ip")}
    return {
        **from_response(GROUP.state, found),
        "name": found["TargetGroupName"],
        "healthCheck": check,
        "stickiness": sticky,
        "deregistrationDelay": int(attributes[_DELAY]),
        "preserveClientIp": attributes.get(_PRESERVE, "true"),
        "loadBalancerArns": found.get("LoadBalancerArns", []),
        "arnSuffix": f"targetgroup/{id.partition(':targetgroup/')[2]}",
        "tagsAll": _tags(cloud, id),
    }


def _update_group(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("healthCheck"):
        cloud.elbv2.modify_target_group(TargetGroupArn=change.id, **_health_check(change.new))


def _delete_group(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("TargetGroupNotFound"):
        cloud.elbv2.delete_target_group(TargetGroupArn=id)


GROUP = Resource(
    token="aws:lb/targetGroup:TargetGroup",
    props={
        "name": text(replaces=True),
        "port": integer(replaces=True),
        "protocol": text(replaces=True),
        "vpcId": text(replaces=True),
        "targetType": text(replaces=True, default="instance"),
        "preserveClientIp": text(computed=True),
        "deregistrationDelay": integer(default=300),
        "stickiness": block(
            {"type": text(required=True), "enabled": boolean(default=True)},
            computed=True,
        ),
        "healthCheck": block(
            {
                "enabled": boolean(default=True),
                "protocol": text(default="HTTP"),
                "port": text(default="traffic-port"),
                "path": text(computed=True),
                "interval": integer(default=30),
                "timeout": integer(computed=True),
                "healthyThreshold": integer(default=3),
                "unhealthyThreshold": integer(default=3),
            },
            computed=True,
        ),
    },
    outputs={"arn": text(aws="TargetGroupArn"), "arnSuffix": text(), "loadBalancerArns": text_set()},
    create=_create_group,
    apply=_apply_group,
    read=_read_group,
    update=_update_group,
    delete=_delete_group,
    retag=_retag,
    autonamed="name",
)

# --- listeners


def _actions(inputs: State) -> list[dict[str, Any]]:
    return [{"Type": one["type"], "TargetGroupArn": one.get("targetGroupArn")} for one in inputs["defaultActions"]]


def _create_listener(cloud: RegionClients, inputs: State) -> str:
    request = to_request(LISTENER.props, inputs, ("loadBalancerArn", "port", "protocol"))
    tags = tag_list(inputs.get("tagsAll"))
    made = cloud.elbv2.create_listener(**request, DefaultActions=_actions(inputs), Tags=tags)
    return str(made["Listeners"][0]["ListenerArn"])


def _read_listener(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("ListenerNotFound", "LoadBalancerNotFound"):
        found = only(cloud.elbv2.describe_listeners(ListenerArns=[id])["Listeners"], id)
        tags = _tags(cloud, id)
    actions = [{"type": one["Type"], "targetGroupArn": one.get("TargetGroupArn")} for one in found["DefaultActions"]]
    return {**from_response(LISTENER.state, found), "defaultActions": actions, "tagsAll": tags}


def _update_listener(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("port", "protocol", "defaultActions"):
        request = to_request(LISTENER.props, change.new, ("port", "protocol"))
        cloud.elbv2.modify_listener(ListenerArn=change.id, **request, DefaultActions=_actions(change.new))


def _delete_listener(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("ListenerNotFound"):
        cloud.elbv2.delete_listener(ListenerArn=id)


LISTENER = Resource(
    token="aws:lb/listener:Listener",
    props={
        "loadBalancerArn": text(required=True, replaces=True),
        "port": integer(),
        "protocol": text(computed=True),
        "defaultActions": block_list({"type": text(required=True), "targetGroupArn": text()}, required=True),
    },
    outputs={"arn": text(aws="ListenerArn")},
    create=_create_listener,
    read=_read_listener,
    update=_update_listener,
    delete=_delete_listener,
    retag=_retag,
)

# --- targets

# A target that is in no zone of a load balancer is registered all the same.
_GONE = ("Target.NotRegistered", "Target.DeregistrationInProgress")


def _target(inputs: State) -> dict[str, Any]:
    return {"Id": inputs["targetId"], **({"Port": inputs["port"]} if inputs.get("port") else {})}


def _register(cloud: RegionClients, inputs: State) -> str:
    cloud.elbv2.register_targets(TargetGroupArn=inputs["targetGroupArn"], Targets=[_target(inputs)])
    return f"{inputs['targetGroupArn']}-{secrets.token_hex(13)}"


def _read_target(cloud: RegionClients, id: str, known: State) -> State:
    if not known:
        raise NotFound(f"{id}: the provider does not import targets")
    with not_found_on("TargetGroupNotFound", "InvalidTarget"):
        found = cloud.elbv2.describe_target_health(TargetGroupArn=known["targetGroupArn"], Targets=[_target(known)])
    health = only(found["TargetHealthDescriptions"], id)["TargetHealth"]
    if health.get("Reason") in _GONE:
        raise NotFound(f"{known['targetId']} is not registered")
    return {name: known[name] for name in ("targetGroupArn", "targetId", "port") if known.get(name) is not None}


def _deregister(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("TargetGroupNotFound"):
        cloud.elbv2.deregister_targets(TargetGroupArn=state["targetGroupArn"], Targets=[_target(state)])


TARGET = Resource(
    token="aws:lb/targetGroupAttachment:TargetGroupAttachment",
    props={
        "targetGroupArn": text(required=True, replaces=True),
        "targetId": text(required=True, replaces=True),
        "port": integer(replaces=True),
    },
    create=_register,
    read=_read_target,
    delete=_deregister,
)

RESOURCES = (BALANCER, GROUP, LISTENER, TARGET)
