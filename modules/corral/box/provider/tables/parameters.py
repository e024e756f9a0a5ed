"""SSM parameters."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import ANY, flag, text, whole
from corral.box.provider.translate import record, request, tag_list, tag_map

PARAMETER_NAMES = ("name", "type", "description", "keyId", "tier", "dataType", "allowedPattern")


def _put_parameter(cloud: Cloud, inputs: State, overwrite: bool) -> str:
    value = inputs.get("value") if inputs.get("value") is not None else inputs.get("insecureValue")
    asked = request(PARAMETER.props, inputs, PARAMETER_NAMES)
    cloud.ssm.put_parameter(Value=value, Overwrite=overwrite, **asked)
    return str(inputs["name"])


def _create_parameter(cloud: Cloud, inputs: State) -> str:
    return _put_parameter(cloud, inputs, bool(inputs.get("overwrite")))


def _settle_parameter(cloud: Cloud, id: str, inputs: State) -> None:
    """PutParameter refuses tags together with Overwrite, so they always come after it."""
    if inputs.get("tagsAll"):
        tags = tag_list(inputs["tagsAll"])
        cloud.ssm.add_tags_to_resource(ResourceType="Parameter", ResourceId=id, Tags=tags)


def _read_parameter(cloud: Cloud, id: str, known: State) -> State:
    with absence("ParameterNotFound"):
        parameter = cloud.ssm.get_parameter(Name=id, WithDecryption=True)["Parameter"]
    named = [{"Key": "Name", "Option": "Equals", "Values": [id]}]
    described = cloud.ssm.describe_parameters(ParameterFilters=named)["Parameters"]
    tags = cloud.ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId=id)["TagList"]
    return {
        **record(PARAMETER.state, described[0] if described else {}),
        **record(PARAMETER.state, parameter),
        **({"insecureValue": parameter["Value"]} if known.get("insecureValue") is not None else {}),
        "tagsAll": tag_map(tags),
    }


def _update_parameter(cloud: Cloud, change: Change) -> None:
    if change.names - {"tags", "tagsAll", "overwrite"}:
        _put_parameter(cloud, change.new, overwrite=True)


def _loses_tier(old: State, new: State) -> frozenset[str]:
    """SSM takes a parameter up to the advanced tier, but not down again."""
    down = (old.get("tier"), new.get("tier")) == ("Advanced", "Standard")
    return frozenset({"tier"}) if down else frozenset()


def _delete_parameter(cloud: Cloud, id: str, state: State) -> None:
    with absence("ParameterNotFound"):
        cloud.ssm.delete_parameter(Name=id)


def _retag_parameter(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
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
        "overwrite": flag(kept=True),
    },
    outputs={"arn": text(aws="ARN"), "version": whole(changes_with=ANY)},
    create=_create_parameter,
    settle=_settle_parameter,
    read=_read_parameter,
    update=_update_parameter,
    delete=_delete_parameter,
    retag=_retag_parameter,
    autonamed="name",
    replaces_if=_loses_tier,
)

RESOURCES = (PARAMETER,)
