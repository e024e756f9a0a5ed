"""SSM parameters."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import ANY, boolean, integer, text
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State

PARAMETER_NAMES = ("name", "type", "description", "keyId", "tier", "dataType", "allowedPattern")


def _put_parameter(cloud: RegionClients, inputs: State, overwrite: bool) -> str:
    value = inputs.get("value") if inputs.get("value") is not None else inputs.get("insecureValue")
    request = to_request(PARAMETER.props, inputs, PARAMETER_NAMES)
    cloud.ssm.put_parameter(Value=value, Overwrite=overwrite, **request)
    return str(inputs["name"])


def _create_parameter(cloud: RegionClients, inputs: State) -> str:
    return _put_parameter(cloud, inputs, bool(inputs.get("overwrite")))


def _apply_parameter(cloud: RegionClients, id: str, inputs: State) -> None:
    """Tag the parameter in a separate call: PutParameter refuses tags together with Overwrite."""
    if inputs.get("tagsAll"):
        tags = tag_list(inputs["tagsAll"])
        cloud.ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId=id, Tags=tags)


def _read_parameter(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("ParameterNotFound"):
        parameter = cloud.ssm.get_parameter(Name=id, WithDecryption=True)["Parameter"]
    named = [{"Key": "Name", "Option": "Equals", "Values": [id]}]
    described = cloud.ssm.describe_parameters(ParameterFilters=named)["Parameters"]
    tags = cloud.ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId=id)["TagList"]
    return {
        **from_response(PARAMETER.state, described[0] if described else {}),
        **from_response(PARAMETER.state, parameter),
        **({"insecureValue": parameter["Value"]} if known.get("insecureValue") is not None else {}),
        "tagsAll": tag_map(tags),
    }


def _update_parameter(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.names - {"tags", "tagsAll", "overwrite"}:
        _put_parameter(cloud, change.new, overwrite=True)


def _loses_tier(old: State, new: State) -> frozenset[str]:
    """A parameter can move up to the advanced tier in place, but not down."""
    down = (old.get("tier"), new.get("tier")) == ("Advanced", "Standard")
    return frozenset({"tier"}) if down else frozenset()


def _delete_parameter(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("ParameterNotFound"):
        cloud.ssm.delete_parameter(Name=id)


def _retag_parameter(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.ssm.remove_tags_from_resource(ResourceType="Parameter", ResourceId=id, TagKeys=drop)


PARAMETER = Resource(
    token="aws:ssm/parameter:Parameter",
    props={
        "name": text(replaces=True),
        "type": text(required=True),
        "value": text(computed=True),
        "insecureValue": text(computed=True),
        "description": text(),
        "keyId": text(computed=True),
        "tier": text(computed=True),
        "dataType": text(computed=True, replaces=True),
        "allowedPattern": text(),
        "overwrite": boolean(write_only=True),
    },
    outputs={"arn": text(aws="ARN"), "version": integer(changes_with=ANY)},
    create=_create_parameter,
    apply=_apply_parameter,
    read=_read_parameter,
    update=_update_parameter,
    delete=_delete_parameter,
    retag=_retag_parameter,
    autonamed="name",
    replaces_if=_loses_tier,
)

RESOURCES = (PARAMETER,)
